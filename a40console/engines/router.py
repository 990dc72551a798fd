"""llama-server as a router of several models: which are there, load one, unload one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import httpx

from a40console.errors import ConsoleError, Exit, NotServingError, RefusedError, TimedOutError
from a40console.model.engine import Endpoint

ANSWER_TIMEOUT_S = 10.0
LOAD_TIMEOUT_S = 600.0
LOOK_PERIOD_S = 0.5
NO_ROUTER = "it serves one model: it is no router (llama-server with --models-dir or a preset)"
_SETTLED = {"loaded": ("loaded", "sleeping"), "unloaded": ("unloaded",)}


@dataclass(frozen=True, slots=True)
class RoutedModel:
    """One model of a router."""

    name: str
    status: str
    """`unloaded`, `loading`, `loaded`, `sleeping` or `downloading`."""

    failed: str = ""
    """How its last load ended, where it failed."""


class LlamaRouter:
    """A client of the router's routes.

    Args:
        endpoint: Where it is.
        transport: Replaces the network in tests.
        clock: Monotonic.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        look_period_s: float = LOOK_PERIOD_S,
    ) -> None:
        key = endpoint.api_key
        self._clock = clock
        self._look_period_s = look_period_s
        self._http = httpx.AsyncClient(
            transport=transport or httpx.AsyncHTTPTransport(uds=endpoint.socket_path),
            base_url=endpoint.base_url,
            headers={} if key is None else {"authorization": f"Bearer {key}"},
            timeout=ANSWER_TIMEOUT_S,
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self._http.aclose()

    async def why_none(self) -> str | None:
        """Why the engine takes neither load nor unload; None where it is a router."""
        props = await self._ask("GET", "/props")
        return None if props.get("role") == "router" else NO_ROUTER

    async def models(self) -> tuple[RoutedModel, ...]:
        """Every model that it knows."""
        told = await self._ask("GET", "/models")
        rows = told.get("data")
        return tuple(_model(row) for row in rows if isinstance(row, dict)) if rows else ()

    async def load(self, name: str, timeout_s: float = LOAD_TIMEOUT_S) -> RoutedModel:
        """Load a model and wait until it serves.

        Raises:
            RefusedError: If it is unknown, or does not come to serve.
            TimedOutError: If it is still loading after `timeout_s`.
        """
        return await self._turn(name, "load", "loaded", timeout_s)

    async def unload(self, name: str, timeout_s: float = LOAD_TIMEOUT_S) -> RoutedModel:
        """Unload a model and wait until it is gone.

        Raises:
            RefusedError: If it is unknown.
            TimedOutError: If it is still there after `timeout_s`.
        """
        return await self._turn(name, "unload", "unloaded", timeout_s)

    async def model(self, name: str) -> RoutedModel:
        """One of them.

        Raises:
            RefusedError: If the router does not know it.
        """
        known = await self.models()
        for model in known:
            if model.name == name:
                return model
        raise RefusedError(
            f"The router knows no model {name[:60]!r}",
            evidence="it has " + (", ".join(model.name for model in known) or "none"),
        )

    async def _turn(self, name: str, verb: str, wanted: str, timeout_s: float) -> RoutedModel:
        now = await self.model(name)
        if now.status in _SETTLED[wanted]:
            raise RefusedError(f"{name} is {now.status} already")
        await self._ask("POST", f"/models/{verb}", {"model": name})
        until_s = self._clock() + timeout_s
        while (now := await self.model(name)).status not in _SETTLED[wanted]:
            if now.failed:
                break
            if self._clock() > until_s:
                raise TimedOutError(f"{name} is still {now.status} after {timeout_s:g} s")
            await asyncio.sleep(self._look_period_s)
        if now.failed and verb == "load":
            raise RefusedError(
                f"{name} could not be loaded",
                evidence=now.failed,
                remedy="Its lines are in the engine's output: a40console engine logs",
            )
        return now

    async def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        try:
            response = await self._http.request(method, path, json=body)
            told = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise NotServingError(
                "The engine does not answer", evidence=f"{method} {path}: {error!r}"
            ) from error
        if response.is_error:
            raise ConsoleError(
                f"The router refuses {path}", evidence=_message(told), exit_code=Exit.REFUSED
            )
        return told if isinstance(told, dict) else {}


def _model(row: dict[str, Any]) -> RoutedModel:
    status = row.get("status")
    status = status if isinstance(status, dict) else {}
    failed = f"exit code {status.get('exit_code')}" if status.get("failed") else ""
    return RoutedModel(str(row.get("id", "")), str(status.get("value", "unknown")), failed)


def _message(told: object) -> str:
    error = told.get("error") if isinstance(told, dict) else None
    return str(error.get("message") if isinstance(error, dict) else told)[:200]
