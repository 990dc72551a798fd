"""The gateway on a real port, before an engine on a real socket."""

from __future__ import annotations

import asyncio
import json
import time
from itertools import pairwise

import pytest

from a40console.gateway.auth import require_token
from tests.gateway.playing import playing, saying
from tests.gateway.streams_asked import CHAT, COMPLETIONS, MESSAGES, STREAM
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

HEAD = b"event: content_block_delta\ndata: "


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_events_five_milliseconds_apart_arrive_apart_and_in_order(path: str) -> None:
    delta = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%d"}}'
    start = b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
    events = [
        b"event: content_block_start\ndata: " + start + b"\n\n",
        *(HEAD + delta % number + b"\n\n" for number in range(100)),
    ]
    async with (
        StubEngine(playing(events, every_s=0.005), plugin=True) as engine,
        gateway(engine.upstream) as served,
        call(served.port, path, STREAM) as answer,
    ):
        got, times = [], []
        async for chunk in answer.chunks():
            if b"_delta" in chunk:
                got.append(chunk[chunk.index(b"event: content_block_delta") :])
                times.append(time.monotonic())
    assert got[:100] == events[1:]
    gaps = sorted(later - one for one, later in pairwise(times[:100]))
    assert gaps[50] > 0.004
    assert gaps[5] > 0.002


@pytest.mark.parametrize(
    ("path", "name"),
    [(CHAT, "vllm-chat-reasoning.sse"), (COMPLETIONS, "llamacpp-completions-plain.sse")],
)  # fmt: skip
async def test_what_needs_no_cut_arrives_to_the_byte(path: str, name: str) -> None:
    text = b": hello\n\n" + b"".join(capture(name))
    pieces = [text[at : at + 37] for at in range(0, len(text), 37)]
    async with StubEngine(playing(pieces), plugin=True) as engine:
        async with gateway(engine.upstream) as served, call(served.port, path, STREAM) as answer:
            assert await answer.body() == text
        assert engine.requests[0].json == STREAM
        (row,) = await served.ended(1)
        assert row.finish_reason != "error"


async def test_usage_is_asked_for_and_taken_off_again() -> None:
    events = capture("vllm-chat-usage.sse")
    async with StubEngine(playing(events)) as engine, gateway(engine.upstream) as served:
        async with call(served.port, CHAT, STREAM) as answer:
            got = events_of(await answer.body())
        options = {"include_usage": True, "continuous_usage_stats": True}
        assert engine.requests[0].json == {**STREAM, "stream_options": options}
        assert len(got) == len(events) - 1
        assert not any(b'"usage"' in event for event in got)
        (row,) = await served.ended()
    assert (row.generated_tokens, row.prompt_tokens, row.method) == (77, 37, "usage")
    assert (row.finish_reason, row.status, row.route) == ("stop", 200, "chat")
    assert (row.model, row.max_tokens) == ("smollm2", 80)
    assert row.sent_at_s is not None
    assert row.first_token_at_s is not None
    assert row.received_at_s <= row.sent_at_s <= row.first_token_at_s


async def test_a_stream_of_declared_length_may_become_shorter() -> None:
    events = capture("vllm-chat-usage.sse")
    async with (
        StubEngine(saying(b"".join(events), headers=SSE)) as engine,
        gateway(engine.upstream) as served,
        call(served.port, CHAT, STREAM) as answer,
    ):
        assert len(events_of(await answer.body())) == len(events) - 1


async def test_a_client_that_asks_for_everything_gets_everything() -> None:
    asked = {**STREAM, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    events = capture("vllm-chat-usage.sse")
    async with StubEngine(playing(events)) as engine, gateway(engine.upstream) as served:
        async with call(served.port, CHAT, asked) as answer:
            assert await answer.body() == b"".join(events)
        assert engine.requests[0].body == json.dumps(asked).encode()


async def test_llamacpp_is_counted_by_its_timings() -> None:
    events = capture("llamacpp-completions-timings.sse")
    engine = StubEngine(playing(events), kind="llamacpp")
    async with engine, gateway(engine.upstream) as served:
        async with call(served.port, COMPLETIONS, STREAM) as answer:
            got = events_of(await answer.body())
        (row,) = await served.ended()
    assert engine.requests[0].json == {**STREAM, "timings_per_token": True}
    assert [b"timings" in event for event in got] == [False] * 3 + [True, False]
    assert (row.generated_tokens, row.cached_tokens, row.method) == (3, 4, "usage")


async def test_an_answer_that_is_no_stream_passes_and_is_counted() -> None:
    body = (
        b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":3,"completion_tokens":2}}'
    )
    async with StubEngine(saying(body)) as engine, gateway(engine.upstream) as served:
        async with call(served.port, CHAT, {"model": "m", "messages": []}) as answer:
            assert await answer.body() == body
        (row,) = await served.ended()
    assert (row.generated_tokens, row.prompt_tokens, row.finish_reason) == (2, 3, "stop")


async def test_the_engines_errors_pass_unchanged() -> None:
    body = b'{"error": {"message":"This model\'s maximum context length is 2048", "code": 400}}'
    engine = StubEngine(saying(body, 400, {"x-engine": "1"}))
    async with engine, gateway(engine.upstream) as served:
        async with call(served.port, CHAT, STREAM) as answer:
            assert (answer.status, answer.headers["x-engine"]) == (400, "1")
            assert await answer.body() == body
        (row,) = await served.ended()
    assert (row.status, row.finish_reason, served.meter.counts().failed) == (400, "error", 1)


async def test_a_body_that_is_no_json_reaches_the_engine_untouched() -> None:
    async with StubEngine(saying(b"{}", 400)) as engine, gateway(engine.upstream) as served:
        for body in (b'{"stream": true, nope}', b"\xff\xfe", b"", b"[]"):
            async with call(served.port, CHAT, body) as answer:
                assert answer.status == 400
            assert engine.requests[-1].body == body


async def test_who_asks_is_known_and_the_ids_are_kept_apart() -> None:
    headers = {
        "user-agent": "claude-cli/2.1.332 (external)",
        "x-claude-code-session-id": "7f3a",
        "x-request-id": "clients-own",
        "anthropic-version": "2023-06-01",
        "authorization": "Bearer a40-right",
    }
    events = capture("vllm-messages.sse")
    async with StubEngine(playing(events), api_key="engine-key") as engine:
        async with gateway(engine.upstream, authorise=require_token("a40-right")) as served:
            async with call(served.port, MESSAGES + "?beta=true", STREAM, headers) as answer:
                await answer.body()
            assert answer.headers["x-request-id"] == "clients-own"
        (row,), (request,) = await served.ended(), engine.requests
    assert (row.client, row.session, row.agent) == ("claude-code", "7f3a", "main")
    assert request.headers["x-request-id"] == row.request_id
    assert row.request_id.startswith("a40-")
    assert request.headers["authorization"] == "Bearer engine-key"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "a40-right" not in str(request.headers)
    assert request.target == MESSAGES + "?beta=true"


async def test_models_pass_uncounted() -> None:
    async with StubEngine(saying(b'{"data": []}')) as engine, gateway(engine.upstream) as served:
        async with call(served.port, "/v1/models") as answer:
            assert await answer.json() == {"data": []}
        assert [request.method for request in engine.requests] == ["GET"]
        assert served.meter.finished() == served.meter.live() == ()


async def test_the_engines_version_passes_so_that_a_simulated_one_is_known() -> None:
    version = b'{"version": "0.26.0+sim"}'
    async with StubEngine(saying(version)) as engine, gateway(engine.upstream) as served:
        async with call(served.port, "/version") as answer:
            assert await answer.json() == {"version": "0.26.0+sim"}
        assert [request.target for request in engine.requests] == ["/version"]


async def test_garbage_in_a_stream_passes_and_breaks_nothing() -> None:
    events = [
        b"data: NaN\n\n", b'data: {"usage":{"completion_tokens":NaN},"choices":[{}]}\n\n',
        b"data: {\xff\n\n", b"data: " + b"[" * 3000 + b"\n\n", b"no: field\n\n", b"\n\n",
        b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n',
    ]  # fmt: skip
    async with StubEngine(playing(events), plugin=True) as engine:
        async with gateway(engine.upstream) as served, call(served.port, CHAT, STREAM) as answer:
            assert await answer.body() == b"".join(events)
        (row,) = await served.ended(1)
        assert row.finish_reason != "error"


async def test_256_streams_are_open_at_once() -> None:
    together = asyncio.Event()

    async def wait_for_all(received: Received, reply: Reply) -> None:
        await reply.start()
        await reply.chunk(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
        await together.wait()
        await reply.chunk(b"data: [DONE]\n\n")
        await reply.end()

    async with StubEngine(wait_for_all) as engine, gateway(engine.upstream) as served:

        async def stream() -> bytes:
            async with call(served.port, CHAT, STREAM) as answer:
                return await answer.body()

        streams = [asyncio.create_task(stream()) for _ in range(256)]
        await until(lambda: sum(bool(row.characters) for row in served.meter.live()) == 256, 20)
        together.set()
        assert all(body.endswith(b"[DONE]\n\n") for body in await asyncio.gather(*streams))
        await served.ended(256)
    assert {row.finish_reason for row in served.meter.finished()} == {None}
    assert (served.meter.counts().failed, served.budget.held_bytes) == (0, 0)
