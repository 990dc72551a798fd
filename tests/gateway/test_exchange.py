"""POST /v1/messages on a real port, by both routes, before an engine that does as a test says."""

from __future__ import annotations

import asyncio

import pytest

from a40console.gateway.probing import Dialects
from tests.gateway.messages_asked import ASK, BOTH, MESSAGES, STREAM, Overheard, chat
from tests.gateway.playing import playing, saying
from tests.gateway.stub import (
    NATIVE_ENGINE,
    SSE,
    TRANSLATED_ENGINE,
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
