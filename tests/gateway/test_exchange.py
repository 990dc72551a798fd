"""POST /v1/messages on a real port, by both routes, before an engine that does as a test says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from a40console.gateway.anthropic.commitment import Timing
from a40console.gateway.meter import Passage
from a40console.gateway.probing import Dialects
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import Unavailable
from tests.gateway.stub import (
    NATIVE_ENGINE,
    SSE,
    TRANSLATED_ENGINE,
    Handler,
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

MESSAGES = "/v1/messages?beta=true"
ASK: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 80,
    "messages": [{"role": "user", "content": "Say hi to the sea"}],
}
STREAM = {**ASK, "stream": True}
QUICK = Timing(commit_after_s=0.15, ping_every_s=0.1)
BOTH = pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])


class Overheard(SessionBook):
    """A book that a test looks into."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []
        self.overflows = 0

    def called(self, passage: Passage, tool_name: str, tool_use_id: str) -> None:
        self.calls.append((tool_name, tool_use_id))
        super().called(passage, tool_name, tool_use_id)

    def overflowed(self, passage: Passage) -> None:
        self.overflows += 1
        super().overflowed(passage)


def playing(events: list[bytes]) -> Handler:
    async def play(received: Received, reply: Reply) -> None:
        await reply.start()
        for event in events:
            await reply.chunk(event)
        await reply.end()

    return play


def saying(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    said = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def say(received: Received, reply: Reply) -> None:
        await reply.whole(said, status, headers)

    return say


def chat(*deltas: dict[str, Any], finish: str = "stop") -> list[bytes]:
    """A chat completion's stream with running usage."""
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": one, "finish_reason": None} for one in deltas
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    counted = [
        {
            "choices": [choice],
            "usage": {"prompt_tokens": 37, "completion_tokens": number},
        }
        for number, choice in enumerate(choices)
    ]
    return [b"data: " + json.dumps(one).encode() + b"\n\n" for one in counted] + [
        b"data: [DONE]\n\n"
    ]


# --- whole streams ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vllm-messages.sse", "llamacpp-messages.sse"])
async def test_17_the_native_stream_passes_torn_as_the_network_tears_it(name: str) -> None:
    text = b"".join(capture(name))
    pieces = [text[at : at + 37] for at in range(0, len(text), 37)]
    async with StubEngine(playing([b": hi\n\n", *pieces])) as engine:
        async with (
            gateway(engine.upstream) as served,
            call(served.port, MESSAGES, STREAM) as answer,
        ):
            got = await answer.body()
        (row,) = await served.ended()
    read = read_stream(got)
    assert read.message is not None
    assert read.message["model"] == "claude-sonnet-5"
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    deltas = [one for one in events_of(text) if b"content_block_delta" in one]
    assert [one for one in events_of(got) if b"content_block_delta" in one] == deltas
    (request,) = engine.requests
    assert (request.target, request.json["model"]) == (MESSAGES, "smollm2")
    assert (row.model, row.max_tokens, row.status) == ("claude-sonnet-5", 80, 200)
    assert (row.method, row.finish_reason) == ("usage", "stop")


async def test_17_the_translated_stream_says_the_same_and_counts_every_token() -> None:
    events = chat(
        {"role": "assistant", "content": ""},
        {"content": "I look", "tool_calls": []},
        {"tool_calls": [{"index": 0, "id": "t1", "function": {"name": "Bash", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"command":"ls"}'}}]},
        finish="tool_calls",
    )
    book = Overheard()
    async with (
        StubEngine(playing(events)) as engine,
        gateway(engine.upstream, dialects=TRANSLATED_ENGINE, book=book) as served,
    ):
        async with call(served.port, MESSAGES, STREAM) as answer:
            read = read_stream(await answer.body())
        (row,) = await served.ended()
    assert [one["type"] for one in read.content] == ["text", "tool_use"]
    assert read.content[1] == {
        "type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"},
    }  # fmt: skip
    assert (read.reason, book.calls) == ("tool_use", [("Bash", "t1")])
    assert read.events[0]["message"]["usage"]["input_tokens"] == 37
    assert read.events[-2]["usage"]["output_tokens"] == 4
    (request,) = engine.requests
    assert request.target == "/v1/chat/completions"
    assert request.json["stream_options"] == {
        "include_usage": True, "continuous_usage_stats": True,
    }  # fmt: skip
    assert (row.generated_tokens, row.prompt_tokens, row.method) == (4, 37, "usage")
    assert len(row.marks) > 0
    assert row.route == "messages"


async def test_llamacpp_counts_the_translated_route_by_its_timings() -> None:
    engine = StubEngine(playing(chat({"content": "hi"})), kind="llamacpp")
    async with (
        engine,
        gateway(engine.upstream, dialects=TRANSLATED_ENGINE) as served,
        call(served.port, MESSAGES, STREAM) as answer,
    ):
        assert read_stream(await answer.body()).content[0]["text"] == "hi"
    assert engine.requests[0].json["timings_per_token"] is True


async def test_a_native_answer_is_apportioned_until_its_last_usage() -> None:
    events = capture("vllm-messages.sse")
    held = asyncio.Event()

    async def play(received: Received, reply: Reply) -> None:
        await reply.start()
        for event in events[:-3]:
            await reply.chunk(event)
        await held.wait()
        for event in events[-3:]:
            await reply.chunk(event)
        await reply.end()

    async with StubEngine(play) as engine, gateway(engine.upstream) as served:
        async with call(served.port, MESSAGES, STREAM) as answer:
            await until(lambda: any(row.characters > 40 for row in served.meter.live()))
            (live,) = served.meter.live()
            assert (live.method, live.generated_tokens, live.prompt_tokens) == (
                "apportioned", None, 37,
            )  # fmt: skip
            held.set()
            await answer.body()
        (row,) = await served.ended()
    assert (row.method, row.generated_tokens) == ("usage", 27)


async def test_a_prefix_names_the_session_and_any_version_is_taken() -> None:
    headers = {"anthropic-version": "2031-01-01", "anthropic-beta": "a-1,b-2,unheard-of"}
    async with (
        StubEngine(playing(capture("vllm-messages.sse"))) as engine,
        gateway(engine.upstream) as served,
    ):
        path = "/s/blue/v1/messages?beta=true"
        async with call(served.port, path, STREAM, headers) as answer:
            assert read_stream(await answer.body()).message is not None
        (row,) = await served.ended()
    assert (engine.requests[0].target, row.session) == (MESSAGES, "blue")


# --- the twin that is not a stream -----------------------------------------------------------


async def test_a_whole_answer_is_completed_as_a_stream_is() -> None:
    said = {
        "id": "chatcmpl-1", "model": "smollm2", "stop_reason": "end_turn",
        "content": [
            {"type": "text", "text": "\n"},
            {"type": "thinking", "thinking": "hm"},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": None},
            {"type": "tool_use", "id": "t2", "name": "Read", "input": '{"a": 1}'},
            {"type": "x_video"},
        ],
        "usage": {"input_tokens": 5, "output_tokens": 7},
    }  # fmt: skip
    async with StubEngine(saying(said)) as engine, gateway(engine.upstream) as served:
        async with call(served.port, MESSAGES, ASK) as answer:
            message = await answer.json()
        (row,) = await served.ended()
    assert message == {
        "id": "chatcmpl-1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}},
            {"type": "tool_use", "id": "t2", "name": "Read", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 7,
        },
    }
    assert answer.headers["request-id"] == row.request_id
    assert (row.generated_tokens, row.prompt_tokens, row.status) == (7, 5, 200)


async def test_a_whole_answer_by_the_translated_route() -> None:
    call_said = {"id": "t1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    said = {
        "id": "chatcmpl-1",
        "choices": [{
            "message": {"role": "assistant", "content": "I look", "tool_calls": [call_said]},
            "finish_reason": "tool_calls",
        }],
        "usage": {"prompt_tokens": 37, "completion_tokens": 9,
                  "prompt_tokens_details": {"cached_tokens": 32}},
    }  # fmt: skip
    async with (
        StubEngine(saying(said)) as engine,
        gateway(engine.upstream, dialects=TRANSLATED_ENGINE) as served,
    ):
        async with call(served.port, MESSAGES, ASK) as answer:
            message = await answer.json()
        (row,) = await served.ended()
    assert [one["type"] for one in message["content"]] == ["text", "tool_use"]
    assert (message["stop_reason"], message["model"]) == ("tool_use", "claude-sonnet-5")
    assert message["usage"]["cache_read_input_tokens"] == 32
    assert message["usage"]["input_tokens"] == 5
    assert (row.generated_tokens, row.prompt_tokens, row.cached_tokens) == (9, 37, 32)


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


# --- many at once ----------------------------------------------------------------------------


@BOTH
async def test_replay_42_128_streams_reach_the_engine_at_once(route: Speaks) -> None:
    together = asyncio.Event()
    native = route is NATIVE_ENGINE
    events = capture("vllm-messages.sse") if native else chat({"content": "a"}, {"content": "b"})

    async def wait_for_all(received: Received, reply: Reply) -> None:
        await reply.start()
        for event in events[:3]:
            await reply.chunk(event)
        await together.wait()
        for event in events[3:]:
            await reply.chunk(event)
        await reply.end()

    async with (
        StubEngine(wait_for_all) as engine,
        gateway(engine.upstream, dialects=route) as served,
    ):

        async def stream() -> bytes:
            async with call(served.port, MESSAGES, STREAM) as answer:
                return await answer.body()

        streams = [asyncio.create_task(stream()) for _ in range(128)]
        await until(lambda: sum(bool(row.characters) for row in served.meter.live()) == 128, 20)
        together.set()
        bodies = await asyncio.gather(*streams)
        await served.ended(128)
    assert all(read_stream(body).message is not None for body in bodies)
    assert served.meter.counts().completed == 128
    assert served.budget.held_bytes == 0


async def test_a_large_body_goes_through_and_its_room_is_given_back() -> None:
    history = [{"role": "user", "content": "x" * 400_000}] * 5
    async with (
        StubEngine(playing(capture("vllm-messages.sse"))) as engine,
        gateway(engine.upstream) as served,
    ):
        async with call(served.port, MESSAGES, {**STREAM, "messages": history}) as answer:
            assert read_stream(await answer.body()).message is not None
        await served.ended()
        assert served.budget.held_bytes == 0
    assert len(engine.requests[0].body) > 1_900_000


async def test_an_engine_that_nobody_knows_yet_is_asked_how_it_speaks() -> None:
    async def as_chat_only(received: Received, reply: Reply) -> None:
        if received.target == "/v1/chat/completions" and received.json.get("stream"):
            await playing(chat({"content": "hi"}))(received, reply)
        elif received.target.startswith("/v1/messages"):
            await reply.whole(b'{"detail": "Not Found"}', 404)
        else:
            await reply.whole(b'{"error": {"message": "no"}}', 404)

    async with (
        StubEngine(as_chat_only) as engine,
        gateway(engine.upstream, dialects=Dialects()) as served,
        call(served.port, MESSAGES, STREAM) as answer,
    ):
        assert read_stream(await answer.body()).content == [{"type": "text", "text": "hi"}]


async def test_a_stream_that_says_its_length_may_become_longer() -> None:
    body = b"".join(capture("vllm-messages.sse"))
    async with (
        StubEngine(saying(body, headers=SSE)) as engine,
        gateway(engine.upstream) as served,
        call(served.port, MESSAGES, STREAM) as answer,
    ):
        assert read_stream(await answer.body()).message is not None
