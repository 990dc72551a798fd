"""What fails on the way of a message: before its status by status, after it as an event."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from a40console.gateway.anthropic.commitment import Timing
from a40console.gateway.upstream import Unavailable
from tests.gateway.messages_asked import ASK, BOTH, MESSAGES, STREAM, Overheard, chat
from tests.gateway.playing import playing, saying
from tests.gateway.stub import (
    NATIVE_ENGINE,
    Received,
    Reply,
    Speaks,
    StubEngine,
    call,
    capture,
    gateway,
)
from tests.gateway.wire import read_stream

QUICK = Timing(commit_after_s=0.15, ping_every_s=0.1)
# --- what fails before the status ------------------------------------------------------------


OVERFLOW = (
    "This model's maximum context length is 2048 tokens. However, your prompt contains 5031 input "
    "tokens, which exceeds this limit even without any output tokens."
)


@BOTH
@pytest.mark.parametrize("body", [ASK, STREAM])
@pytest.mark.parametrize(
    ("status", "said", "told", "kind", "words"),
    [
        (400, {"error": {"message": OVERFLOW, "type": "BadRequestError"}}, 400,
         "invalid_request_error", "prompt is too long: 5031 tokens > 2048 maximum"),
        (404, {"error": {"message": "The model `x` does not exist.", "type": "NotFoundError"}}, 502,
         "api_error", "The model `x` does not exist."),
        (503, {"error": {"message": "Loading model", "type": "unavailable_error"}}, 529,
         "overloaded_error", "Loading model"),
        (400, {"error": {"message": "Expecting value: line 1 column 1 (char 0)"}}, 500,
         "api_error", "The model wrote a tool call"),
        (400, {"error": {"message": "messages.1.role: Input should be 'user'"}}, 400,
         "invalid_request_error", "messages.1.role: Input should be 'user'"),
        (500, b"<html>oops</html>", 502, "api_error", "HTTP 500 and no JSON"),
        (200, b"<html>oops</html>", 502, "api_error", "HTTP 200 and no JSON"),
    ],
)  # fmt: skip
async def test_31_42_46_an_engines_error_has_its_own_status(
    route: Speaks, body: dict[str, Any], status: int, said: Any, told: int, kind: str, words: str
) -> None:
    async with (
        StubEngine(saying(said, status)) as engine,
        gateway(engine.upstream, dialects=route) as served,
    ):
        async with call(served.port, MESSAGES, body) as answer:
            assert answer.status == told
            error = await answer.json()
        (row,) = await served.ended()
    assert (error["type"], error["error"]["type"]) == ("error", kind)
    assert error["error"]["message"].startswith(words) or words in error["error"]["message"]
    assert error["request_id"] == answer.headers["request-id"] == row.request_id
    assert (row.status, row.finish_reason) == (told, "error")
    assert ("retry-after" in answer.headers) == (told in (502, 529))


async def test_42_the_book_hears_of_an_overflow() -> None:
    book = Overheard()
    async with (
        StubEngine(saying({"error": {"message": OVERFLOW}}, 400)) as engine,
        gateway(engine.upstream, book=book) as served,
    ):
        async with call(served.port, MESSAGES, STREAM) as answer:
            assert answer.status == 400
        await served.ended()
    assert book.overflows == 1


async def test_replay_43_a_model_that_is_being_switched_sends_the_client_away_for_a_while() -> None:
    why = Unavailable("The engine is starting: capture, 41 s, about 20 s more.", "capture", 20, 20)
    async with gateway(None, why=why) as served, call(served.port, MESSAGES, STREAM) as answer:
        assert (answer.status, answer.headers["retry-after"]) == (503, "20")
        assert (await answer.json())["error"] == {"type": "overloaded_error", "message": why.text}


async def test_the_clients_own_id_is_echoed_everywhere() -> None:
    async with StubEngine(saying(b"<html>", 500)) as engine, gateway(engine.upstream) as served:
        headers = {"x-request-id": "clients-own"}
        async with call(served.port, MESSAGES, STREAM, headers) as answer:
            assert (await answer.json())["request_id"] == "clients-own"
        assert answer.headers["request-id"] == "clients-own"
        (row,) = await served.ended()
    assert engine.requests[0].headers["x-request-id"] == row.request_id


# --- what fails after it ---------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("begun", "kind"), [(True, "api_error"), (False, "overloaded_error")])
@pytest.mark.parametrize("killed", [True, False])
async def test_30_32_a_stream_that_breaks_ends_with_an_error_event(
    route: Speaks, begun: bool, kind: str, killed: bool
) -> None:
    native = route is NATIVE_ENGINE
    events = capture("vllm-messages.sse") if native else chat({"content": "a"}, {"content": "b"})

    async def break_off(received: Received, reply: Reply) -> None:
        await reply.start()
        whole = {(True, True): 3, (True, False): 1, (False, True): 1, (False, False): 0}
        for event in events[: whole[native, begun]]:
            await reply.chunk(event)
        await reply.chunk(events[whole[native, begun]][:20])
        served.state.upstream = None
        await asyncio.sleep(0.02)
        if killed:
            reply.kill()
        else:
            await reply.end()

    async with (
        StubEngine(break_off) as engine,
        gateway(engine.upstream, dialects=route) as served,
    ):
        async with call(served.port, MESSAGES, STREAM) as answer:
            read = read_stream(await answer.body())
        (row,) = await served.ended()
    assert read.error is not None
    assert read.error["type"] == kind
    assert "engine start" in read.error["message"]
    assert (row.finish_reason, served.meter.counts().failed) == ("error", 1)


async def test_31_an_error_that_the_engine_reports_inside_is_told_in_the_clients_words() -> None:
    async with (
        StubEngine(playing(capture("vllm-messages-killed.sse"))) as engine,
        gateway(engine.upstream) as served,
    ):
        async with call(served.port, MESSAGES, STREAM) as answer:
            read = read_stream(await answer.body())
        (row,) = await served.ended()
    assert read.error is not None
    assert read.error["type"] == "api_error"
    assert read.error["message"].startswith("2 validation errors")
    assert row.finish_reason == "error"


@BOTH
@pytest.mark.parametrize(
    ("status", "said", "kind", "words"),
    [
        (
            400,
            {"error": {"message": OVERFLOW}},
            "invalid_request_error",
            "prompt is too long: 5031",
        ),
        (500, {"error": {"message": "broken"}}, "overloaded_error", "broken"),
        (404, {"error": {"message": "no such model"}}, "overloaded_error", "no such model"),
        (502, b"<html>", "overloaded_error", "HTTP 502 and no JSON"),
    ],
)
async def test_31_36_an_error_that_comes_after_the_status_is_an_event(
    route: Speaks, status: int, said: Any, kind: str, words: str
) -> None:
    async def late(received: Received, reply: Reply) -> None:
        await asyncio.sleep(0.3)
        await saying(said, status)(received, reply)

    async with (
        StubEngine(late) as engine,
        gateway(engine.upstream, dialects=route, timing=QUICK) as served,
    ):
        async with call(served.port, MESSAGES, STREAM) as answer:
            assert answer.status == 200
            read = read_stream(await answer.body())
        await served.ended()
    assert read.error is not None
    assert read.error["type"] == kind
    assert read.error["message"].startswith(words) or words in read.error["message"]
    assert read.pings >= 2
    assert served.meter.counts().failed == 1


async def test_28_an_answer_that_vllm_broke_off_is_no_whole_one() -> None:
    """Its operator ended the request: the reason to stop is then null, in a stream and outside."""
    events = capture("vllm-messages.sse")
    events[-2] = events[-2].replace(b'"end_turn"', b"null").replace(b'"max_tokens"', b"null")
    whole = {"content": [{"type": "text", "text": "half of"}], "usage": {}}
    async with StubEngine(playing(events)) as engine, gateway(engine.upstream) as served:
        async with call(served.port, MESSAGES, STREAM) as answer:
            read = read_stream(await answer.body())
        (row,) = await served.ended()
    assert read.error is not None
    assert read.error["type"] == "api_error"
    assert row.finish_reason == "error"
    async with (
        StubEngine(saying(whole)) as engine,
        gateway(engine.upstream) as served,
        call(served.port, MESSAGES, ASK) as answer,
    ):
        assert answer.status == 500
        assert "before it was complete" in (await answer.json())["error"]["message"]


async def test_32_a_fault_of_the_gateways_own_is_told_as_well(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object, **named: object) -> bytes:
        raise RuntimeError("a fault")

    monkeypatch.setattr("a40console.gateway.anthropic.guard.Guard.take", fail)
    async with (
        StubEngine(playing(capture("vllm-messages.sse"))) as engine,
        gateway(engine.upstream) as served,
    ):
        async with call(served.port, MESSAGES, STREAM) as answer:
            read = read_stream(await answer.body())
        (row,) = await served.ended()
    assert read.error is not None
    assert "The gateway failed" in read.error["message"]
    assert row.finish_reason == "error"
