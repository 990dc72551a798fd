"""Telemetry of a real llama.cpp server leaves its sleep undisturbed."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from a40console.model.engine import Endpoint
from a40console.model.figures import Missing
from a40console.model.request import GatewayRow, Phase, TokenMark
from a40console.telemetry.sampler import EngineSampler
from tests.telemetry.engines import Events
from tests.telemetry.makers import gateway_row

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


class Clients:
    """Six streams at once, with rows that put their sending in the order opposite to the engine's.

    That is the worst that requests sent within a few milliseconds can come to.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.live: dict[str, GatewayRow] = {}
        self.finished: list[GatewayRow] = []

    async def run(self) -> None:
        begin_s = time.monotonic()
        for number in range(6):
            name = f"a40-{number}"
            self.live[name] = gateway_row(
                name, received_at_s=begin_s, sent_at_s=begin_s - number * 1e-3, method="usage"
            )
        await asyncio.gather(*(self._stream(number) for number in range(6)))

    async def _stream(self, number: int) -> None:
        name = f"a40-{number}"
        await asyncio.sleep(0.1 * number)
        prompt = f"zebra {number} cold " * 40
        body = {"prompt": prompt, "n_predict": 40, "ignore_eos": True, "stream": True}
        async with self._client.stream("POST", "/completion", json=body, timeout=300) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and json.loads(line[6:]).get("content"):
                    self._take_token(name)
        at_s = time.monotonic()
        row = replace(self.live.pop(name), ended_at_s=at_s, ended_at="2026-11-29T10:00:00Z")
        self.finished.append(row)

    def _take_token(self, name: str) -> None:
        row, at_s = self.live[name], time.monotonic()
        tokens = (row.generated_tokens or 0) + 1
        self.live[name] = replace(
            row,
            first_token_at_s=row.first_token_at_s or at_s,
            last_token_at_s=at_s,
            generated_tokens=tokens,
            marks=(*row.marks, TokenMark(at_s, tokens)),
        )


async def follow(sampler: EngineSampler, load: asyncio.Task[None]) -> None:
    while not load.done():
        await sampler.poll()
        await asyncio.sleep(0.3)
    await sampler.aclose()


def min_of_each(looks: tuple[Counter[Phase], Counter[Phase]]) -> Counter[Phase]:
    earlier, later = looks
    return earlier & later


def test_six_cold_prompts_on_four_slots_are_six_requests(model_file: Path) -> None:
    async def run(endpoint: Endpoint) -> tuple[list[Counter[Phase]], int]:
        sampler = EngineSampler(kind="llamacpp", endpoint=endpoint, on_event=Events(), period_s=0.3)
        transport = httpx.AsyncHTTPTransport(uds=endpoint.socket_path)
        phases: list[Counter[Phase]] = []
        wrong = 0
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as http:
            clients = Clients(http)
            load = asyncio.create_task(clients.run())
            following = asyncio.create_task(follow(sampler, load))
            while not load.done():
                await asyncio.sleep(0.2)
                live = tuple(clients.live.values())
                slots = sampler.view(live, tuple(clients.finished)).slots
                if isinstance(slots, Missing):  # before the first answer
                    continue
                ours = [slot for slot in slots if not slot.direct]
                assert sorted(slot.request_id for slot in ours) == sorted(clients.live)
                wrong += len(slots) > 6
                phases.append(Counter(slot.phase for slot in slots))
            await load
            await following
        return phases, wrong

    with llamacpp(model_file) as endpoint:
        phases, wrong = asyncio.run(run(endpoint))
    assert wrong == 0, "a request is shown twice"
    # A client reads its own end and its neighbour's first token in either order: two looks tell.
    lasting = list(map(min_of_each, pairwise(phases)))
    assert max(phase["decode"] for phase in lasting) == 4
    assert max(phase["decode"] + phase["prefill"] for phase in lasting) == 4
    assert max(phase["queued"] for phase in phases) == 2
