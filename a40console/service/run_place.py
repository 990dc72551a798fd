"""Where a run's requests go: our engine past the gateway, the gateway, or a URL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from a40console.errors import NotServingError
from a40console.files import parse_json
from a40console.model.engine import Endpoint, EngineState
from a40console.model.figures import Missing
from a40console.model.run import RunTarget
from a40console.operations import record
from a40console.operations.asking import engine_http
from a40console.operations.record import RunRecord
from a40console.service.client import ServiceClient

TOKEN_VARIABLE = "A40CONSOLE_TARGET_TOKEN"  # noqa: S105 - a variable's name
ASK_TIMEOUT_S = 20.0
LARGEST_BYTES = 16 * 1024 * 1024
"""Of an answer: the tokens of a prompt take a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One target as it is reached now; a restarted engine is at another."""

    endpoint: Endpoint
    """Where requests go."""

    counters: Endpoint
    """Where the engine behind it exposes its counters."""

    model: str
    """What requests ask for."""

    kind: str = ""
    """`vllm`, `llamacpp`, `sim`, ...; empty where it is not known."""

    engine: RunRecord | None = None
    """The engine start behind it, where it is ours."""


async def find_place(
    target: RunTarget, token: str, service: ServiceClient, engine_runs: Path
) -> Place:
    """The target as it is reached now.

    Raises:
        NotServingError: If nothing serves there.
        ConsoleError: If the service cannot be asked.
    """
    if target.kind == "url":
        endpoint = Endpoint(server_root(target.url), api_key=token or None)
        return Place(endpoint=endpoint, counters=endpoint, model=await _model(target, endpoint))
    engine = await serving_start(service, engine_runs)
    direct = engine.endpoint(engine_runs)
    model = target.model or engine.profile.public_name
    kind = engine.profile.kind
    if target.kind == "engine":
        return Place(endpoint=direct, counters=direct, model=model, kind=kind, engine=engine)
    url = (await service.hello()).gateway_url
    if url is None:
        raise NotServingError("The gateway does not listen", remedy="Restart: a40console stop")
    gateway = Endpoint(url.rstrip("/"), api_key=token or None)
    return Place(endpoint=gateway, counters=direct, model=model, kind=kind, engine=engine)


async def serving_start(service: ServiceClient, engine_runs: Path) -> RunRecord:
    """The engine start that serves now.

    Raises:
        NotServingError: If none does.
    """
    engine = (await service.snapshot()).engine
    found = None if isinstance(engine.id, Missing) else record.load(engine_runs / engine.id)
    if engine.state is not EngineState.SERVING or found is None:
        raise NotServingError(
            "The engine does not serve",
            evidence=engine.state.sentence,
            remedy="Start it: a40console engine start",
        )
    return found


def server_root(url: str) -> str:
    """A server's address without the OpenAI prefix, which paths of requests bring themselves."""
    return url.rstrip("/").removesuffix("/v1")


async def _model(target: RunTarget, endpoint: Endpoint) -> str:
    """The model that was named, else the only one that the server lists."""
    if target.model:
        return target.model
    models = [str(each.get("id")) for each in await listed_models(endpoint)]
    if len(models) == 1:
        return models[0]
    raise NotServingError(
        "Which model to ask for is not known",
        evidence=f"{endpoint.base_url} lists {', '.join(models) or 'none'}",
        remedy="Name it: --model NAME",
    )


async def listed_models(endpoint: Endpoint) -> list[Mapping[str, Any]]:
    """What `/v1/models` lists; nothing where it does not answer or is not understood."""
    data = (await ask_json(endpoint, "GET", "/v1/models")).get("data")
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


async def ask_json(
    endpoint: Endpoint, method: str, path: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A server's answer as a JSON object; empty where none came in time, or one too large."""
    received = bytearray()
    try:
        async with (
            asyncio.timeout(ASK_TIMEOUT_S),
            engine_http(endpoint, ASK_TIMEOUT_S) as http,
            http.stream(method, path, json=body) as response,
        ):
            if response.status_code != httpx.codes.OK:
                return {}
            async for piece in response.aiter_bytes():
                received += piece
                if len(received) > LARGEST_BYTES:
                    return {}
        data = parse_json(bytes(received))
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
