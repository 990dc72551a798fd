"""Streams that break, and clients that leave."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from a40console.gateway.bodies import MIB
from tests.gateway.playing import playing
from tests.gateway.streams_asked import CHAT, MESSAGES, STREAM, silent
from tests.gateway.stub import (
    SSE,
    Received,
    Reply,
    StubEngine,
    call,
    capture,
    events_of,
    gateway,
    until,
)

# --- streams that break ------------------------------------------------------------------------


@pytest.mark.parametrize("killed", [True, False])
async def test_an_openai_stream_that_breaks_ends_with_an_error(killed: bool) -> None:
    first = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'

    async def break_off(received: Received, reply: Reply) -> None:
        await reply.start()
        await reply.chunk(first)
        await reply.chunk(b'data: {"choi')
        await asyncio.sleep(0.02)
        if killed:
            reply.kill()
        else:
            await reply.end()

    async with StubEngine(break_off) as engine, gateway(engine.upstream) as served:
        async with call(served.port, CHAT, STREAM) as answer:
            got = events_of(await answer.body())
        (row,) = await served.ended()
    assert (got[0], got[2]) == (first, b"data: [DONE]\n\n")
    assert "cut short" in json.loads(got[1][6:])["error"]["message"]
    assert (row.finish_reason, served.meter.counts().failed) == ("error", 1)


async def test_an_error_that_the_engine_reports_itself_passes_alone() -> None:
    events = capture("vllm-chat-killed.sse")
    async with StubEngine(playing(events), plugin=True) as engine:
        async with gateway(engine.upstream) as served, call(served.port, CHAT, STREAM) as answer:
            assert await answer.body() == b"".join(events)
        await served.ended(1)
        assert served.meter.counts().failed == 1


# --- clients that leave ------------------------------------------------------------------------


async def before_headers(reply: Reply) -> None:
    return


async def before_first_token(reply: Reply) -> None:
    await reply.start()
    await reply.chunk(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n')


async def mid_stream(reply: Reply) -> None:
    await reply.start()
    for _ in range(5):
        await reply.chunk(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n')


async def within_a_whole_answer(reply: Reply) -> None:
    await reply.start(headers={"content-type": "application/json"})
    await reply.chunk(b'{"choices":')


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize(
    ("progress", "characters"),
    [(before_headers, 0), (before_first_token, 0), (mid_stream, 5), (within_a_whole_answer, 0)],
)
async def test_a_client_that_leaves_frees_the_engine_at_once(
    path: str, progress: Any, characters: int
) -> None:
    async def answer_and_wait(received: Received, reply: Reply) -> None:
        await progress(reply)
        await reply.gone.wait()

    async with StubEngine(answer_and_wait) as engine, gateway(engine.upstream) as served:
        async with call(served.port, path, STREAM, begin=False) as answer:
            await until(lambda: engine.replies)
            await asyncio.sleep(0.05)
            answer.leave()
            left_at = time.monotonic()
        await asyncio.wait_for(engine.replies[0].gone.wait(), 1)
        assert engine.replies[0].gone_at is not None
        assert engine.replies[0].gone_at - left_at < 1
        (row,) = await served.ended()
        counts = served.meter.counts()
    assert (row.finish_reason, counts.aborted, counts.failed) == ("aborted", 1, 0)
    assert row.characters == (characters if path == CHAT else 0)
    assert served.budget.held_bytes == 0


async def test_a_client_that_leaves_while_it_sends_never_reaches_the_engine() -> None:
    async with StubEngine(silent) as engine, gateway(engine.upstream) as served:
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(
            b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{"
        )
        await until(lambda: served.budget.held_bytes == 99)
        writer.transport.abort()
        await until(lambda: served.meter.counts().aborted == 1)
        assert (engine.requests, served.budget.held_bytes) == ([], 0)


async def test_a_slow_client_holds_the_engine_back_rather_than_our_memory() -> None:
    sent = 0
    event = b"data: " + b"x" * 60_000 + b"\n\n"

    async def flood(received: Received, reply: Reply) -> None:
        nonlocal sent
        await reply.start(headers=SSE)
        for _ in range(2000):
            await reply.chunk(event)
            sent += len(event)
        await reply.end()

    async with (
        StubEngine(flood, plugin=True) as engine,
        gateway(engine.upstream) as served,
        call(served.port, CHAT, STREAM),
    ):
        await asyncio.sleep(0.5)
        before = sent
        await asyncio.sleep(0.3)
        assert sent == before
    assert sent < 20_000_000


async def test_a_long_answer_that_breaks_stays_without_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def breaks(received: Received, reply: Reply) -> None:
        await reply.start(headers={"content-type": "application/json"})
        for _ in range(6):
            await reply.chunk(b"x" * MIB)
        await asyncio.sleep(0.1)
        reply.kill()

    async with StubEngine(breaks) as engine, gateway(engine.upstream) as served:
        async with call(served.port, CHAT, STREAM) as answer:
            assert answer.status == 200
            with pytest.raises((asyncio.IncompleteReadError, ValueError)):
                await answer.body()
        (row,) = await served.ended()
    assert row.finish_reason == "error"
    assert not any(record.exc_info for record in caplog.records)
