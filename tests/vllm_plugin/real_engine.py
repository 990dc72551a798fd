"""A real vLLM on this machine's CPU with our plugin in it, and what its clients see of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from a40console.engines.plugin_folder import (
    WORKER_EXTENSION,
    engine_python,
    plugin_environment,
    write_plugin_folder,
)

ENGINES = os.environ.get("A40CONSOLE_TEST_ENGINES")
VERSIONS = os.environ.get("A40CONSOLE_TEST_VLLM", "0.27.1").split(",")
START_TIMEOUT_S = 300.0
DEPTH = 5
REPEATING = (
    "Repeat this text word for word: " + "the cat sat on the mat and the dog lay by it. " * 16
)

marks = [
    pytest.mark.vllm,
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.timeout(START_TIMEOUT_S + 120),
    pytest.mark.skipif(ENGINES is None, reason="A40CONSOLE_TEST_ENGINES names no prepared engines"),
]


@dataclass(frozen=True)
class Server:
    version: str
    socket: Path
    token: str
    log: Path
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End it, and whatever it has started."""
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


NGRAM = {"method": "ngram", "num_speculative_tokens": DEPTH, "prompt_lookup_max": 4}


def model() -> Path:
    """The model that every test serves."""
    return Path(ENGINES or "") / "smollm2-safetensors"


@contextlib.contextmanager
def running(
    version: str,
    *,
    speculation: Mapping[str, Any] = NGRAM,
    environment: Mapping[str, str] | None = None,
    pythonpath: Path | None = None,
) -> Iterator[Server]:
    """A vLLM that speculates, with our worker extension, until the block ends."""
    engines = Path(ENGINES or "")
    home = Path(tempfile.mkdtemp(dir="/tmp", prefix="a40"))
    token_file = home / "token"
    token_file.touch(mode=0o600)
    token_file.write_text(secrets.token_hex(16))
    executable = engines / f"vllm-{version}" / "venv/bin/vllm"
    plugin = plugin_environment(
        engine_python(executable),
        write_plugin_folder(home),
        token_file,
        None,
        None if pythonpath is None else str(pythonpath),
    )
    settings = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        **(environment or {}),
    }
    command = [str(executable), "serve", str(model())]
    command += ["--served-model-name", "smollm2", "--uds", str(home / "engine.sock")]
    command += ["--enforce-eager", "--max-model-len", "4096", "--max-num-seqs", "4"]
    command += ["--max-num-batched-tokens", "512", "--enable-prompt-tokens-details"]
    command += ["--speculative-config", json.dumps(speculation)]
    command += ["--worker-extension-cls", WORKER_EXTENSION]
    with (home / "engine.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env=os.environ | settings | plugin,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=home,
            start_new_session=True,
        )
    started = Server(
        version, home / "engine.sock", token_file.read_text(), home / "engine.log", process
    )
    try:
        _wait_until_healthy(started)
        yield started
    finally:
        started.stop()
        shutil.rmtree(home)


def _wait_until_healthy(server: Server) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    transport = httpx.HTTPTransport(uds=str(server.socket))
    with httpx.Client(transport=transport, base_url="http://engine") as client:
        while time.monotonic() < deadline and server.process.poll() is None:
            if _listens(server.socket) and client.get("/health").status_code == 200:
                return
            time.sleep(0.5)
    pytest.fail(f"vLLM did not start:\n{server.log.read_text()[-16000:]}")


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@contextlib.asynccontextmanager
async def connected(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.AsyncHTTPTransport(uds=str(server.socket))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://engine", timeout=120
    ) as opened:
        yield opened


@dataclass
class Stream:
    """One streamed chat as its client sees it."""

    text: str = ""
    prompt_ids: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)
    """When each chunk came."""

    finish_reason: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)


class Engine:
    """The engine as its clients and the console see it."""

    def __init__(self, server: Server, client: httpx.AsyncClient) -> None:
        self.client = client
        self._bearer = {"Authorization": f"Bearer {server.token}"}

    async def state(self, since: int = 0) -> dict[str, Any]:
        answer = await self.client.get(
            "/a40console/v1/state", params={"since": since}, headers=self._bearer
        )
        assert answer.status_code == 200, answer.text
        state: dict[str, Any] = answer.json()
        assert state["disabled"] is None
        assert state["errors"] == 0
        return state

    async def control(self, name: str, **body: Any) -> httpx.Response:
        """One of the plugin's POST routes."""
        return await self.client.post(f"/a40console/v1/{name}", json=body, headers=self._bearer)

    async def settled(self, since: int = 0) -> dict[str, Any]:
        """The state once nothing runs any more."""
        for _ in range(100):
            state = await self.state(since)
            scheduler = state["scheduler"] or {"running": 0, "waiting": 0}
            if not state["running"] and scheduler["running"] + scheduler["waiting"] == 0:
                return state
            await asyncio.sleep(0.1)
        pytest.fail("the engine did not come to rest")

    async def counters(self) -> dict[str, float]:
        text = (await self.client.get("/metrics")).text
        sums: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
        return sums

    async def apart(self, tokens: list[int]) -> float:
        """How far the two likeliest tokens after these are apart, in log probability."""
        body = {"model": "smollm2", "prompt": tokens, "max_tokens": 1, "temperature": 0}
        answer = await self.client.post("/v1/completions", json={**body, "logprobs": 2})
        assert answer.status_code == 200, answer.text
        (likeliest,) = answer.json()["choices"][0]["logprobs"]["top_logprobs"]
        best, second, *_ = sorted(likeliest.values(), reverse=True)
        return float(best - second)

    async def chat(self, name: str, prompt: str, max_tokens: int, **settings: Any) -> Any:
        """One streamed chat, to its end; its usage."""
        stream = Stream()
        await self.follow(stream, name, prompt, max_tokens, **settings)
        return stream.usage

    async def follow(
        self, stream: Stream, name: str, prompt: str, max_tokens: int, **settings: Any
    ) -> None:
        """One streamed chat, to its end, into `stream` as it comes."""
        body = {
            "model": "smollm2",
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **settings,
        }
        async with self.client.stream(
            "POST", "/v1/chat/completions", json=body, headers={"X-Request-Id": name}
        ) as response:
            assert response.status_code == 200, await response.aread()
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    _take(stream, json.loads(line[6:]))
        assert stream.usage


def _take(stream: Stream, chunk: dict[str, Any]) -> None:
    assert "error" not in chunk, chunk
    stream.usage = chunk.get("usage") or stream.usage
    stream.prompt_ids = chunk.get("prompt_token_ids") or stream.prompt_ids
    for choice in chunk["choices"]:
        stream.text += choice["delta"].get("content") or ""
        stream.ids += choice.get("token_ids") or []
        stream.finish_reason = choice["finish_reason"] or stream.finish_reason
        stream.at_s.append(time.monotonic())
