"""The served routes behind any prefix, and nothing else; greetings without a token."""

from __future__ import annotations

import pytest

from a40console.gateway.address import split_address
from a40console.gateway.auth import require_token
from tests.gateway.asking import FOLDING, Known
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway


@pytest.mark.parametrize(
    ("path", "prefix", "route"),
    [
        ("/v1/messages", "", "/v1/messages"),
        ("/s/abc/v1/messages", "/s/abc", "/v1/messages"),
        ("/s/abc/v1/messages/count_tokens", "/s/abc", "/v1/messages/count_tokens"),
        ("/v1/v1/messages", "/v1", "/v1/messages"),
        ("/a/b/c/v1/chat/completions", "/a/b/c", "/v1/chat/completions"),
        ("/s/abc/v1/models/org/name", "/s/abc", "/v1/models/org/name"),
        ("/s/abc", "/s/abc", "/"),
        ("/s/abc/", "/s/abc", "/"),
        ("/s/abc/api/hello", "/s/abc", "/api/hello"),
        ("/health", "", "/health"),
        ("/s/abc/health", "", "/s/abc/health"),
        ("/s/abc/metrics", "", "/s/abc/metrics"),
        ("/x/v1/embeddings", "", "/x/v1/embeddings"),
        ("x/v1/messages", "", "x/v1/messages"),
        ("", "", ""),
    ],
)
def test_an_address_is_a_prefix_and_a_served_route(path: str, prefix: str, route: str) -> None:
    assert split_address(path) == (prefix, route)


@pytest.mark.parametrize(
    "path",
    [
        "/tokenize", "/metrics", "/invocations", "/v1/embeddings", "/slots", "/props", "/v1/load",
        "/v1/messages/../../tokenize", "/s/x/../../metrics", "/v1/messages%2f..%2f..%2ftokenize",
        "//v1/messages/render", "/server_info", "/reset_prefix_cache", "/v1/messages/batches",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
async def test_only_served_routes_reach_the_engine(path: str, method: str) -> None:
    async def answer(received: Received, reply: Reply) -> None:
        await reply.whole(b"{}")

    async with StubEngine(answer) as engine, gateway(engine.upstream) as served:
        body = {"a": 1} if method == "POST" else None
        async with call(served.port, path, body, method=method) as said:
            assert said.status in (404, 405)
        assert engine.requests == []


@pytest.mark.parametrize("path", ["/", "/api/hello", "/s/mine/", "/s/mine/api/hello"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_greetings_are_answered_without_token_and_engine(path: str, method: str) -> None:
    async with (
        gateway(None, authorise=require_token("a40-right")) as served,
        call(served.port, path, method=method) as answer,
    ):
        assert answer.status == 200


async def test_a_prefix_does_not_pass_by_the_token() -> None:
    async with gateway(None, authorise=require_token("a40-right")) as served:
        for path in (
            "/s/mine/v1/messages",
            "/s/mine/v1/models",
            "/s/mine/v1/messages/count_tokens",
        ):
            async with call(served.port, path, {}) as answer:
                assert answer.status == 401


async def test_the_engine_sees_the_bare_route() -> None:
    async def answer(received: Received, reply: Reply) -> None:
        await reply.whole(b'{"input_tokens": 3}')

    async with (
        StubEngine(answer) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
    ):
        body = {"messages": [{"role": "user", "content": "hi"}]}
        path = "/s/mine/v1/messages/count_tokens?beta=true"
        async with call(served.port, path, body) as said:
            assert await said.json() == {"input_tokens": 3}
        assert engine.requests[0].target == "/v1/messages/count_tokens"
