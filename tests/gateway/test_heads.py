"""Heads of requests within limits: neither large nor many nor slow ones hold the gateway."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from a40console.gateway.heads import HeadLimits, LimitedHeads
from tests.gateway.stub import QuietServer, until

HOST = b"POST /x HTTP/1.1\r\nhost: localhost\r\n"


class Impatient(LimitedHeads):
    limits = HeadLimits(head_bytes=4000, headers=20, head_s=0.3)


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    async def size(request: Request) -> Response:
        return PlainTextResponse(f"{len(await request.body())}")

    app = Starlette(routes=[Route("/x", size, methods=["POST"])])
    listener = socket.create_server(("127.0.0.1", 0))
    serving = QuietServer(
        uvicorn.Config(app, http=Impatient, ws="none", loop="none", log_config=None)
    )
    task = asyncio.create_task(serving.serve([listener]))
    try:
        await until(lambda: serving.started)
        yield listener.getsockname()[1]
    finally:
        serving.should_exit = True
        await task


async def exchange(port: int, *pieces: bytes, pause_s: float = 0.02) -> tuple[int, bytes]:
    """Status and body of the first answer; 0 where the connection closes without one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(pause_s)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        body = await asyncio.wait_for(reader.read(4000), 5)
        return int(head.split(b" ")[1]), body
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0, b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    "pieces",
    [
        (HOST + b"x: " + b"a" * 5000 + b"\r\n\r\n",),
        (HOST + b"x: " + b"a" * 3000, b"a" * 3000, b"a" * 3000),
        (HOST + b"".join(b"x%d: y\r\n" % number for number in range(30)) + b"\r\n",),
        (b"POST /" + b"x" * 5000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",),
        (HOST + b"content-length: 4\r\nx: " + b"a" * 5000 + b"\r\n\r\nbody",),
    ],
)
async def test_a_head_beyond_the_limits_is_refused_in_a_shape_that_both_apis_read(
    pieces: tuple[bytes, ...],
) -> None:
    async with server() as port:
        status, body = await exchange(port, *pieces)
    said: Any = json.loads(body)
    assert status == 431
    assert (said["type"], said["error"]["type"]) == ("error", "invalid_request_error")
    assert "too large" in said["error"]["message"]


async def test_a_head_that_does_not_end_is_given_up() -> None:
    async with server() as port:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        drops = [HOST, *(b"x: y\r\n" for _ in range(5))]
        status, body = await exchange(port, *drops, pause_s=0.04)
        assert status == 408
        assert b"timeout_error" in body
        assert loop.time() - began_s < 2


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with server() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(reader.read(), 2) == b""
        writer.close()


async def test_a_large_body_beside_the_end_of_a_head_is_no_large_head() -> None:
    body = b"b" * 200_000
    end = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body)
    async with server() as port:
        assert await exchange(port, HOST, end + body) == (200, b"200000")
        assert await exchange(port, HOST + end + body) == (200, b"200000")


async def test_requests_one_after_another_each_have_their_own_head() -> None:
    request = HOST + b"x: " + b"a" * 1500 + b"\r\ncontent-length: 2\r\n\r\nab"
    async with server() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(5):
            writer.write(request)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            assert head.startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(1) == b"2"
            await asyncio.sleep(0.1)
        writer.write(HOST)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        assert head.startswith(b"HTTP/1.1 408")
        writer.close()


async def test_a_request_under_way_outlives_the_patience_for_heads() -> None:
    async with server() as port:
        end = b"content-length: 6\r\nconnection: close\r\n\r\n"
        status, body = await exchange(port, HOST + end, b"ab", b"cd", b"ef", pause_s=0.25)
    assert (status, body) == (200, b"6")
