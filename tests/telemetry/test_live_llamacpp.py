"""Telemetry of a real llama.cpp server leaves its sleep undisturbed."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from a40console.model.engine import Endpoint
from a40console.model.figures import Missing
from a40console.telemetry.sampler import EngineSampler
from tests.telemetry.engines import Events

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SERVER = """
import sys, threading, xllamacpp
model, socket, sleep_s = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.n_parallel, params.n_ctx = 4, 8192
params.endpoint_metrics = params.endpoint_slots = True
params.hostnames = [socket]
params.cpuparams.n_threads = 1
params.sleep_idle_seconds = int(sleep_s)
server = xllamacpp.Server(params)
threading.Event().wait()
"""


@contextmanager
def llamacpp(model: Path, *, sleep_s: int = -1) -> Iterator[Endpoint]:
    folder = tempfile.mkdtemp(dir="/tmp")
    path = f"{folder}/e.sock"
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(model), path, str(sleep_s)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with httpx.Client(transport=httpx.HTTPTransport(uds=path)) as client:
            for _ in range(200):
                time.sleep(0.1)
                try:
                    if client.get("http://engine/health").status_code == 200:
                        break
                except httpx.ConnectError:
                    continue
        yield Endpoint("http://engine", socket_path=path)
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


async def generate(client: httpx.AsyncClient, tokens: int, prompt: str = "Once") -> None:
    body = {"prompt": prompt, "n_predict": tokens, "ignore_eos": True}
    await client.post("/completion", json=body, timeout=120)


def test_a_watched_server_falls_asleep_and_is_not_woken(model_file: Path) -> None:
    async def run(endpoint: Endpoint) -> None:
        sampler = EngineSampler(kind="llamacpp", endpoint=endpoint, on_event=Events(), period_s=0.3)
        transport = httpx.AsyncHTTPTransport(uds=endpoint.socket_path)
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
            following = asyncio.create_task(sampler.run())
            await generate(client, 20)
            asleep = []
            for _ in range(16):
                await asyncio.sleep(0.5)
                asleep.append((await client.get("/props")).json()["is_sleeping"])
            assert asleep[-6:] == [True] * 6
            view = sampler.view((), ())
            assert view.asleep is True
            assert view.generated_tokens == 20
            assert view.slots == ()
            await generate(client, 20)
            await asyncio.sleep(1)
            view = sampler.view((), ())
            assert (view.asleep, view.generated_tokens) == (False, 40)
            assert view.counters_reset_s == Missing("never seen")
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    with llamacpp(model_file, sleep_s=2) as endpoint:
        asyncio.run(run(endpoint))
