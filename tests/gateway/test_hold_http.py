"""Requests on a real port while no engine can take them: held, served, bounded, and sent again.

Row 43 of the bug replays: a request during a model switch of 40 s timed out, or failed at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from a40console.gateway.anthropic.commitment import Timing
from a40console.gateway.hold import AdmissionGate, HoldLimits
from a40console.gateway.meter import Passage
from a40console.gateway.session_phase import standing
from a40console.gateway.sessions import SessionBook
from tests.gateway.messages_asked import ASK, MESSAGES, STREAM, chat
from tests.gateway.stub import (
    NATIVE_ENGINE,
    STOPPED,
    TRANSLATED_ENGINE,
    Answer,
    Gateway,
    Received,
    Reply,
    Speaks,
    StubEngine,
    call,
    capture,
    events_of,
    gateway,
    until,
)
from tests.gateway.wire import read_stream

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
COUNT = "/v1/messages/count_tokens?beta=true"
QUICK = Timing(commit_after_s=0.2, ping_every_s=0.1)
WHY = "the engine is switched to kimi-linear"
SESSION = {"x-claude-code-session-id": "7f3a", "user-agent": "claude-cli/2.1.0"}
Breaks = Callable[[Received, Reply], Awaitable[None]]


async def serve(received: Received, reply: Reply) -> None:
    """As an engine of any API answers."""
    if "count_tokens" in received.target:
        await reply.whole(b'{"input_tokens": 42}')
    elif received.target == "/health":
        await reply.whole(b"")
    elif received.json.get("stream"):
        native = received.target.startswith("/v1/messages")
        await reply.start()
        for event in (
            capture("vllm-messages.sse")
            if native
            else chat({"role": "assistant", "content": ""}, {"content": "hi"})
        ):
            await reply.chunk(event)
        await reply.end()
    else:
        await reply.whole(json.dumps(whole_answer(received.target)).encode())


def whole_answer(target: str) -> dict[str, Any]:
    if target.startswith("/v1/messages"):
        said = {"type": "message", "content": [{"type": "text", "text": "hi"}]}
        return {**said, "stop_reason": "end_turn", "usage": {"output_tokens": 1}}
    choice = {"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}


@asynccontextmanager
async def asked(served: Gateway, path: str, body: dict[str, Any]) -> AsyncIterator[Answer]:
    """A client that has sent its request and reads nothing yet."""
    async with call(served.port, path, body, SESSION, begin=False) as answer:
        yield answer


async def is_held(served: Gateway, gate: AdmissionGate, number: int = 1) -> None:
    await until(lambda: gate.waiting == number)


def closed(limits: HoldLimits | None = None, patience_s: float = 2.0) -> AdmissionGate:
    gate = AdmissionGate(limits or HoldLimits(), patience_s=patience_s)
    gate.close(WHY)
    return gate


def switched(served: Gateway, gate: AdmissionGate, engine: StubEngine) -> None:
    """Another engine serves."""
    served.state.upstream = engine.upstream
    gate.open()


# --- held, then served -----------------------------------------------------------------------


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


# --- the connection is held ------------------------------------------------------------------


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


# --- bounds ----------------------------------------------------------------------------------


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


# --- drained ---------------------------------------------------------------------------------


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


async def serve_rest(received: Received, reply: Reply) -> None:
    native = received.target.startswith("/v1/messages")
    for event in (
        capture("vllm-messages.sse")
        if native
        else chat({"role": "assistant", "content": ""}, {"content": "hi"})
    ):
        await reply.chunk(event)
    await reply.end()


# --- sent again ------------------------------------------------------------------------------


async def cut_before_the_head(received: Received, reply: Reply) -> None:
    reply.kill()


async def cut_after_the_head(received: Received, reply: Reply) -> None:
    if not received.json.get("stream"):
        await reply.start(headers={"content-type": "application/json"})
        await reply.chunk(b'{"choices": [')
    else:
        await reply.start()
    await asyncio.sleep(0.02)
    reply.kill()


async def answer_that_its_core_is_dead(received: Received, reply: Reply) -> None:
    await reply.whole(b'{"error": {"message": "EngineCore encountered an issue."}}', 500)


async def tell_that_its_core_is_dead_in_the_stream(received: Received, reply: Reply) -> None:
    if not received.json.get("stream"):
        await answer_that_its_core_is_dead(received, reply)
        return
    error = json.dumps({"error": {"message": "EngineCore encountered an issue.", "code": 500}})
    await reply.start()
    if received.target.startswith("/v1/messages"):
        told = {"type": "error", "error": {"type": "internal_error", "message": "2 errors"}}
        await reply.chunk(f"event: error\ndata: {json.dumps(told)}\n\n".encode())
    else:
        await reply.chunk(f"data: {error}\n\ndata: [DONE]\n\n".encode())
    await reply.end()


async def end_without_a_word(received: Received, reply: Reply) -> None:
    if not received.json.get("stream"):
        reply.kill()
        return
    await reply.start()
    await reply.end()


async def open_and_die(received: Received, reply: Reply) -> None:
    """What stands before the first token has gone out by then."""
    if not received.json.get("stream"):
        reply.kill()
        return
    native = received.target.startswith("/v1/messages")
    opening = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    await reply.start()
    await reply.chunk(
        capture("vllm-messages.sse")[0]
        if native
        else f"data: {json.dumps({'choices': [opening]})}\n\n".encode()
    )
    await asyncio.sleep(0.05)
    reply.kill()


DEATHS = [
    open_and_die,
    cut_before_the_head,
    cut_after_the_head,
    answer_that_its_core_is_dead,
    tell_that_its_core_is_dead_in_the_stream,
    end_without_a_word,
]
ROUTES = pytest.mark.parametrize(
    ("path", "route"),
    [(MESSAGES, NATIVE_ENGINE), (MESSAGES, TRANSLATED_ENGINE), (CHAT, NATIVE_ENGINE)],
    ids=["messages", "translated", "chat"],
)


def dying(breaks: Breaks) -> Breaks:
    """An engine whose core has died: it says so until it exits."""

    async def handle(received: Received, reply: Reply) -> None:
        if received.target == "/health":
            await reply.whole(b"", 503)
        else:
            await breaks(received, reply)

    return handle


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
    async def fail(received: Received, reply: Reply) -> None:
        if received.target == "/health":
            await reply.whole(b"")
        else:
            await reply.whole(b'{"error": {"message": "it went wrong"}}', 500)

    gate = AdmissionGate(patience_s=30)
    async with (
        StubEngine(fail) as engine,
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


@pytest.mark.parametrize("held", [True, False])
async def test_a_former_engines_name_is_the_one_that_serves_for_openai_clients_too(
    held: bool,
) -> None:
    gate = AdmissionGate()
    async with (
        StubEngine(serve, served_name="new") as engine,
        gateway(None, gate=gate) as served,
    ):
        upstream = replace(engine.upstream, former_names=frozenset({"old"}))
        if held:
            gate.close(WHY)
        else:
            served.state.upstream = upstream
        body = {**STREAM, "model": "old", "n": 1}
        async with asked(served, CHAT, body) as answer:
            if held:
                await is_held(served, gate)
                served.state.upstream = upstream
                gate.open()
            await answer.begin()
            assert answer.status == 200
            await answer.body()
        async with call(served.port, CHAT, {**STREAM, "model": "an-adapter"}) as answer:
            await answer.body()
    one, other = engine.requests
    assert (one.json["model"], one.json["n"], other.json["model"]) == ("new", 1, "an-adapter")
    assert one.json["stream_options"]["include_usage"] is True


@ROUTES
async def test_43_what_a_living_engine_answers_stands_behind_a_closed_gate_too(
    path: str, route: Speaks
) -> None:
    async def fail(received: Received, reply: Reply) -> None:
        if received.target == "/health":
            await reply.whole(b"")
        else:
            await asyncio.sleep(0.1)
            await reply.whole(b'{"error": {"message": "it went wrong"}}', 500)

    gate = AdmissionGate(patience_s=0.4)
    async with (
        StubEngine(fail) as engine,
        gateway(engine.upstream, dialects=route, gate=gate) as served,
        asked(served, path, ASK) as answer,
    ):
        await until(lambda: engine.requests)
        gate.close("admission is paused")
        await answer.begin()
        assert (answer.status, "it went wrong" in str(await answer.json())) == (500, True)
    assert [one.target for one in engine.requests].count("/health") > 1
