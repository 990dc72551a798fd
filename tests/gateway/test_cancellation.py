"""A client that leaves frees the engine within a second, wherever its answer has come to."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from a40console.gateway.anthropic.commitment import TIMING, Timing
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
    until,
)

QUICK = Timing(commit_after_s=0.02, ping_every_s=0.05)


async def before_headers(received: Received, reply: Reply) -> None:
    return


async def in_prefill(received: Received, reply: Reply) -> None:
    await reply.start()


async def in_decode(received: Received, reply: Reply) -> None:
    native = received.target.startswith("/v1/messages")
    events = capture("vllm-messages.sse") if native else chat({"content": "a"}, {"content": "b"})
    await reply.start()
    for event in events[: 6 if native else 2]:
        await reply.chunk(event)


async def in_a_whole_answer(received: Received, reply: Reply) -> None:
    await reply.start(headers={"content-type": "application/json"})
    await reply.chunk(b'{"choices":')


async def in_an_error(received: Received, reply: Reply) -> None:
    await reply.start(500, {"content-type": "application/json"})
    await reply.chunk(b'{"error":')


@pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])
@pytest.mark.parametrize("timing", [TIMING, QUICK], ids=["no status yet", "status sent"])
@pytest.mark.parametrize(
    ("body", "progress"),
    [
        (STREAM, before_headers), (STREAM, in_prefill), (STREAM, in_decode), (STREAM, in_an_error),
        (ASK, before_headers), (ASK, in_a_whole_answer), (ASK, in_an_error),
    ],
)  # fmt: skip
async def test_33_replay_38_the_engine_is_free_within_a_second(
    route: Speaks, timing: Timing, body: dict[str, Any], progress: Any
) -> None:
    async def answer_and_wait(received: Received, reply: Reply) -> None:
        await progress(received, reply)
        await reply.gone.wait()

    async with (
        StubEngine(answer_and_wait) as engine,
        gateway(engine.upstream, dialects=route, timing=timing) as served,
    ):
        async with call(served.port, MESSAGES, body, begin=False) as answer:
            await until(lambda: engine.replies)
            await asyncio.sleep(0.1)
            answer.leave()
            left_at = time.monotonic()
        await asyncio.wait_for(engine.replies[0].gone.wait(), 1)
        assert engine.replies[0].gone_at is not None
        assert engine.replies[0].gone_at - left_at < 1
        (row,) = await served.ended()
        counts = served.meter.counts()
        assert served.budget.held_bytes == 0
    assert (row.finish_reason, counts.aborted, counts.failed) == ("aborted", 1, 0)
    assert (row.characters > 0) == (progress is in_decode)


async def test_33_a_client_that_leaves_while_the_engine_is_not_known_never_reaches_it() -> None:
    class Asking:
        async def of(self, upstream: object) -> Any:
            await asyncio.sleep(60)

    async with (
        StubEngine(before_headers) as engine,
        gateway(engine.upstream, dialects=Asking()) as served,
    ):
        async with call(served.port, MESSAGES, STREAM, begin=False) as answer:
            await until(served.meter.live)
            await asyncio.sleep(0.05)
            answer.leave()
        await until(lambda: served.meter.counts().aborted == 1, 1)
        assert engine.requests == []


async def test_33_a_client_that_closes_in_good_order_has_left_as_well() -> None:
    """Esc in Claude Code: the connection is closed, not torn."""

    async def answer_and_wait(received: Received, reply: Reply) -> None:
        await in_decode(received, reply)
        await reply.gone.wait()

    async with StubEngine(answer_and_wait) as engine, gateway(engine.upstream) as served:
        async with call(served.port, MESSAGES, STREAM):
            await until(lambda: any(row.characters for row in served.meter.live()))
        await asyncio.wait_for(engine.replies[0].gone.wait(), 1)
        await until(lambda: served.meter.counts().aborted == 1, 1)


async def test_128_clients_that_leave_at_once_leave_nothing_behind() -> None:
    async def answer_and_wait(received: Received, reply: Reply) -> None:
        await in_decode(received, reply)
        await reply.gone.wait()

    async with StubEngine(answer_and_wait) as engine, gateway(engine.upstream) as served:
        before = len(asyncio.all_tasks())

        async def begin_and_leave() -> None:
            async with call(served.port, MESSAGES, STREAM) as answer:
                await until(
                    lambda: sum(bool(row.characters) for row in served.meter.live()) >= 128, 20
                )
                answer.leave()

        leaving = [asyncio.create_task(begin_and_leave()) for _ in range(128)]
        await asyncio.wait(leaving, timeout=30)
        await until(lambda: served.meter.counts().aborted == 128)
        assert all(reply.gone.is_set() for reply in engine.replies)
        await until(lambda: len(asyncio.all_tasks()) <= before + 2)
