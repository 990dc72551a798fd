"""Keeps telemetry on the engine that runs now: a new sampler for each engine, none for none."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from a40console.model.engine import EngineState
from a40console.operations.status import EngineStatus
from a40console.telemetry.depth_speeds import DepthSpeeds
from a40console.telemetry.sampler import EngineSampler, EventSink

FOLLOWED = frozenset({EngineState.SERVING, EngineState.DRAINING, EngineState.ORPHANED})


class EngineFollower:
    """Owns the sampler of the present engine."""

    def __init__(self, *, runs: Path, period_s: float, on_event: EventSink) -> None:
        self._runs = runs
        self._period_s = period_s
        self._on_event = on_event
        self._run_id: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._speeds = DepthSpeeds()
        self._speeds_of = ""
        self.sampler: EngineSampler | None = None

    def follow(self, status: EngineStatus) -> None:
        """Adjust to a change of the engine's life."""
        run = status.run if status.state in FOLLOWED else None
        if (run.id if run else None) == self._run_id:
            return
        self._drop()
        if run is None:
            return
        self._run_id = run.id
        self.sampler = EngineSampler(
            kind=run.profile.kind,
            endpoint=run.endpoint(self._runs),
            period_s=self._period_s,
            on_event=self._on_event,
            # We name the number of slots, and llama.cpp then divides its cache among them.
            kv_unified=False if run.profile.kind == "llamacpp" else None,
        )
        if run.id == self._speeds_of:  # it slept meanwhile: what was measured holds
            self.sampler.speeds = self._speeds
        self._speeds, self._speeds_of = self.sampler.speeds, run.id
        self._task = asyncio.create_task(self.sampler.run(), name="engine telemetry")

    async def close(self) -> None:
        """Stop reading."""
        task = self._task
        self._drop()
        if task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _drop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._task, self._run_id, self.sampler = None, None, None
