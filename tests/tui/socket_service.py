"""The fake service on a Unix socket, in a process of its own: `SOCKET SCENARIO`.

Scenarios: `moving:32` has that many slots whose every figure moves each second, `idle` none,
`still` repeats one snapshot. `rushing:8` moves a hundred times a second. `settling:8` moves for a
while, the same for whoever looks, then repeats its last snapshot to the letter.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count, islice, repeat
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from a40console.model.codec import encode
from a40console.model.snapshot import Snapshot
from tests import make_snapshot as make
from tests.tui.fake_service import FakeService

BEGUN_S = time.time()
_EVERY_S = {"rushing": 0.01, "settling": 0.3}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]


def snapshots(scenario: str) -> Iterator[Snapshot]:
    """The scenario's snapshots, one a second."""
    name, _, number = scenario.partition(":")
    if name in ("moving", "rushing"):
        yield from make.moving(int(number), start_s=time.time())
    if name == "settling":
        moved = list(islice(make.moving(int(number), start_s=BEGUN_S), 12))
        yield from chain(moved, repeat(moved[-1]))
    base = make.idle() if name == "idle" else make.snapshot()
    for step in count():
        now = datetime.now(UTC).isoformat()
        yield replace(
            base,
            seq=step + 1,
            at=now,
            engine=replace(base.engine, uptime_s=11520.0 + step),
            service=replace(base.service, uptime_s=11520.0 + step),
        )


def build(scenario: str) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """An ASGI application that answers like the service."""
    service = FakeService()
    past = make.NOW.timestamp() - time.time()
    service.history = tuple(replace(p, at_s=p.at_s - past) for p in service.history)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = (await receive()).get("body", b"")
        if scope["path"] == "/v1/snapshots":
            await _respond(send, 200, _lines(scenario))
            return
        query = scope["query_string"].decode()
        url = f"http://service{scope['path']}?{query}"
        response = await service.answer(httpx.Request(scope["method"], url, content=body))
        await _respond(send, response.status_code, _once(response.content))

    return app


async def _respond(send: Send, status: int, body: AsyncIterator[bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    async for piece in body:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _lines(scenario: str) -> AsyncIterator[bytes]:
    for snapshot in snapshots(scenario):
        yield json.dumps(encode(snapshot)).encode() + b"\n"
        await asyncio.sleep(_EVERY_S.get(scenario.partition(":")[0], 1.0))


def main() -> None:
    """Serve until terminated."""
    socket, scenario = Path(sys.argv[1]), sys.argv[2]
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    uvicorn.run(
        build(scenario),
        uds=str(socket),
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )


if __name__ == "__main__":
    main()
