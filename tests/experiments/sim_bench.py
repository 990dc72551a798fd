"""A run's workplace on the simulated engine: the true client, counters and load's health.

In place of the service it steers the engine itself, by the plugin's routes and by new processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

from a40console.engines.controls import ControlError, EngineControls
from a40console.experiments.client import LoadClient
from a40console.model.engine import Endpoint
from a40console.model.experiment import Experiment, settle
from a40console.model.figures import Missing
from a40console.model.run import RunTarget
from a40console.model.run_record import Record
from a40console.service.run_bench import Around, Job, RunBench
from a40console.service.run_counters import RunCounters
from a40console.service.run_machine import MachineWatch
from a40console.service.run_stop import Limits, RunStop
from tests.sim.engine_process import TOKEN, SimProcess, sim_process


class SimEngine:
    """The simulated engine as an experiment steers it, and the client of whichever runs now."""

    def __init__(self, words: tuple[str, ...], model: str, depth: int, stop: RunStop) -> None:
        self._model = model
        self.depth = depth
        self.records: list[Record] = []
        self.bench: RunBench | None = None
        self._words = words
        self._stop = stop
        self._processes = ExitStack()
        self._clients = AsyncExitStack()
        self.process: SimProcess
        self.client: LoadClient

    async def start(self, *, speculating: bool) -> None:
        """A new process in place of the one before."""
        await self._clients.aclose()
        self._processes.close()
        words = self._words
        if speculating and self.depth:
            config = f'{{"method":"ngram","num_speculative_tokens":{self.depth}}}'
            words += (
                "--speculative-config",
                config,
                "--worker-extension-cls",
                "a.depth.DepthWorker",
            )
        self.process = self._processes.enter_context(sim_process(*words, model=self._model))
        self.client = await self._clients.enter_async_context(
            LoadClient(
                "http://engine",
                socket_path=str(self.process.socket),
                clock=self._stop.now_s,
                record=self._record,
                stop=self._stop.event,
            )
        )

    async def close(self) -> None:
        await self._clients.aclose()
        self._processes.close()

    @property
    def endpoint(self) -> Endpoint:
        socket = str(self.process.socket)
        return Endpoint(base_url="http://engine", socket_path=socket, plugin_token=TOKEN)

    def _record(self, record: Record) -> None:
        assert self.bench is not None
        self.bench.record(record)

    async def send(self, request: Any) -> Any:
        return await self.client.send(request)

    async def send_whole(self, request: Any) -> Any:
        return await self.client.send_whole(request)

    async def closed(self, streams: Any) -> Any:
        return await self.client.closed(streams)

    async def window_tokens(self) -> int | Missing:
        return 262_144

    async def count_tokens(self, path: str, body: Mapping[str, Any]) -> int | Missing:
        answer = await asyncio.to_thread(
            self.process.http.post, "/v1/messages/count_tokens", json={**body, "max_tokens": 1}
        )
        return int(answer.json()["input_tokens"])

    async def reset_cache(self) -> Missing | None:
        return None

    async def speculation(self, setting: str) -> Missing | None:
        tokens = {"off": 0, "on": self.depth}.get(setting)
        async with EngineControls(self.endpoint, "vllm") as controls:
            try:
                await controls.set_speculation(int(setting) if tokens is None else tokens)
            except ControlError as error:
                return Missing(error.message)
        return None

    async def restart(self, speculation: str) -> Missing | None:
        await self.start(speculating=speculation != "off")
        return None

    async def speculation_depth(self) -> int | Missing:
        return self.depth

    async def canary(self) -> Sequence[tuple[str, bool | None, str]]:
        return []


@asynccontextmanager
async def sim_bench(
    experiment: Experiment,
    *words: str,
    depth: int = 0,
    preset: str = "standard",
    model: str = "qwen3-coder-30b",
    asked: dict[str, str] | None = None,
) -> AsyncIterator[RunBench]:
    """A workplace with an engine of its own."""
    stop = RunStop(asked=lambda: None, limits=Limits())
    engine = SimEngine(words, model, depth, stop)
    machine = MachineWatch(here=True, simulated=True)
    try:
        await engine.start(speculating=True)
        async with machine:
            bench = RunBench(
                client=engine,
                engine=engine,
                around=Around(counters=lambda: RunCounters(engine.endpoint), machine=machine),
                append=engine.records.append,
                stop=stop,
                job=Job(
                    target=RunTarget(),
                    model=model,
                    settled=settle(experiment, preset, asked or {}),
                    seed=1,
                    usd_per_h=0.44,
                    simulated=True,
                ),
            )
            engine.bench = bench
            yield bench
    finally:
        await engine.close()
