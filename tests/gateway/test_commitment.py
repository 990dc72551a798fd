"""The status comes in time and the connection is held, through a queue, a prefill, any silence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self

import pytest

from a40console.gateway.anthropic.commitment import TIMING, Outlet, Timing
from tests.gateway.messages_asked import ASK, MESSAGES, STREAM, chat
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
)
from tests.gateway.wire import read_stream

QUICK = Timing(commit_after_s=0.2, ping_every_s=0.1)
PROXY_PATIENCE_S = 0.35


def test_what_is_promised_to_proxies_and_clients() -> None:
    assert TIMING.commit_after_s == 15
    assert TIMING.ping_every_s < 10


async def slow_head(received: Received, reply: Reply) -> None:
    """As llama.cpp: no head before the prefill is done."""
    await asyncio.sleep(0.8)
    await play(received, reply)


async def slow_prefill(received: Received, reply: Reply) -> None:
    """As vLLM: the head at once, the first event after the prefill."""
    await reply.start()
    await asyncio.sleep(0.8)
    await play(received, reply, started=True)


async def slow_middle(received: Received, reply: Reply) -> None:
    """A tool parser that keeps a whole call back."""
    await play(received, reply, pause_s=0.8)


async def play(
    received: Received, reply: Reply, *, started: bool = False, pause_s: float = 0.0
) -> None:
    native = received.target.startswith("/v1/messages")
    events = capture("vllm-messages.sse") if native else chat({"content": "a"}, {"content": "b"})
    if not started:
        await reply.start()
    for event in events[:2]:
        await reply.chunk(event)
    await asyncio.sleep(pause_s)
    for event in events[2:]:
        await reply.chunk(event)
    await reply.end()


class ImpatientProxy:
    """Cuts a connection on which nothing comes back for so long, as those in front of pods do."""

    def __init__(self, port: int, patience_s: float) -> None:
        self.silences: list[float] = []
        self._engine_port = port
        self._patience_s = patience_s
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, up = await asyncio.open_connection("127.0.0.1", self._engine_port)
        asking = asyncio.create_task(_pump(reader, up))
        try:
            while data := await self._patiently(back):
                writer.write(data)
        except TimeoutError:
            writer.transport.abort()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            up.close()
            writer.close()

    async def _patiently(self, reader: asyncio.StreamReader) -> bytes:
        began = time.monotonic()
        async with asyncio.timeout(self._patience_s):
            data = await reader.read(65536)
        self.silences.append(time.monotonic() - began)
        return data


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)


@pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])
@pytest.mark.parametrize("engine_does", [slow_head, slow_prefill, slow_middle])
async def test_35_36_pings_hold_a_proxy_that_cuts_what_is_silent(
    route: Speaks, engine_does: Callable[[Received, Reply], Awaitable[None]]
) -> None:
    async with (
        StubEngine(engine_does) as engine,
        gateway(engine.upstream, dialects=route, timing=QUICK) as served,
        ImpatientProxy(served.port, PROXY_PATIENCE_S) as proxy,
        call(proxy.port, MESSAGES, STREAM) as answer,
    ):
        assert answer.status == 200
        read = read_stream(await answer.body())
    assert read.message is not None
    assert read.pings >= 4
    assert max(proxy.silences) < PROXY_PATIENCE_S


async def test_35_without_a_stream_the_same_proxy_cuts_a_long_prefill() -> None:
    async with (
        StubEngine(slow_head) as engine,
        gateway(engine.upstream, timing=QUICK) as served,
        ImpatientProxy(served.port, PROXY_PATIENCE_S) as proxy,
    ):
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            async with call(proxy.port, MESSAGES, ASK):
                pass
        (row,) = await served.ended()
    assert row.finish_reason == "aborted"


async def test_the_status_waits_for_the_engines_as_long_as_it_may() -> None:
    async def refuse(received: Received, reply: Reply) -> None:
        await asyncio.sleep(0.1)
        await reply.whole(b'{"error": {"message": "no"}}', 400)

    async with (
        StubEngine(refuse) as engine,
        gateway(engine.upstream, timing=Timing(commit_after_s=5)) as served,
        call(served.port, MESSAGES, STREAM) as answer,
    ):
        assert answer.status == 400


async def test_an_engine_that_is_slow_to_answer_is_waited_for_with_the_status_sent() -> None:
    async def slow(received: Received, reply: Reply) -> None:
        await asyncio.sleep(0.6)
        await play(received, reply)

    async with (
        StubEngine(slow) as engine,
        gateway(engine.upstream, timing=QUICK) as served,
    ):
        began = time.monotonic()
        async with call(served.port, MESSAGES, STREAM) as answer:
            headed_s = time.monotonic() - began
            read = read_stream(await answer.body())
    assert 0.15 < headed_s < 0.5
    assert read.message is not None


async def test_nothing_but_the_answer_is_sent_while_it_flows() -> None:
    events = capture("vllm-messages.sse")

    async def flow(received: Received, reply: Reply) -> None:
        await reply.start()
        for event in events:
            await reply.chunk(event)
            await asyncio.sleep(0.02)
        await reply.end()

    async with (
        StubEngine(flow) as engine,
        gateway(engine.upstream, timing=QUICK) as served,
        call(served.port, MESSAGES, STREAM) as answer,
    ):
        assert read_stream(await answer.body()).pings == 0


class Sent:
    """What an ASGI application sends, on a clock that a test moves."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.at_s: list[float] = []

    async def __call__(self, message: Any) -> None:
        self.messages.append(message)
        self.at_s.append(asyncio.get_running_loop().time())


class ScriptedLoop(asyncio.SelectorEventLoop):
    """Time passes only where everything waits, and then at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        timers = self._scheduled  # type: ignore[attr-defined]
        due_s = [timer.when() for timer in timers if not timer.cancelled()]
        if not self._ready and due_s:  # type: ignore[attr-defined]
            self.now_s = max(self.now_s, min(due_s))
        super()._run_once()  # type: ignore[misc]


def test_five_minutes_of_prefill_have_a_ping_at_least_every_ten_seconds() -> None:
    sent = Sent()

    async def prefill() -> None:
        outlet = Outlet(sent, "a40-1", TIMING)
        await outlet.commit(waiting=True)
        await asyncio.sleep(300)
        await outlet.write(b"event: x\n\n")
        await asyncio.sleep(25)
        await outlet.finish(b"end")
        await asyncio.sleep(100)

    loop = ScriptedLoop()
    loop.run_until_complete(prefill())
    loop.close()
    assert sent.messages[0]["status"] == 200
    gaps = [later - one for one, later in zip(sent.at_s, sent.at_s[1:], strict=False)]
    assert max(gaps) <= 10
    assert sent.messages[1]["body"] == b'event: ping\ndata: {"type":"ping"}\n\n'
    assert sent.messages[-1] == {"type": "http.response.body", "body": b"end", "more_body": False}
    assert sent.at_s[-1] == 325
    assert 30 <= len(sent.messages) <= 50
