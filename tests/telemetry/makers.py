"""Readings, rows and servers that the telemetry tests are made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from a40console.model.request import EngineRow, GatewayRow, TokenMark
from a40console.telemetry.aliases import WANTED, read_samples
from a40console.telemetry.exposition import parse_exposition
from a40console.telemetry.reading import CounterName, EngineReading, GaugeName

DATA = Path(__file__).parent.parent / "data" / "metrics"

Handler = Callable[[httpx.Request], httpx.Response]


def text_of(name: str) -> str:
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def content_type_of(name: str) -> str:
    return "application/openmetrics-text" if "rust" in name else "text/plain"


def recorded(name: str, at_s: float = 0.0) -> EngineReading:
    """A recorded exposition as a reading."""
    source = "llamacpp.metrics" if name.startswith("llamacpp") else "vllm.metrics"
    samples = parse_exposition(text_of(name), families=WANTED, content_type=content_type_of(name))
    return read_samples(samples, source=source, at_s=at_s)


def reading(
    at_s: float,
    counters: Mapping[CounterName, float] | None = None,
    gauges: Mapping[GaugeName, float] | None = None,
    **others: Any,
) -> EngineReading:
    return EngineReading(
        source=others.pop("source", "vllm.metrics"),
        at_s=at_s,
        counters=counters or {},
        gauges=gauges or {},
        **others,
    )


def engine_row(engine_id: str, tokens: int = 0, **others: Any) -> EngineRow:
    row: dict[str, Any] = {
        "external_id": None,
        "slot": None,
        "phase": "decode" if tokens else "prefill",
        "prompt_tokens": 100,
        "cached_tokens": 0,
        "passes": None,
        "max_tokens": None,
        "ttft_s": None,
        "arrived_at_s": 0.0,
        "first_token_at_s": None,
        "last_token_at_s": None,
    }
    return EngineRow(engine_id=engine_id, generated_tokens=tokens, **(row | others))


def gateway_row(request_id: str, **others: Any) -> GatewayRow:
    row: dict[str, Any] = {
        "route": "chat",
        "client": "curl",
        "session": None,
        "agent": None,
        "model": "tiny",
        "max_tokens": None,
        "received_at_s": 0.0,
        "sent_at_s": 0.0,
        "first_token_at_s": None,
        "last_token_at_s": None,
        "ended_at_s": None,
        "ended_at": None,
        "prompt_tokens": None,
        "cached_tokens": None,
        "generated_tokens": None,
        "characters": 0,
        "method": "apportioned",
        "finish_reason": None,
        "status": None,
        "marks": (),
    }
    return GatewayRow(request_id=request_id, **(row | others))


def steady(
    request_id: str, *, rate: float, since_s: float, now_s: float, **others: Any
) -> GatewayRow:
    """A request metered exactly: so many tokens a second since its first token."""
    times = [since_s + 0.1 * index for index in range(int((now_s - since_s) * 10) + 1)]
    marks = tuple(TokenMark(at_s, 1 + int(rate * (at_s - since_s))) for at_s in times)
    return gateway_row(
        request_id,
        method="usage",
        received_at_s=since_s - 1,
        sent_at_s=since_s - 1,
        first_token_at_s=since_s,
        last_token_at_s=times[-1],
        generated_tokens=marks[-1].tokens,
        marks=marks,
        **others,
    )


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


def routes(table: Mapping[str, httpx.Response | Handler]) -> httpx.MockTransport:
    """A server that answers by path; everything else is 404."""

    def answer(request: httpx.Request) -> httpx.Response:
        entry = table.get(request.url.path, httpx.Response(404))
        if isinstance(entry, httpx.Response):
            return httpx.Response(entry.status_code, headers=entry.headers, content=entry.content)
        return entry(request)

    return httpx.MockTransport(answer)


def metrics_answer(text: str) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "text/plain"}, text=text)


def json_answer(value: object) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "application/json"}, text=json.dumps(value))
