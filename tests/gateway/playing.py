"""Engines that say what a test has written down."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.gateway.stub import Handler, Received, Reply


def playing(events: list[bytes], *, every_s: float = 0.0) -> Handler:
    """A stream of these events."""

    async def play(received: Received, reply: Reply) -> None:
        await reply.start()
        for event in events:
            await reply.chunk(event)
            await asyncio.sleep(every_s)
        await reply.end()

    return play


def saying(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    """One whole answer: bytes as they are, anything else as JSON."""
    said = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def say(received: Received, reply: Reply) -> None:
        await reply.whole(said, status, headers)

    return say
