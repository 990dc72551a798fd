"""A client that takes nothing of its answer any more frees the engine, and is no live row."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from a40console.gateway.heads import LimitedHeads
from a40console.gateway.slow_readers import Patience, end_when_silent
from tests.gateway import stub
from tests.gateway.messages_asked import MESSAGES, STREAM, chat
from tests.gateway.stub import (
    NATIVE_ENGINE,
    TRANSLATED_ENGINE,
    Received,
    Reply,
    Speaks,
    StubEngine,
    call,
    capture,
    gateway,
    until,
)

CHAT = "/v1/chat/completions"
WORDS = "sea " * 8000


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitedHeads, "patience", Patience(reading_s=0.4))


async def endless(received: Received, reply: Reply) -> None:
    """An answer without an end."""
    native = received.target.startswith("/v1/messages")
    events = capture("vllm-messages.sse") if native else chat({"content": WORDS})
    begun, word = events[:3], events[3] if native else events[0]
    if native:
        assert b"content_block_delta" in word
        head, _, data = word.partition(b"data: ")
        told = json.loads(data)
        told["delta"] = {
            key: WORDS if key != "type" else kind for key, kind in told["delta"].items()
        }
        word = head + b"data: " + json.dumps(told).encode() + b"\n\n"
    await reply.start()
    for event in begun if native else ():
        await reply.chunk(event)
    while not reply.gone.is_set():
        await reply.chunk(word)


def deaf(port: int, path: str, body: dict[str, Any]) -> socket.socket:
    """Asks, and reads no byte."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(data)}\r\n\r\n"
    client.sendall(head.encode() + data)
    return client


async def nobody_reads(path: str, route: Speaks) -> None:
    async with StubEngine(endless) as engine, gateway(engine.upstream, dialects=route) as served:
        client = deaf(served.port, path, STREAM)
        try:
            await until(lambda: engine.replies)
            await asyncio.wait_for(engine.replies[0].gone.wait(), 10)
            (row,) = await served.ended()
        finally:
            client.close()
        assert row.finish_reason == "aborted"
        assert served.meter.live() == ()


Runner = Callable[[Coroutine[Any, Any, None]], None]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("path", "route"),
    [(MESSAGES, NATIVE_ENGINE), (MESSAGES, TRANSLATED_ENGINE), (CHAT, NATIVE_ENGINE)],
    ids=["messages", "messages by chat", "chat"],
)
def test_a_client_that_stops_reading_has_left(run: Runner, path: str, route: Speaks) -> None:
    run(nobody_reads(path, route))


async def test_a_slow_reader_is_no_deaf_one() -> None:
    """It makes room less often than a buffer may stand full, but it goes on taking."""
    size = 120

    async def long(received: Received, reply: Reply) -> None:
        await reply.start()
        for _ in range(size):
            await reply.chunk(b"data: " + WORDS.encode() + b"\n\n")
        await reply.chunk(b"data: [DONE]\n\n")
        await reply.end()

    async with StubEngine(long) as engine, gateway(engine.upstream) as served:
        client = deaf(served.port, CHAT, STREAM)
        client.setblocking(False)
        loop, taken = asyncio.get_running_loop(), 0
        while piece := await loop.sock_recv(client, 65_536):
            taken += len(piece)
            if b"[DONE]" in piece:
                break
            await asyncio.sleep(0.004)
        client.close()
        (row,) = await served.ended()
    assert row.finish_reason != "aborted"
    assert taken > size * len(WORDS)


def test_the_kernel_ends_connections_to_machines_that_are_gone() -> None:
    with socket.socket() as connection:
        end_when_silent(connection, Patience())

        def told(level: int, option: int) -> int:
            return connection.getsockopt(level, option)

        assert told(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert told(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 24
        assert told(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 24
        assert told(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 4
        assert told(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 120_000


def test_a_unix_socket_is_left_as_it_is() -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        end_when_silent(connection, Patience())
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0


def test_every_connection_that_comes_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int, int]] = []

    class Watched(LimitedHeads):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            one = transport.get_extra_info("socket")
            alive = one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            found.append((alive, one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)))

    monkeypatch.setattr(stub, "LimitedHeads", Watched)

    async def connected() -> None:
        async with gateway(None) as served, call(served.port, "/health"):
            pass

    uvloop.run(connected())
    assert found == [(1, 120_000)]
