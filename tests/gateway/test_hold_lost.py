"""An engine that is lost before a token of its answer: who is sent again, and what stands."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import pytest

from a40console.gateway.hold import KEPT_BODY_BYTES, AdmissionGate, HoldLimits
from a40console.gateway.meter import Passage
from a40console.gateway.sessions import SessionBook
from tests.gateway.deaths import (
    DEATHS,
    cut_after_the_head,
    cut_before_the_head,
    dying,
    fails,
    living,
    tell_that_its_core_is_dead_in_the_stream,
)
from tests.gateway.holding import (
    CHAT,
    COUNT,
    QUICK,
    ROUTES,
    WHY,
    Breaks,
    asked,
    is_held,
    serve,
    switched,
)
from tests.gateway.messages_asked import ASK, MESSAGES, STREAM, chat
from tests.gateway.stub import (
    STOPPED,
    TRANSLATED_ENGINE,
    Answer,
    Received,
    Reply,
    Speaks,
    StubEngine,
    call,
    capture,
    gateway,
    until,
)
from tests.gateway.wire import read_stream


@ROUTES
@pytest.mark.parametrize("dies", DEATHS)
@pytest.mark.parametrize("stream", [True, False])
async def test_43_a_request_whose_engine_died_before_a_token_is_sent_once_more(
    path: str, route: Speaks, dies: Breaks, stream: bool
) -> None:
    resent: list[Passage] = []
    gate = AdmissionGate(patience_s=2, on_resent=resent.append)
    book = SessionBook()
    async with (
        StubEngine(dying(dies)) as first,
        StubEngine(serve, kind="llamacpp", served_name="other", run_id="run-2") as second,
        gateway(first.upstream, dialects=route, gate=gate, book=book) as served,
        asked(served, path, STREAM if stream else ASK) as answer,
    ):
        await until(lambda: first.requests)
        await asyncio.sleep(0.1)
        gate.close("the engine ended by itself and is started again")
        await is_held(served, gate)
        (row,) = served.meter.live()
        assert row.sent_at_s is None
        switched(served, gate, second)
        await answer.begin()
        told = await answer.body()
        (row,) = await served.ended()
        (record,) = book.records()
    assert answer.status == 200
    assert b"error" not in told
    if stream and path == MESSAGES:
        assert read_stream(told).message is not None
    elif stream:
        assert told.count(b'"role"') == 1
    (request,) = second.requests
    assert request.json["messages"] == first.requests[0].json["messages"]
    assert request.json.get("timings_per_token") == (
        True if stream and (path == CHAT or route is TRANSLATED_ENGINE) else None
    )
    assert (row.finish_reason, served.meter.counts().resent, len(resent)) == ("stop", 1, 1)
    assert (record.turns, len(record.entries), record.run_id) == (1, 1, None)
    assert (gate.under_way, served.budget.held_bytes) == (0, 0)


@ROUTES
@pytest.mark.parametrize("dies", DEATHS)
async def test_43_what_kills_the_next_engine_too_is_not_sent_a_third_time(
    path: str, route: Speaks, dies: Breaks
) -> None:
    gate = AdmissionGate(patience_s=0.5)
    async with (
        StubEngine(dying(dies)) as first,
        StubEngine(dying(dies), run_id="run-2") as second,
        gateway(first.upstream, dialects=route, gate=gate) as served,
        asked(served, path, STREAM) as answer,
    ):
        gate.close("the engine is started again")
        gate.open()
        await until(lambda: first.requests)
        gate.close("the engine ended by itself and is started again")
        await is_held(served, gate)
        switched(served, gate, second)
        await until(lambda: second.requests)
        gate.close("the engine ended by itself and is started again")
        await answer.begin()
        told = await answer.body()
        (row,) = await served.ended()
    asked_for = [one for one in (*first.requests, *second.requests) if one.body]
    assert len(asked_for) == 2
    assert b"error" in told
    assert (row.finish_reason, served.meter.counts().resent) == ("error", 1)
    assert gate.waiting == gate.under_way == 0


@ROUTES
async def test_43_after_a_first_token_nothing_is_sent_again(path: str, route: Speaks) -> None:
    async def begin_and_die(received: Received, reply: Reply) -> None:
        native = received.target.startswith("/v1/messages")
        events = capture("vllm-messages.sse")[:4] if native else chat({"content": "a"})[:1]
        await reply.start()
        for event in events:
            await reply.chunk(event)
        await asyncio.sleep(0.1)
        reply.kill()

    gate = AdmissionGate(patience_s=0.5)
    async with (
        StubEngine(begin_and_die) as engine,
        gateway(engine.upstream, dialects=route, gate=gate) as served,
        call(served.port, path, STREAM) as answer,
    ):
        gate.close(WHY)
        told = await answer.body()
        (row,) = await served.ended()
    assert b"cut short" in told
    assert (row.finish_reason, served.meter.counts().resent) == ("error", 0)
    assert len(engine.requests) == 1


@ROUTES
async def test_43_what_a_living_engine_answers_stands(path: str, route: Speaks) -> None:
    gate = AdmissionGate(patience_s=30)
    async with (
        StubEngine(living(fails)) as engine,
        gateway(engine.upstream, dialects=route, gate=gate) as served,
        call(served.port, path, ASK) as answer,
    ):
        assert (answer.status, "it went wrong" in str(await answer.json())) == (500, True)
    assert [one.target for one in engine.requests][1:] == ["/health"]


async def test_43_who_finds_the_engine_just_gone_is_held_and_not_counted_as_sent() -> None:
    gate = AdmissionGate(patience_s=5)
    async with StubEngine(serve) as gone:
        pass
    async with (
        StubEngine(serve, run_id="run-2") as second,
        gateway(gone.upstream, gate=gate) as served,
        asked(served, MESSAGES, STREAM) as answer,
    ):
        await until(lambda: gate.under_way == 1)
        await asyncio.sleep(0.2)
        gate.close("the engine ended by itself and is started again")
        await is_held(served, gate)
        switched(served, gate, second)
        await answer.begin()
        assert read_stream(await answer.body()).message is not None
        assert served.meter.counts().resent == 0


async def test_43_where_a_stop_cut_it_no_other_engine_is_waited_for() -> None:
    gate = AdmissionGate(patience_s=30)
    async with (
        StubEngine(dying(cut_before_the_head)) as engine,
        gateway(engine.upstream, gate=gate) as served,
        asked(served, MESSAGES, ASK) as answer,
    ):
        await until(lambda: engine.requests)
        served.state.upstream = None
        await answer.begin()
        assert answer.status == 503
        assert STOPPED.text in (await answer.json())["error"]["message"]


async def test_43_a_stream_that_had_its_status_is_held_with_pings_and_then_served() -> None:
    gate = AdmissionGate(patience_s=2)
    async with (
        StubEngine(dying(cut_after_the_head)) as first,
        StubEngine(serve, run_id="run-2") as second,
        gateway(first.upstream, gate=gate, timing=QUICK) as served,
    ):
        for path in (MESSAGES, CHAT):
            served.state.upstream = first.upstream
            async with call(served.port, path, STREAM) as answer:
                assert answer.status == 200
                gate.close("the engine ended by itself and is started again")
                await is_held(served, gate)
                await asyncio.sleep(0.35)
                switched(served, gate, second)
                told = await answer.body()
            assert told.count(b"ping") >= 3
            assert b"error" not in told
            assert b"message_stop" in told or told.endswith(b"data: [DONE]\n\n")


async def test_43_a_count_whose_engine_died_is_asked_of_the_next_one() -> None:
    gate = AdmissionGate(patience_s=2)
    async with (
        StubEngine(dying(cut_before_the_head)) as first,
        StubEngine(serve, run_id="run-2") as second,
        gateway(first.upstream, gate=gate) as served,
        asked(served, COUNT, ASK) as answer,
    ):
        await until(lambda: first.requests)
        gate.close("the engine ended by itself and is started again")
        await is_held(served, gate)
        switched(served, gate, second)
        await answer.begin()
        assert (answer.status, await answer.json()) == (200, {"input_tokens": 42})
    assert second.requests[0].json["messages"] == ASK["messages"]
    assert gate.under_way == 0


@ROUTES
async def test_43_what_a_living_engine_answers_stands_at_once_behind_a_closed_gate(
    path: str, route: Speaks
) -> None:
    gate = AdmissionGate(patience_s=30)
    async with (
        StubEngine(living(fails)) as engine,
        gateway(engine.upstream, dialects=route, gate=gate) as served,
        asked(served, path, ASK) as answer,
    ):
        await until(lambda: engine.requests)
        gate.close("admission is paused")
        began_s = time.monotonic()
        await answer.begin()
        assert (answer.status, "it went wrong" in str(await answer.json())) == (500, True)
        assert await gate.drained(5) == 0
        assert time.monotonic() - began_s < 2
    assert [one.target for one in engine.requests][1:] == ["/health"]


@ROUTES
async def test_43_an_error_that_a_living_engine_streams_ends_the_drain_too(
    path: str, route: Speaks
) -> None:
    async def fails_later(received: Received, reply: Reply) -> None:
        await asyncio.sleep(0.1)
        await tell_that_its_core_is_dead_in_the_stream(received, reply)

    gate = AdmissionGate(patience_s=30)
    async with (
        StubEngine(living(fails_later)) as engine,
        gateway(engine.upstream, dialects=route, gate=gate) as served,
        asked(served, path, STREAM) as answer,
    ):
        await until(lambda: engine.requests)
        gate.close("b is started in place of a")
        await answer.begin()
        assert b"error" in await answer.body()
        assert await gate.drained(2) == 0
    assert served.meter.counts().resent == 0


@ROUTES
@pytest.mark.parametrize("is_closed", [True, False])
async def test_43_patience_ends_by_the_clock_however_long_a_look_lasts(
    path: str, route: Speaks, is_closed: bool
) -> None:
    async def hangs(received: Received, reply: Reply) -> None:
        if received.target == "/health":
            await reply.gone.wait()
        else:
            reply.kill()

    gate = AdmissionGate(patience_s=0.6)
    async with (
        StubEngine(hangs) as engine,
        gateway(engine.upstream, dialects=route, gate=gate) as served,
        asked(served, path, ASK) as answer,
    ):
        if is_closed:
            await until(lambda: engine.requests)
            gate.close("b is started in place of a")
        began_s = time.monotonic()
        await answer.begin()
        assert answer.status in {500, 502, 503}
        assert time.monotonic() - began_s < 1.8
        assert await gate.drained(1) == 0


@ROUTES
async def test_43_who_is_sent_again_stands_before_all_that_came_later(
    path: str, route: Speaks
) -> None:
    gate = AdmissionGate(HoldLimits(requests=2), patience_s=5)
    going = asyncio.Event()

    async def die_together(received: Received, reply: Reply) -> None:
        await going.wait()
        reply.kill()

    def saying(number: int) -> dict[str, object]:
        return {**ASK, "messages": [{"role": "user", "content": f"number {number}"}]}

    async with (
        StubEngine(dying(die_together)) as first,
        StubEngine(serve, run_id="run-2") as second,
        gateway(first.upstream, dialects=route, gate=gate) as served,
        AsyncExitStack() as clients,
    ):

        async def come(number: int) -> Answer:
            answer: Answer = await clients.enter_async_context(asked(served, path, saying(number)))
            return answer

        answers = [await come(1)]
        await until(lambda: gate.under_way == 1)
        answers.append(await come(2))
        await until(lambda: gate.under_way == 2 and len(first.requests) == 2)
        gate.close("the engine ended by itself and is started again")
        for number in (3, 4):
            answers.append(await come(number))
            await is_held(served, gate, number - 2)
        going.set()
        await is_held(served, gate, 4)
        async with call(served.port, path, saying(5)) as refused:
            assert refused.status in {503, 529}
        switched(served, gate, second)
        for answer in answers:
            await answer.begin()
            assert answer.status == 200
            await answer.body()
    came = [one.json["messages"][0]["content"] for one in second.requests]
    assert came == ["number 1", "number 2", "number 3", "number 4"]
    assert gate.waiting == gate.held_bytes == gate.under_way == 0


async def test_43_what_was_not_kept_is_told_and_stands() -> None:
    unkept: list[tuple[Passage, int]] = []
    gate = AdmissionGate(
        patience_s=2, on_unkept=lambda passage, size: unkept.append((passage, size))
    )
    large = {**ASK, "messages": [{"role": "user", "content": "a" * KEPT_BODY_BYTES}]}
    async with (
        StubEngine(dying(cut_before_the_head)) as engine,
        gateway(engine.upstream, gate=gate) as served,
        asked(served, CHAT, large) as answer,
    ):
        await until(lambda: engine.requests)
        gate.close("the engine ended by itself and is started again")
        await answer.begin()
        assert answer.status in {502, 503}
    ((passage, size),) = unkept
    assert (passage.route, size > KEPT_BODY_BYTES) == ("chat", True)
    assert served.meter.counts().resent == 0


async def test_a_refusal_within_a_stream_has_the_status_that_went_out() -> None:
    gate = AdmissionGate(HoldLimits(seconds=0.5), patience_s=0.5)
    gate.close(WHY)
    async with (
        gateway(None, timing=QUICK, gate=gate) as served,
        call(served.port, CHAT, STREAM) as answer,
    ):
        assert WHY.encode() in await answer.body()
        (row,) = await served.ended()
    assert (answer.status, row.status) == (200, 200)


@ROUTES
@pytest.mark.parametrize("stream", [True, False])
async def test_behind_a_pause_alone_no_other_engine_is_waited_for(
    path: str, route: Speaks, stream: bool
) -> None:
    resent: list[Passage] = []
    gate = AdmissionGate(patience_s=5, on_resent=resent.append)
    async with (
        StubEngine(dying(cut_before_the_head)) as engine,
        gateway(engine.upstream, dialects=route, gate=gate) as served,
        asked(served, path, STREAM if stream else ASK) as answer,
    ):
        await until(lambda: engine.requests)
        gate.close("admission is paused by alice", engine_expected=False)
        served.state.upstream = None
        await answer.begin()
        told = await answer.body()
    assert STOPPED.text.encode() in told
    assert (resent, gate.waiting, served.meter.counts().resent) == ([], 0, 0)
