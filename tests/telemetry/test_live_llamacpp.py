"""Telemetry of a real llama.cpp server: rates against its counter, and its sleep undisturbed."""

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
from a40console.model.figures import Missing, number
from a40console.telemetry.sampler import EngineSampler
from a40console.telemetry.view import EngineView
from a40console.telemetry.windows import value_at
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


async def counter(client: httpx.AsyncClient) -> float:
    slots = (await client.get("/slots")).json()
    text: str = (await client.get("/metrics")).text
    name = "llamacpp:tokens_predicted_total "
    line = next(row for row in text.splitlines() if row.startswith(name))
    running = [slot["next_token"][0]["n_decoded"] for slot in slots if slot["is_processing"]]
    return float(line.removeprefix(name)) + float(sum(running))


def slots_rate(view: EngineView) -> float:
    assert not isinstance(view.slots, Missing)
    return sum(number(slot.window_tokens_per_s) or 0.0 for slot in view.slots)


def test_rates_are_the_counters_within_one_percent_over_ten_seconds(model_file: Path) -> None:
    async def run(endpoint: Endpoint) -> None:
        events = Events()
        sampler = EngineSampler(
            kind="llamacpp", endpoint=endpoint, on_event=events, kv_unified=False
        )
        transport = httpx.AsyncHTTPTransport(uds=endpoint.socket_path)
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
            following = asyncio.create_task(sampler.run())
            load = [asyncio.create_task(generate(client, 900)) for _ in range(2)]
            await asyncio.sleep(3)
            recorded, shown = [], []
            for tick in range(151):
                recorded.append((time.monotonic(), await counter(client)))
                if tick % 10 == 0:
                    shown.append((time.monotonic(), sampler.view((), ())))
                await asyncio.sleep(0.1)
            for task in (*load, following):
                task.cancel()
            await asyncio.gather(*load, following, return_exceptions=True)
        (middle_s, middle), (end_s, end) = shown[-6], shown[-1]
        begin_s = middle_s - 5 - (number(middle.throughput.age_s) or 0.0)
        end_s -= number(end.throughput.age_s) or 0.0
        counted = (value_at(recorded, end_s) - value_at(recorded, begin_s)) / (end_s - begin_s)
        mean = (slots_rate(middle) + slots_rate(end)) / 2
        assert mean == pytest.approx(counted, rel=0.01)
        for _, view in shown:
            rate = number(view.throughput.generation_tokens_per_s)
            whole = slots_rate(view) + (number(view.ended_tokens_per_s) or 0.0)
            assert rate is None or whole == pytest.approx(rate, abs=1e-6)
        assert end.throughput.sequences_per_pass == pytest.approx(2.0, rel=0.05)
        assert end.kv_cache.capacity_tokens == 8192
        assert events == []

    with llamacpp(model_file) as endpoint:
        asyncio.run(run(endpoint))


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
