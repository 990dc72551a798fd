"""Requests on a real port while no engine can take them: held, served and bounded.

Row 43 of the bug replays: a request during a model switch of 40 s timed out, or failed at once.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from a40console.gateway.hold import AdmissionGate, HoldLimits
from a40console.gateway.session_phase import standing
from a40console.gateway.sessions import SessionBook
from tests.gateway.holding import (
    CHAT,
    COMPLETIONS,
    COUNT,
    QUICK,
    WHY,
    asked,
    closed,
    is_held,
    serve,
    serve_rest,
    switched,
)
from tests.gateway.messages_asked import ASK, MESSAGES, STREAM, chat
from tests.gateway.stub import (
    NATIVE_ENGINE,
    STOPPED,
    TRANSLATED_ENGINE,
    Received,
    Reply,
    Speaks,
    StubEngine,
    call,
    events_of,
    gateway,
    until,
)
from tests.gateway.wire import read_stream


@pytest.mark.parametrize(
    ("path", "body", "route"),
    [
        (MESSAGES, STREAM, NATIVE_ENGINE),
        (MESSAGES, ASK, NATIVE_ENGINE),
        (MESSAGES, STREAM, TRANSLATED_ENGINE),
        (MESSAGES, ASK, TRANSLATED_ENGINE),
        (CHAT, STREAM, NATIVE_ENGINE),
        (CHAT, ASK, NATIVE_ENGINE),
        (COMPLETIONS, {"model": "old", "prompt": "a", "stream": True}, NATIVE_ENGINE),
        (COMPLETIONS, {"model": "old", "prompt": "a"}, NATIVE_ENGINE),
        (COUNT, ASK, NATIVE_ENGINE),
    ],
)
async def test_43_every_route_waits_for_the_engine_that_comes(
    path: str, body: dict[str, Any], route: Speaks
) -> None:
    gate = closed()
    async with (
        StubEngine(serve) as engine,
        gateway(None, dialects=route, gate=gate) as served,
        asked(served, path, body) as answer,
    ):
        await is_held(served, gate)
        assert engine.requests == []
        for row in served.meter.live():
            assert (row.sent_at_s, row.session, row.model) == (None, "7f3a", body["model"])
        switched(served, gate, engine)
        await answer.begin()
        assert answer.status == 200
        told = await answer.body()
        await until(lambda: gate.under_way == 0)
    assert b"hi" in told or b"42" in told or b"message_stop" in told
    assert len(engine.requests) == 1
    assert served.budget.held_bytes == gate.held_bytes == 0


async def test_43_who_is_held_is_seen_with_how_long() -> None:
    gate, book = closed(), SessionBook()
    body = {**ASK, "metadata": {"user_id": json.dumps({"session_id": "from-the-body"})}}
    async with (
        StubEngine(serve) as engine,
        gateway(None, book=book, gate=gate) as served,
        call(served.port, MESSAGES, body, begin=False) as answer,
    ):
        await is_held(served, gate)
        (record,) = book.records()
        began_s = record.started_s
        assert record.session == "from-the-body"
        here = standing(record, {}, began_s + 41)
        assert (here.phase, round(began_s + 41 - here.since_s)) == ("held", 41)
        switched(served, gate, engine)
        await answer.begin()
        await answer.body()
        await served.ended()
        assert record.held == {}
        assert standing(record, {}, began_s + 41).phase == "idle"
        assert record.turns == 1


async def test_43_they_reach_the_engine_in_the_order_in_which_they_came() -> None:
    gate = closed()
    async with StubEngine(serve) as engine, gateway(None, gate=gate) as served:
        asking = []
        for number in range(12):
            body = {**ASK, "messages": [{"role": "user", "content": f"number {number}"}]}
            asking.append(asyncio.create_task(_whole(served.port, MESSAGES, body)))
            await is_held(served, gate, number + 1)
        switched(served, gate, engine)
        assert await asyncio.gather(*asking) == [200] * 12
    came = [one.json["messages"][0]["content"] for one in engine.requests]
    assert came == [f"number {number}" for number in range(12)]


async def _whole(port: int, path: str, body: dict[str, Any]) -> int:
    async with call(port, path, body) as answer:
        await answer.body()
        return answer.status


@pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])
async def test_43_a_stream_of_messages_has_its_status_and_pings_while_it_waits(
    route: Speaks,
) -> None:
    gate = closed()
    async with (
        StubEngine(serve) as engine,
        gateway(None, dialects=route, timing=QUICK, gate=gate) as served,
        call(served.port, MESSAGES, STREAM) as answer,
    ):
        assert (answer.status, gate.waiting) == (200, 1)
        await asyncio.sleep(0.5)
        switched(served, gate, engine)
        read = read_stream(await answer.body())
        (row,) = await served.ended()
    assert read.message is not None
    assert read.pings >= 4
    assert row.status == 200


async def test_43_an_openai_stream_has_comments_while_it_waits_and_through_the_prefill() -> None:
    async def slowly(received: Received, reply: Reply) -> None:
        await reply.start()
        await asyncio.sleep(0.5)
        for event in chat({"role": "assistant", "content": ""}, {"content": "hi"}):
            await reply.chunk(event)
        await reply.end()

    gate = closed()
    async with (
        StubEngine(slowly) as engine,
        gateway(None, timing=QUICK, gate=gate) as served,
        call(served.port, CHAT, STREAM) as answer,
    ):
        assert (answer.status, gate.waiting) == (200, 1)
        assert answer.headers["content-type"].startswith("text/event-stream")
        await asyncio.sleep(0.35)
        switched(served, gate, engine)
        events = events_of(await answer.body())
    pings = [event for event in events if event == b": ping\n\n"]
    said = [event for event in events if event != b": ping\n\n"]
    assert len(pings) >= 6
    assert said[-1] == b"data: [DONE]\n\n"
    assert json.loads(said[1][6:])["choices"][0]["delta"] == {"content": "hi"}


async def test_43_an_openai_stream_that_waits_a_moment_has_the_engines_own_head() -> None:
    gate = closed()
    async with (
        StubEngine(serve) as engine,
        gateway(None, gate=gate) as served,
        asked(served, CHAT, STREAM) as answer,
    ):
        await is_held(served, gate)
        switched(served, gate, engine)
        await answer.begin()
        assert b": ping" not in await answer.body()


@pytest.mark.parametrize(("path", "waiting"), [(MESSAGES, 0.5), (CHAT, 0.5), (CHAT, 0.0)])
async def test_43_what_the_next_engine_refuses_is_told_in_the_stream_or_by_its_status(
    path: str, waiting: float
) -> None:
    async def refuse(received: Received, reply: Reply) -> None:
        await reply.whole(b'{"error": {"message": "no such thing", "type": "x"}}', 400)

    gate = closed()
    async with (
        StubEngine(refuse) as engine,
        gateway(None, timing=QUICK, gate=gate) as served,
        asked(served, path, STREAM) as answer,
    ):
        await is_held(served, gate)
        await asyncio.sleep(waiting)
        switched(served, gate, engine)
        await answer.begin()
        told = await answer.body()
        (row,) = await served.ended()
    assert b"no such thing" in told
    assert answer.status == (200 if waiting else 400)
    assert row.finish_reason == "error"
    if waiting and path == CHAT:
        assert told.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        (MESSAGES, 529, "overloaded_error"),
        (COUNT, 529, "overloaded_error"),
        (CHAT, 503, "service_unavailable"),
        (COMPLETIONS, 503, "service_unavailable"),
    ],
)
@pytest.mark.parametrize("limits", [HoldLimits(requests=1), HoldLimits(bytes=200)])
async def test_43_beyond_the_bounds_a_client_is_told_when_to_come_back(
    path: str, status: int, kind: str, limits: HoldLimits
) -> None:
    gate = closed(limits)
    async with gateway(None, gate=gate) as served, asked(served, MESSAGES, STREAM):
        await is_held(served, gate)
        async with call(served.port, path, STREAM) as answer:
            error = (await answer.json())["error"]
        assert (answer.status, error["type"]) == (status, kind)
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.headers["x-should-retry"] == "true"
        assert WHY in error["message"]
        assert gate.waiting == 1
        if path != COUNT:
            (row,) = await served.ended()
            assert row.status == status


@pytest.mark.parametrize("path", [MESSAGES, CHAT])
@pytest.mark.parametrize("stream", [True, False])
async def test_43_who_waits_too_long_is_told_in_the_grammar_of_what_was_begun(
    path: str, stream: bool
) -> None:
    gate = closed(HoldLimits(seconds=0.5))
    async with (
        gateway(None, timing=QUICK, gate=gate) as served,
        call(served.port, path, STREAM if stream else ASK) as answer,
    ):
        told = await answer.body()
        (row,) = await served.ended()
    assert WHY.encode() in told
    if not stream:
        assert answer.status == (529 if path == MESSAGES else 503)
        assert "retry-after" in answer.headers
    elif path == MESSAGES:
        read = read_stream(told)
        assert read.error is not None
        assert read.error["type"] == "overloaded_error"
    else:
        *_, error, done = events_of(told)
        assert json.loads(error[6:])["error"]["code"] == 503
        assert done == b"data: [DONE]\n\n"
    assert row.finish_reason == "error"
    assert gate.waiting == gate.held_bytes == 0


async def test_43_where_none_is_expected_nothing_is_held() -> None:
    async with gateway(None, gate=AdmissionGate()) as served:
        for path in (MESSAGES, CHAT, COMPLETIONS, COUNT):
            async with call(served.port, path, STREAM) as answer:
                assert (answer.status, answer.headers["retry-after"]) == (503, "30")
                assert (await answer.json())["error"]["message"] == STOPPED.text


async def test_43_where_the_switch_came_to_nothing_they_are_told_why() -> None:
    gate = closed()
    async with gateway(None, gate=gate) as served, asked(served, MESSAGES, STREAM) as answer:
        await is_held(served, gate)
        gate.open()
        await answer.begin()
        assert (answer.status, answer.headers["retry-after"]) == (503, "30")
        assert STOPPED.text in (await answer.json())["error"]["message"]


@pytest.mark.parametrize("path", [MESSAGES, CHAT, COUNT])
async def test_43_a_client_that_leaves_frees_its_place_at_once(path: str) -> None:
    gate = closed(HoldLimits(requests=1))
    async with StubEngine(serve) as engine, gateway(None, gate=gate) as served:
        async with asked(served, path, STREAM) as answer:
            await is_held(served, gate)
            assert gate.held_bytes > 0
            answer.leave()
            assert await until(lambda: gate.waiting == 0) < 1
        assert gate.held_bytes == 0
        await until(lambda: served.budget.held_bytes == 0)
        async with asked(served, path, STREAM) as answer:
            await is_held(served, gate)
            switched(served, gate, engine)
            await answer.begin()
            assert answer.status == 200
            await answer.body()
        await until(lambda: gate.under_way == 0)
    assert len(engine.requests) == 1
    if path != COUNT:
        assert served.meter.counts().aborted == 1


@pytest.mark.parametrize("path", [MESSAGES, CHAT])
async def test_drained_counts_what_the_engine_still_has_and_nothing_else(path: str) -> None:
    going = asyncio.Event()

    async def answer_later(received: Received, reply: Reply) -> None:
        await reply.start()
        await going.wait()
        await serve_rest(received, reply)

    gate = AdmissionGate()
    async with (
        StubEngine(answer_later) as engine,
        gateway(engine.upstream, gate=gate) as served,
        call(served.port, path, STREAM) as running,
    ):
        gate.close(WHY)
        async with asked(served, path, STREAM) as answer:
            await is_held(served, gate)
            assert await gate.drained(0.1) == 1
            going.set()
            await running.body()
            assert await gate.drained(5) == 0
            assert gate.waiting == 1
            gate.open()
            await answer.begin()
            await answer.body()
