"""What answers at a URL before a run is planned there: one that is not well is refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from a40console.errors import RefusedError
from a40console.model.run import RunTarget
from a40console.service.run_environment import window_at

MODELS = b'{"data": [{"id": "a", "max_model_len": 4096}]}'


@asynccontextmanager
async def server(status: bytes) -> AsyncIterator[RunTarget]:
    """One that lists its models, and never answers anything else."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        if b"/v1/models" not in asked:
            await reader.read()
        length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(MODELS)
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + length + MODELS)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield RunTarget(kind="url", url=f"http://127.0.0.1:{port}")
    finally:
        listening.close()


async def test_a_server_that_fails_is_refused_with_what_it_answered() -> None:
    async with server(b"500 Internal Server Error") as target:
        with pytest.raises(RefusedError, match="not well") as refused:
            await window_at(target)
    assert "HTTP 500" in refused.value.evidence


async def test_a_version_that_hangs_holds_no_plan_up() -> None:
    async with server(b"200 OK") as target:
        began_s = time.monotonic()
        assert await window_at(target) == 4096
    assert time.monotonic() - began_s < 2.5, "the version would have taken 3 s"


async def test_a_server_that_asks_for_a_key_can_be_planned_for() -> None:
    async with server(b"401 Unauthorized") as target:
        await window_at(target)
