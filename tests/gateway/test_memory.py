"""Twenty bodies of 32 MiB at once stay within the budget, and all of them get through."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from a40console.gateway.bodies import MIB
from tests.gateway.stub import Received, Reply, StubEngine, call, until

BODIES = 20
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "A" * (32 * MIB - 300)},
}
BODY = json.dumps(
    {
        "model": "m",
        "max_tokens": 9,
        "stream": True,
        "messages": [{"role": "user", "content": [IMAGE]}],
    }
).encode()
READING = 192 * MIB
"""What reading one such body as JSON and writing it anew takes; one is read at a time."""

SERVED = json.dumps({"object": "list", "data": [{"id": "smollm2"}]}).encode()
"""Each body names another model than this one, so each is written anew with it."""

BUDGET = 256 * MIB
WORKING_SPACE = 64 * MIB


@asynccontextmanager
async def gateway_process(path: str) -> AsyncIterator[tuple[psutil.Process, int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.gateway.gateway_process", path, str(port)]
    child = subprocess.Popen(command)  # noqa: ASYNC220 - it is not waited for
    try:
        await until(lambda: _listens(port), 20)
        yield psutil.Process(child.pid), port
    finally:
        child.kill()  # streams that a failed test leaves open would hold a graceful end up
        child.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def post(port: int, path: str) -> bytes:
    async with call(port, path, BODY) as answer:
        return await answer.body()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "working", "end"),
    [
        ("/v1/chat/completions", WORKING_SPACE, b"data: [DONE]\n\n"),
        ("/v1/messages", READING, b'event: message_stop\ndata: {"type":"message_stop"}\n\n'),
    ],
)
async def test_twenty_large_bodies_at_once(path: str, working: int, end: bytes) -> None:
    streaming = asyncio.Event()
    received = 0

    async def read_and_stream(request: Received, reply: Reply) -> None:
        nonlocal received
        if request.target == "/v1/models":
            await reply.whole(SERVED)
            return
        received += 1
        assert request.json["model"]
        request.body = b""
        await reply.start()
        await streaming.wait()
        await reply.chunk(end)
        await reply.end()

    async with StubEngine(read_and_stream) as engine, gateway_process(engine.path) as (child, port):
        idle = child.memory_info().rss
        peak = 0
        posts = [asyncio.create_task(post(port, path)) for _ in range(BODIES)]

        def all_received() -> bool:
            nonlocal peak
            peak = max(peak, child.memory_info().rss)
            return received == BODIES

        await until(all_received, 120)
        await asyncio.sleep(0.5)
        streams = child.memory_info().rss
        streaming.set()
        assert all(body.endswith(end) for body in await asyncio.gather(*posts))
    print(f"idle {idle // MIB} MiB, peak {peak // MIB} MiB, 20 open streams {streams // MIB} MiB")
    assert peak - idle < BUDGET + working
    assert streams - idle < WORKING_SPACE
