"""On real vLLM, by the rows of our plugin: a client that leaves frees its slot within a second."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from a40console.engines.plugin_folder import (
    engine_python,
    plugin_environment,
    write_plugin_folder,
)
from a40console.gateway.upstream import Upstream
from tests.gateway.real_engines import VLLM_VERSIONS, vllm
from tests.gateway.stub import (
    NATIVE_ENGINE,
    TRANSLATED_ENGINE,
    Gateway,
    Speaks,
    call,
    gateway,
    until,
)
from tests.gateway.wire import read_stream

pytestmark = [pytest.mark.vllm, pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]

MESSAGES = "/v1/messages?beta=true"
LONG: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 1500,
    "temperature": 0,
    "messages": [{"role": "user", "content": "Write a long story of a ship and its whole crew."}],
}
SHORT = {**LONG, "max_tokens": 12}
WORDS = "The sea was calm, and the ship went on its way to the north with a light wind. "


def prompt_of(number: int) -> dict[str, Any]:
    """A prompt of some 3,000 tokens that no cache knows."""
    text = f"{number} {secrets.token_hex(8)} " + WORDS * 160
    turn = {"role": "user", "content": text}
    return {**LONG, "max_tokens": 600, "messages": [turn], "stream": True}


@dataclass(frozen=True)
class Plugged:
    """A vLLM whose requests the plugin tells."""

    upstream: Upstream
    token: str

    async def state(self) -> dict[str, Any]:
        connector = aiohttp.UnixConnector(str(self.upstream.endpoint.socket_path))
        async with (
            aiohttp.ClientSession("http://engine", connector=connector) as session,
            session.get(
                "/a40console/v1/state", headers={"Authorization": f"Bearer {self.token}"}
            ) as answer,
        ):
            state: dict[str, Any] = await answer.json()
            return state

    async def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = (await self.state())["running"]
        return rows

    async def row(self, served: Gateway) -> dict[str, Any] | None:
        """The engine's row of the gateway's one request."""
        (live,) = served.meter.live()
        rows = [one for one in await self.rows() if live.request_id in one["external_id"]]
        return rows[0] if rows else None

    async def free_within(self, limit_s: float, since: float) -> None:
        while await self.rows():
            assert time.monotonic() - since < limit_s, await self.rows()
            await asyncio.sleep(0.02)


@pytest.fixture(scope="module", params=VLLM_VERSIONS)
def engine(request: pytest.FixtureRequest) -> Iterator[Plugged]:
    named = os.environ.get("A40CONSOLE_TEST_ENGINES")
    if not named:
        pytest.skip("A40CONSOLE_TEST_ENGINES names no folder that .ci/engines.sh prepared")
    home = Path(tempfile.mkdtemp(prefix="gwp", dir="/tmp"))
    token_file = home / "token"
    token_file.touch(mode=0o600)
    token_file.write_text(secrets.token_hex(16))
    python = engine_python(Path(named) / f"vllm-{request.param}/venv/bin/vllm")
    try:
        settings = plugin_environment(python, write_plugin_folder(home), token_file, None)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            with vllm(request.param) as upstream:
                yield Plugged(upstream, token_file.read_text())
    finally:
        shutil.rmtree(home)


@asynccontextmanager
async def reaching(
    engine: Plugged, served: Gateway, body: dict[str, Any], wanted: str
) -> AsyncIterator[None]:
    """A request that has come so far; its client leaves at the end of the block."""
    async with call(served.port, MESSAGES, body, begin=False) as answer:
        for _ in range(3000):
            row = await engine.row(served) if served.meter.live() else None
            if row is not None and (row["phase"] == wanted or wanted == "known"):
                break
            assert row is None or row["phase"] != "decode", f"never seen in {wanted}"
            await asyncio.sleep(0.01)
        else:
            raise AssertionError(f"it never came to {wanted}")
        yield
        answer.leave()


@pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])
@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        pytest.param({**LONG, "stream": True}, "decode", id="decode"),
        pytest.param(LONG, "decode", id="not a stream"),
        pytest.param(None, "known", id="prefill"),
    ],
)
async def test_33_34_a_client_that_leaves_frees_its_slot(
    engine: Plugged, route: Speaks, body: dict[str, Any] | None, wanted: str
) -> None:
    before = (await engine.state())["totals"]["aborted"]
    async with gateway(engine.upstream, dialects=route) as served:
        async with reaching(engine, served, body or prompt_of(0), wanted):
            pass
        left_at = time.monotonic()
        await engine.free_within(1.0, left_at)
        (row,) = await served.ended()
    assert row.finish_reason == "aborted"
    assert (await engine.state())["totals"]["aborted"] == before + 1


async def test_33_a_client_that_leaves_the_queue_is_forgotten(engine: Plugged) -> None:
    """Eight run at once: the ninth waits, and its client gives up."""
    async with gateway(engine.upstream) as served:
        clients = [
            asyncio.create_task(_stream(served.port, prompt_of(number))) for number in range(9)
        ]
        for _ in range(1500):
            if len(await engine.rows()) == 9:
                break
            await asyncio.sleep(0.02)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await engine.free_within(1.0, time.monotonic())
        await until(lambda: served.meter.counts().aborted == 9)


async def _stream(port: int, body: dict[str, Any]) -> bytes:
    async with call(port, MESSAGES, body) as answer:
        return await answer.body()


@pytest.mark.parametrize("route", [NATIVE_ENGINE, TRANSLATED_ENGINE], ids=["native", "chat"])
async def test_what_the_client_is_told_is_what_the_engine_counted(
    engine: Plugged, route: Speaks
) -> None:
    since = (await engine.state())["sequence"]
    async with gateway(engine.upstream, dialects=route) as served:
        async with call(served.port, MESSAGES, {**SHORT, "stream": True}) as answer:
            read = read_stream(await answer.body())
        async with call(served.port, MESSAGES, SHORT) as answer:
            message = await answer.json()
        rows = await served.ended(2)
    usage = read.events[-2]["usage"]
    assert usage["output_tokens"] == message["usage"]["output_tokens"] == 12
    assert read.content == message["content"]
    assert (read.reason, message["stop_reason"]) == ("max_tokens", "max_tokens")
    assert [row.generated_tokens for row in rows] == [12, 12]
    prompt = usage["input_tokens"] + usage["cache_read_input_tokens"]
    finished = [one for one in (await engine.state())["finished"] if one["sequence"] > since]
    assert [one["generated_tokens"] for one in finished] == [12, 12]
    assert {one["prompt_tokens"] for one in finished} == {prompt}


async def test_42_an_overflow_is_told_so_that_the_client_compacts(engine: Plugged) -> None:
    body = {**SHORT, "messages": [{"role": "user", "content": WORDS * 400}]}
    for route in (NATIVE_ENGINE, TRANSLATED_ENGINE):
        async with gateway(engine.upstream, dialects=route) as served:
            for asked in (body, {**body, "stream": True}):
                async with call(served.port, MESSAGES, asked) as answer:
                    assert answer.status == 400
                    error = (await answer.json())["error"]
                assert error["type"] == "invalid_request_error"
                assert error["message"].startswith("prompt is too long: ")
                assert error["message"].endswith(" > 4096 maximum")
