"""What a stranger, a careless client and a log reader get: nothing."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from typing import Any

import pytest
from starlette.datastructures import Headers

from a40console.gateway.anthropic.commitment import Timing
from a40console.gateway.auth import require_token
from a40console.gateway.dialect import Dialect
from a40console.gateway.upstream import Upstream
from tests.gateway.asking import FOLDING, Known, text, user
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway, until

TOKEN, SECRET = "a40-right-token-of-enough-length", "correct-horse-battery-staple"
COUNT, MESSAGES, CHAT = "/v1/messages/count_tokens", "/v1/messages", "/v1/chat/completions"


async def counted(received: Received, reply: Reply) -> None:
    await reply.whole(b'{"input_tokens": 42}')


async def refused(received: Received, reply: Reply) -> None:
    await reply.whole(b'{"error": {"message": "no"}}', 400)


def test_the_token_is_compared_in_constant_time_whatever_is_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[bytes, bytes]] = []
    original = hmac.compare_digest

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return original(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    authorise = require_token(TOKEN)
    offered = Headers({"x-api-key": TOKEN, "authorization": "Bearer wrong"})
    assert authorise(offered)
    assert not authorise(Headers({"authorization": f"Bearer {TOKEN[:-1]}"}))
    assert len(compared) == 4
    assert {other for _, other in compared} == {TOKEN.encode()}


@pytest.mark.parametrize("path", [MESSAGES, COUNT, CHAT, "/v1/completions", "/v1/models"])
@pytest.mark.parametrize(
    "headers", [{}, {"x-api-key": "a40-wrong"}, {"authorization": "Bearer a40-wrong"}]
)
async def test_without_the_token_every_route_answers_401_in_the_callers_shape(
    path: str, headers: dict[str, str]
) -> None:
    async with (
        StubEngine(counted) as engine,
        gateway(engine.upstream, authorise=require_token(TOKEN)) as served,
    ):
        body = None if path == "/v1/models" else {"model": "m"}
        async with call(served.port, path, body, headers=headers) as answer:
            said = await answer.json()
        assert answer.status == 401
        assert said["error"]["type"] == "authentication_error"
        assert ("code" in said["error"]) == ("messages" not in path)
        assert engine.requests == []
        assert TOKEN not in json.dumps(said)


@pytest.mark.parametrize("scheme", ["x-api-key", "Bearer", "bearer", "both"])
async def test_either_header_opens(scheme: str) -> None:
    headers = {
        "x-api-key": {"x-api-key": TOKEN},
        "Bearer": {"authorization": f"Bearer {TOKEN}"},
        "bearer": {"authorization": f"bearer {TOKEN}"},
        "both": {"x-api-key": TOKEN, "authorization": f"Bearer {TOKEN}"},
    }[scheme]
    async with (
        StubEngine(counted) as engine,
        gateway(engine.upstream, authorise=require_token(TOKEN), dialects=Known(FOLDING)) as served,
        call(served.port, COUNT, {"messages": [user("hi")]}, headers=headers) as answer,
    ):
        assert (answer.status, await answer.json()) == (200, {"input_tokens": 42})
        (request,) = engine.requests
        assert TOKEN not in str(request.headers)


@pytest.mark.parametrize("path", [MESSAGES, COUNT, CHAT])
@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"max_tokens": 5, "messages": [user(SECRET)], "system": SECRET}).encode(),
        json.dumps({"max_tokens": 5, "messages": [user([{"type": SECRET}])]}).encode(),
        json.dumps({"max_tokens": SECRET, "messages": [user("hi")]}).encode(),
        json.dumps({"messages": {SECRET: 1}}).encode(),
        b'{"messages": "' + SECRET.encode(),
        b'{"a": NaN, "b": "' + SECRET.encode() + b'"}',
        SECRET.encode() + b"\xff",
    ],
)
async def test_nothing_of_a_request_reaches_the_log_or_a_refusal(
    path: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    headers = {"authorization": "Bearer key-" + SECRET, "x-my-own": SECRET}
    async with (
        StubEngine(refused) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
        call(served.port, f"{path}?note={SECRET}", body, headers=headers) as answer,
    ):
        said = await answer.body()
    assert 400 <= answer.status < 500
    assert SECRET not in caplog.text
    assert SECRET.encode() not in said


async def test_32_megabytes_are_accepted_and_more_is_refused() -> None:
    async with (
        StubEngine(counted) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
    ):
        whole: dict[str, Any] = {"messages": [user([text("a" * 31_999_900)])]}
        async with call(served.port, COUNT, whole) as answer:
            assert (answer.status, await answer.json()) == (200, {"input_tokens": 42})
        headers = {"content-length": str(40 * 1024 * 1024)}
        async with call(served.port, COUNT, headers=headers, method="POST") as answer:
            said = await answer.json()
        assert (answer.status, said["error"]["type"]) == (413, "request_too_large")
        assert len(engine.requests) == 1
        assert served.budget.held_bytes == 0


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("waits_s", [0.0, 0.1], ids=["no status yet", "status sent"])
@pytest.mark.parametrize(
    ("path", "broken"),
    [
        (MESSAGES, "a40console.gateway.anthropic.exchange.to_native"),
        (COUNT, "a40console.gateway.anthropic.counting.to_native"),
        (CHAT, "a40console.gateway.relay.additions_for"),
    ],
)
async def test_a_fault_of_our_own_is_logged_by_its_place_and_without_anyones_text(
    path: str,
    broken: str,
    stream: bool,
    waits_s: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Slow(Known):
        async def of(self, upstream: Upstream) -> Dialect:
            await asyncio.sleep(waits_s)
            return await super().of(upstream)

    def break_down(*given: object) -> None:
        try:
            raise ValueError(SECRET)
        except ValueError as error:
            raise KeyError(SECRET) from error

    monkeypatch.setattr(broken, break_down)
    caplog.set_level(logging.DEBUG)
    body = {"model": SECRET, "max_tokens": 5, "stream": stream, "messages": [user(SECRET)]}
    async with (
        StubEngine(counted) as engine,
        gateway(
            engine.upstream, dialects=Slow(FOLDING), timing=Timing(commit_after_s=0.02)
        ) as served,
        call(served.port, path, body, headers={"x-my-own": SECRET}) as answer,
    ):
        said = await answer.body()
        await until(lambda: "KeyError at" in caplog.text)
    assert b"its log has the details" in said
    assert SECRET not in caplog.text
    assert SECRET.encode() not in said
    assert "test_security.py" in caplog.text
    assert "break_down" in caplog.text
