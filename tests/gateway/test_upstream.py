"""Headers on their way, and sessions that outlive no engine."""

from __future__ import annotations

import asyncio
from typing import cast

import aiohttp

from a40console.gateway.upstream import (
    EngineSessions,
    open_session,
    request_headers,
    response_headers,
    upstream_url,
)
from a40console.model.engine import Endpoint

HERE = Endpoint("http://engine/", socket_path="/tmp/none.sock")


def test_the_clients_credentials_stay_here_and_the_engines_key_goes_out() -> None:
    sent = [
        (b"host", b"gateway"),
        (b"authorization", b"Bearer a40-secret"),
        (b"x-api-key", b"a40-secret"),
        (b"connection", b"keep-alive, x-hop"),
        (b"x-hop", b"1"),
        (b"accept-encoding", b"gzip"),
        (b"x-request-id", b"mine"),
        (b"anthropic-version", b"2023-06-01"),
        (b"content-type", b"application/json"),
    ]
    assert dict(request_headers(sent, HERE, "a40-1", 12)) == {
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
        "Accept-Encoding": "identity",
        "X-Request-Id": "a40-1",
        "Content-Length": "12",
    }
    keyed = Endpoint("http://engine", api_key="engine-key")
    assert request_headers(sent, keyed, "a40-1", None)["Authorization"] == "Bearer engine-key"


def test_the_answers_headers_carry_the_clients_own_id() -> None:
    said = [
        (b"Server", b"uvicorn"),
        (b"Date", b"today"),
        (b"Transfer-Encoding", b"chunked"),
        (b"X-Request-Id", b"a40-1"),
        (b"Content-Type", b"text/event-stream"),
        (b"Vary", b"Origin"),
    ]
    assert response_headers(said, "mine") == [
        (b"content-type", b"text/event-stream"),
        (b"vary", b"Origin"),
        (b"x-request-id", b"mine"),
        (b"request-id", b"mine"),
    ]


def test_the_query_passes_as_it_was_written() -> None:
    url = upstream_url(HERE, "/v1/messages", b"beta=true&x=%2F+a")
    assert str(url) == "http://engine/v1/messages?beta=true&x=%2F+a"


async def test_a_former_engines_session_is_closed_once_its_last_request_is_done() -> None:
    made: list[aiohttp.ClientSession] = []

    def factory(endpoint: Endpoint) -> aiohttp.ClientSession:
        made.append(open_session(endpoint))
        return made[-1]

    sessions = EngineSessions(factory)
    former, current, third = (Endpoint(f"http://{name}") for name in "abc")
    async with sessions.lease(former) as session:
        async with sessions.lease(former) as same:
            assert same is session
        async with sessions.lease(current):
            assert not session.closed
    async with sessions.lease(third):
        assert [one.closed for one in made] == [True, True, False]
    await sessions.close()
    assert made[2].closed


async def test_two_first_requests_share_one_session() -> None:
    class Slow:
        closed = False

        async def close(self) -> None:
            await asyncio.sleep(0.01)
            self.closed = True

    made: list[Slow] = []

    def factory(endpoint: Endpoint) -> aiohttp.ClientSession:
        made.append(Slow())
        return cast("aiohttp.ClientSession", made[-1])

    sessions = EngineSessions(factory)
    former, current = Endpoint("http://a"), Endpoint("http://b")
    async with sessions.lease(former):
        pass

    async def use() -> aiohttp.ClientSession:
        async with sessions.lease(current) as session:
            await asyncio.sleep(0.05)
            return session

    one = asyncio.create_task(use())
    await asyncio.sleep(0)  # the first is closing the former engine's session
    assert await use() is await one
    await sessions.close()
    assert [session.closed for session in made] == [True, True]
