"""Takes over what a service before us left: an engine, or a switch in its middle."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from a40console.engines.process import EngineProcess, ProcessState
from a40console.errors import ConsoleError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations import desire, record
from a40console.operations.adoption import adopted_status
from a40console.operations.climbing import Climber
from a40console.operations.gatekeeping import Gatekeeper
from a40console.operations.life import EngineLife, Wanted
from a40console.operations.roles import Recorder
from a40console.operations.status import EngineStatus
from a40console.operations.steps import StartInterruptedError
from a40console.operations.watch import Explain, ended_by_itself
from a40console.paths import Paths


class Resumption:
    """Finds the engine again, and ends a switch that nobody ended.

    What served before a switch is noted until the switch is over: one whose service was killed is
    rolled back by the next.
    """

    def __init__(
        self,
        paths: Paths,
        life: EngineLife,
        climber: Climber,
        gate: Gatekeeper,
        *,
        turn: asyncio.Lock,
        recorder: Recorder,
        explain: Explain,
    ) -> None:
        self._runs = paths.engine_runs
        self._desired_file = paths.desired
        self._fallback_file = paths.fallback
        self._life = life
        self._climber = climber
        self._gate = gate
        self._turn = turn
        self._record = recorder
        self._explain = explain

    async def adopt(self) -> bool:
        """Take over an engine that a service before us started; whether there is one.

        One that ended while no service watched is explained, and what was desired of it stays.
        """
        run, life = record.latest(self._runs), self._life
        process = EngineProcess.recorded(run.folder(self._runs)) if run else None
        if run is None or process is None:
            return False
        status = adopted_status(run, process, life.clock())
        if process.state() is ProcessState.ENDED:
            self._ended(status, process)
            return False
        life.process = process
        status = replace(status, profile=desire.turned_since(status.profile, self._desired_file))
        if status.state is EngineState.ORPHANED:
            status = replace(status, end=self._explain(process, status).end)
        life.publish(status)
        age_s = life.clock() - process.identity.started_monotonic_s
        self._record("engine.adopted", f"{run.profile.name}, {age_s:.0f} s old, is taken over")
        if status.state is not EngineState.STARTING:
            desire.forget(self._fallback_file)
            life.watch(process)
            return True
        async with self._turn:
            with self._gate.held(f"{run.profile.name} is started"):
                await self._see_through(status, process)
        return True

    def _ended(self, status: EngineStatus, process: EngineProcess) -> None:
        """It ended while no service watched: said, unless it was stopped."""
        if desire.desired(self._desired_file) is None:
            return
        ending = ended_by_itself(status, self._explain(process, status))
        self._life.publish(ending.status)
        self._record(ending.kind, ending.text, "error", ending.evidence)
        before = self._take_fallback()
        if before is not None and not record.has_served(process.run_dir):
            self._tell(before, ending.text)
            desire.remember(self._desired_file, before)

    async def _see_through(self, status: EngineStatus, process: EngineProcess) -> None:
        """Wait for a start that another service began; one that fails is rolled back."""
        life = self._life
        try:
            await life.step.run(life.see_ready(status, process))
        except StartInterruptedError:
            raise
        except ConsoleError as error:
            before = self._take_fallback()
            if before is None or life.status.state is EngineState.ORPHANED:
                raise
            self._tell(before, error.message)
            await self._climber.climb(Wanted(before))
        desire.forget(self._fallback_file)

    def _take_fallback(self) -> Profile | None:
        before = desire.desired(self._fallback_file)
        desire.forget(self._fallback_file)
        return before

    def _tell(self, before: Profile, why: str) -> None:
        text = f"{why}; {before.name} is put back, as the switch was not ended by its service"
        self._record("engine.rolled_back", text, "warn", {"after": before.name})
