"""Before a real llama.cpp: the same answers as straight from it, exact counts, freed slots."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from a40console.engines import embedded
from a40console.gateway.anthropic.answers import NativeAnswer
from a40console.gateway.anthropic.guard import Guard
from a40console.gateway.anthropic.stream import MessagesReader
from a40console.gateway.meter import Meter
from a40console.gateway.upstream import Upstream
from a40console.model.engine import Endpoint
from tests.gateway.stub import (
    NATIVE_ENGINE,
    TRANSLATED_ENGINE,
    Speaks,
    call,
    gateway,
    until,
)
from tests.gateway.wire import read_stream

pytestmark = [pytest.mark.engine, pytest.mark.slow]

CHAT, COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"
TURN = {"messages": [{"role": "user", "content": "Say hi to the sea"}]}
SHORT: dict[str, Any] = {"model": "smollm2", "max_tokens": 12, "temperature": 0}
STREAM: dict[str, Any] = {**SHORT, "stream": True}
NAMES = re.compile(rb'"(id|created)":("[^"]*"|\d+)')
TIMES = re.compile(rb'"(\w+_(?:ms|second))":[\d.e+-]+')


def ready(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
            probe.sendall(b"GET /health HTTP/1.1\r\nhost: engine\r\n\r\n")
            return b" 200 " in probe.recv(4096)
        except OSError:
            return False


@pytest.fixture(scope="module")
def engine(model_file: Path) -> Iterator[Upstream]:
    folder = Path(tempfile.mkdtemp(prefix="gwl", dir="/tmp"))
    path = folder / "e.sock"
    script = str(embedded.__file__)
    command = [
        sys.executable, "-P", script, "--model", str(model_file), "--alias", "smollm2",
        "--socket", str(path), "--slots", "2", "--context-tokens", "4096", "--threads", "1",
    ]  # fmt: skip
    with (folder / "log").open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        began = time.monotonic()
        while not ready(path) and child.poll() is None and time.monotonic() - began < 60:
            time.sleep(0.05)
        assert ready(path), (folder / "log").read_text(errors="replace")[-2000:]
        yield Upstream(Endpoint("http://engine", str(path)), "llamacpp", "smollm2", False, "run-1")
    finally:
        child.terminate()
        child.wait(10)
        shutil.rmtree(folder)


async def straight(engine: Upstream, path: str, body: dict[str, Any] | None = None) -> bytes:
    connector = aiohttp.UnixConnector(str(engine.endpoint.socket_path))
    async with aiohttp.ClientSession("http://engine", connector=connector) as session:
        method = "GET" if body is None else "POST"
        async with session.request(method, path, json=body) as response:
            return await response.read()


async def busy(engine: Upstream) -> bool:
    return b'"is_processing":true' in await straight(engine, "/slots")


def comparable(answer: bytes) -> bytes:
    """Without what differs between any two answers: ids and measured times."""
    return TIMES.sub(rb'"\1":0', NAMES.sub(rb'"\1":0', answer))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {**STREAM, **TURN}),
        (CHAT, {**STREAM, **TURN, "stream_options": {"include_usage": True}}),
        (CHAT, {**STREAM, **TURN, "timings_per_token": True}),
        (CHAT, {**SHORT, **TURN}),
        (COMPLETIONS, {**STREAM, "prompt": "The capital of France is"}),
        (COMPLETIONS, {**SHORT, "prompt": "The capital of France is"}),
    ],
)
async def test_the_same_answer_as_straight_from_the_engine(
    engine: Upstream, path: str, body: dict[str, Any]
) -> None:
    await straight(engine, path, body)
    expected = await straight(engine, path, body)
    async with gateway(engine) as served:
        async with call(served.port, path, body) as answer:
            assert comparable(await answer.body()) == comparable(expected)
        (row,) = await served.ended()
    assert (row.generated_tokens, row.method, row.finish_reason) == (12, "usage", "length")
    assert row.cached_tokens is not None
    assert row.prompt_tokens == row.cached_tokens + 1
    assert (row.first_token_at_s is not None) is ("stream" in body)


@pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])
async def test_a_message_says_what_the_engine_says_straight(
    engine: Upstream, route: Speaks
) -> None:
    await straight(engine, MESSAGES, {**STREAM, **TURN})
    expected = read_stream(guarded(await straight(engine, MESSAGES, {**STREAM, **TURN})))
    async with gateway(engine, dialects=route) as served:
        async with call(served.port, MESSAGES, {**STREAM, **TURN}) as answer:
            read = read_stream(await answer.body())
        async with call(served.port, MESSAGES, {**SHORT, **TURN}) as answer:
            message = await answer.json()
        rows = await served.ended(2)
    assert read.content == message["content"] == expected.content
    assert read.reason == message["stop_reason"] == expected.reason == "max_tokens"
    assert read.message is not None
    assert read.message["usage"] == message["usage"]
    for row in rows:
        assert (row.generated_tokens, row.method, row.finish_reason) == (12, "usage", "length")
        assert row.cached_tokens is not None
        assert row.prompt_tokens == row.cached_tokens + 1


def guarded(stream: bytes) -> bytes:
    meter = Meter()
    reader = MessagesReader(meter, meter.accept("messages", "a40-1"))
    answer = NativeAnswer(reader, Guard(model="smollm2", request_id="a40-1"))
    return answer.feed(stream) + answer.end("cut", broken=False)


async def test_an_overflow_is_told_so_that_the_client_compacts(engine: Upstream) -> None:
    turn = {"messages": [{"role": "user", "content": "word " * 5000}]}
    for route in (NATIVE_ENGINE, TRANSLATED_ENGINE):
        async with (
            gateway(engine, dialects=route) as served,
            call(served.port, MESSAGES, {**STREAM, **turn}) as answer,
        ):
            assert answer.status == 400
            error = (await answer.json())["error"]
        assert re.fullmatch(r"prompt is too long: 5\d{3} tokens > \d+ maximum", error["message"])


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_client_that_leaves_frees_its_slot_within_a_second(
    engine: Upstream, path: str
) -> None:
    body = {**STREAM, **TURN, "max_tokens": 2000, "ignore_eos": True}
    async with gateway(engine) as served:
        async with call(served.port, path, body) as answer:
            await until(lambda: any(row.characters for row in served.meter.live()), 20)
            assert await busy(engine)
            answer.leave()
            left_at = time.monotonic()
        for _ in range(50):
            if not await busy(engine):
                break
            await asyncio.sleep(0.02)
        assert time.monotonic() - left_at < 1
        (row,) = await served.ended()
    assert row.finish_reason == "aborted"
