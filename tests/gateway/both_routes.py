"""The same request by both routes, streamed and whole: compared, and told in a table."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from a40console.gateway.dialect import Dialect
from a40console.gateway.probing import Dialects
from a40console.gateway.upstream import Upstream
from a40console.model.engine import MessagesRoute
from tests.gateway.grammar import message_of
from tests.gateway.stub import call, gateway

MESSAGES, COUNT = "/v1/messages?beta=true", "/v1/messages/count_tokens?beta=true"
ROUTES: tuple[MessagesRoute, MessagesRoute] = ("auto", "translated")
"""Real engines are found to have the API: `auto` is the native route, with what it needs."""


@dataclass
class Table:
    """One line for each conversation that was compared."""

    engine: str
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, name: str, answer: dict[str, Any], tries: int = 1) -> None:
        """Keep what all answers had in common, and at which try."""
        kinds = "+".join(block["type"] for block in answer["content"]) or "nothing"
        stop = str(answer["stop_reason"])
        if answer["stop_sequence"] is not None:
            stop += f" {answer['stop_sequence']!r}"
        usage = answer["usage"]
        counted = f"{usage['prompt']} in, {usage['cached']} cached, {usage['output_tokens']} out"
        if tries > 1:
            counted += f", at try {tries}"
        self.rows.append((name, kinds, stop, counted))

    def text(self) -> str:
        """The table, for the terminal."""
        head = ("conversation", "content", "stop", "tokens")
        widths = [max(len(row[n]) for row in (head, *self.rows)) for n in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (head, *self.rows)
        ]
        title = f"{self.engine}: native and translated, streamed and whole: the same answers"
        return "\n".join(["", title, *lines])


@asynccontextmanager
async def both(upstream: Upstream) -> AsyncIterator[dict[MessagesRoute, int]]:
    """A gateway for each route before one engine: their ports."""
    found, translated = (replace(upstream, messages_route=route) for route in ROUTES)
    async with (
        gateway(found, dialects=Dialects()) as one,
        gateway(translated, dialects=Dialects()) as other,
    ):
        yield {"auto": one.port, "translated": other.port}


async def dialects_of(upstream: Upstream) -> list[Dialect]:
    """What is found for each route."""
    return [await Dialects().of(replace(upstream, messages_route=route)) for route in ROUTES]


async def answer(port: int, body: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    """A message as the client has it in the end, without what differs between any two."""
    async with call(port, MESSAGES, {**body, "stream": stream}) as said:
        raw = await said.body()
        assert said.status == 200, raw
    message = message_of(stream_events(raw)) if stream else json.loads(raw)
    usage = message["usage"]
    cached = usage.get("cache_read_input_tokens") or 0
    return {
        "model": message["model"],
        "content": [
            {key: value for key, value in block.items() if key not in ("id", "signature")}
            for block in message["content"]
        ],
        "stop_reason": message["stop_reason"],
        "stop_sequence": message["stop_sequence"],
        "usage": {
            "prompt": usage["input_tokens"] + cached,
            "cached": cached,
            "output_tokens": usage["output_tokens"],
        },
    }


def stream_events(raw: bytes) -> list[dict[str, Any]]:
    """The events of a stream, pings left out."""
    events = []
    for part in raw.decode().split("\n\n"):
        named, _, data = part.partition("\ndata: ")
        if not data:
            continue
        event = json.loads(data)
        assert named == f"event: {event['type']}"
        if event["type"] != "ping":
            events.append(event)
    return events


async def four(upstream: Upstream, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Both routes, both ways; once before, so that all four find the same in the cache."""
    async with both(upstream) as ports:
        await answer(ports["auto"], body, stream=True)
        return [
            await answer(ports[route], body, stream=stream)
            for route in ROUTES
            for stream in (False, True)
        ]


async def refusals(upstream: Upstream, body: dict[str, Any]) -> list[tuple[int, str, str]]:
    """Status, type and words of a request that the engine refuses, both routes, both ways."""
    told = []
    async with both(upstream) as ports:
        for route in ROUTES:
            for stream in (False, True):
                async with call(ports[route], MESSAGES, {**body, "stream": stream}) as said:
                    error = (await said.json())["error"]
                    told.append((said.status, error["type"], error["message"]))
    return told


async def counts(upstream: Upstream, body: dict[str, Any]) -> list[int]:
    """What count_tokens says by both routes."""
    counted = []
    async with both(upstream) as ports:
        for route in ROUTES:
            async with call(ports[route], COUNT, body) as said:
                assert said.status == 200
                counted.append((await said.json())["input_tokens"])
    return counted
