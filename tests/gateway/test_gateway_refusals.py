"""What the gateway refuses, and what it says where the engine cannot answer."""

from __future__ import annotations

import asyncio

import uvloop

from a40console.gateway.auth import require_token
from a40console.gateway.bodies import MIB, BodyLimits
from a40console.gateway.upstream import Unavailable, Upstream
from a40console.model.engine import Endpoint
from tests.gateway.playing import playing, saying
from tests.gateway.streams_asked import CHAT, MESSAGES, STREAM, silent
from tests.gateway.stub import Received, Reply, StubEngine, call, capture, gateway, until


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
