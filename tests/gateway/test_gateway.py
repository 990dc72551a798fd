"""The gateway on a real port, before an engine on a real socket."""

from __future__ import annotations

import asyncio
import json
import time
from itertools import pairwise
from typing import Any

import pytest
import uvloop

from a40console.gateway.auth import require_token
from a40console.gateway.bodies import MIB, BodyLimits
from a40console.gateway.upstream import Unavailable, Upstream
from a40console.model.engine import Endpoint
from tests.gateway.stub import (
    SSE,
    Handler,
    Received,
    Reply,
    StubEngine,
    call,
    capture,
    events_of,
    gateway,
    until,
)

CHAT, COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"
HEAD = b"event: content_block_delta\ndata: "
STREAM: dict[str, Any] = {
    "model": "smollm2",
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
    "max_tokens": 80,
}


def playing(events: list[bytes], *, every_s: float = 0.0) -> Handler:
    async def play(received: Received, reply: Reply) -> None:
        await reply.start()
        for event in events:
            await reply.chunk(event)
            await asyncio.sleep(every_s)
        await reply.end()

    return play


def saying(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    async def say(received: Received, reply: Reply) -> None:
        await reply.whole(body, status, headers)

    return say


async def silent(received: Received, reply: Reply) -> None:
    await reply.gone.wait()


# --- what passes -------------------------------------------------------------------------------


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


# --- what is refused ---------------------------------------------------------------------------


async def test_without_its_token_nothing_passes() -> None:
    async with StubEngine(playing(capture("vllm-messages.sse"))) as engine:
        async with gateway(engine.upstream, authorise=require_token("a40-right")) as served:
            async with call(served.port, CHAT, STREAM) as answer:
                assert answer.status == 401
                assert (await answer.json())["error"]["type"] == "authentication_error"
            async with call(served.port, MESSAGES, STREAM, {"x-api-key": "a40-wrong"}) as answer:
                assert answer.status == 401
                error = await answer.json()
            assert (error["type"], error["error"]["type"]) == ("error", "authentication_error")
            async with call(served.port, "/nowhere") as answer:
                assert answer.status == 401
            async with call(served.port, MESSAGES, STREAM, {"x-api-key": "a40-right"}) as answer:
                assert answer.status == 200
        assert len(engine.requests) == 1


async def test_unknown_routes_and_methods_in_both_grammars() -> None:
    async with gateway(None) as served:
        async with call(served.port, "/v1/embeddings", {}) as answer:
            assert answer.status == 404
            error = (await answer.json())["error"]
        assert (error["type"], error["code"]) == ("not_found_error", 404)
        anthropic = {"anthropic-version": "2023-06-01"}
        async with call(served.port, "/v1/files", headers=anthropic) as answer:
            error = await answer.json()
        assert (error["type"], error["error"]["type"]) == ("error", "not_found_error")
        async with call(served.port, MESSAGES + "/") as answer:
            assert answer.status == 404
        async with call(served.port, MESSAGES) as answer:
            assert (answer.status, answer.headers["allow"]) == (405, "POST")
            assert (await answer.json())["type"] == "error"


async def test_a_body_over_the_limit_is_refused_in_both_grammars() -> None:
    async with StubEngine(silent) as engine, gateway(engine.upstream) as served:
        for path, kind in ((CHAT, "request_too_large"), (MESSAGES, "request_too_large")):
            async with call(served.port, path, b"x" * (32 * MIB + 1)) as answer:
                assert answer.status == 413
                error = (await answer.json())["error"]
            assert error["type"] == kind
            assert "32 MiB" in error["message"]
        counts = served.meter.counts()
    assert (engine.requests, counts.failed, served.budget.held_bytes) == ([], 2, 0)


async def test_a_full_gateway_says_when_to_come_back() -> None:
    limits = BodyLimits(request_bytes=100, held_bytes=100, wait_s=0.1)
    async with (
        StubEngine(saying(b"{}")) as engine,
        gateway(engine.upstream, limits=limits) as served,
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(
            b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{"
        )
        await until(lambda: served.budget.held_bytes == 99)
        async with call(served.port, MESSAGES, b"{}") as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            assert (await answer.json())["error"]["type"] == "overloaded_error"
        writer.close()
        await until(lambda: served.budget.held_bytes == 0)
        async with call(served.port, CHAT, b"{}") as answer:
            assert answer.status == 200


async def test_without_an_engine_it_says_what_the_engine_is_doing() -> None:
    why = Unavailable("The engine is starting: capture, 41 s, about 20 s more.", "capture", 20, 20)
    async with gateway(None, why=why) as served:
        async with call(served.port, CHAT, STREAM) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "20")
            error = (await answer.json())["error"]
        assert (error["message"], error["type"]) == (why.text, "service_unavailable")
        async with call(served.port, MESSAGES, STREAM) as answer:
            assert (answer.status, answer.headers["x-should-retry"]) == (503, "true")
            said = await answer.json()
        assert said["error"] == {"type": "overloaded_error", "message": why.text}
        assert said["request_id"] == answer.headers["x-request-id"]
        async with call(served.port, "/health") as answer:
            assert await answer.json() == {"status": "ok", "engine": "capture"}
        await served.ended(2)
        assert served.meter.counts().failed == 2
        assert {row.status for row in served.meter.finished()} == {503}


async def test_an_engine_that_does_not_answer_is_named() -> None:
    nobody = Upstream(Endpoint("http://engine", "/tmp/none.sock"), "vllm", "m", False, "run")
    async with gateway(nobody) as served:
        async with call(served.port, CHAT, STREAM) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (503, "2")
            assert "No such file" in (await answer.json())["error"]["message"]
        async with call(served.port, "/health") as answer:
            assert await answer.json() == {"status": "ok", "engine": "serving"}


def test_an_engine_whose_queue_of_connections_is_full_is_waited_for() -> None:
    uvloop.run(_eight_requests_to_a_full_queue())


async def _eight_requests_to_a_full_queue() -> None:
    engine = StubEngine(saying(b"{}"))
    engine.backlog, engine.accepts = 1, False
    async with engine, gateway(engine.upstream) as served:

        async def request() -> int:
            async with call(served.port, CHAT, {"messages": []}) as answer:
                return answer.status

        requests = [asyncio.create_task(request()) for _ in range(8)]
        await asyncio.sleep(0.2)
        await engine.accept()
        assert await asyncio.gather(*requests) == [200] * 8


async def test_an_engine_that_dies_before_it_answers_is_an_error_to_retry() -> None:
    async def die(received: Received, reply: Reply) -> None:
        reply.kill()

    async def die_within(received: Received, reply: Reply) -> None:
        await reply.start(headers={"content-type": "application/json"})
        await reply.chunk(b'{"choices"')
        reply.kill()

    for handler in (die, die_within):
        async with StubEngine(handler) as engine, gateway(engine.upstream) as served:
            async with call(served.port, MESSAGES, STREAM) as answer:
                assert (answer.status, answer.headers["x-should-retry"]) == (502, "true")
                assert (await answer.json())["error"]["type"] == "api_error"
            await served.ended(1)
            assert served.meter.counts().failed == 1


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
