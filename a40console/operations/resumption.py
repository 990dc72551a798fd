"""Takes over what a service before us left: an engine, or a switch in its middle."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from a40console.engines.process import EngineProcess, ProcessState
from a40console.errors import ConsoleError
from a40console.model.engine import EngineState
from a40console.operations import desire, record
from a40console.operations.adoption import adopted_status
from a40console.operations.climbing import Climber
from a40console.operations.gatekeeping import Gatekeeper
from a40console.operations.life import EngineLife, Proof, Wanted
from a40console.operations.roles import Recorder
from a40console.operations.status import EngineStatus
from a40console.operations.steps import StartInterruptedError
from a40console.operations.unended import Unended, unended
from a40console.operations.watch import Explain, ended_by_itself
from a40console.paths import Paths


class Resumption:
    """Finds the engine again, and ends a switch that nobody ended.

    What served before a switch is noted until the switch is over: one whose service was killed is
    seen through by the next, or rolled back. No engine is let to clients for want of a canary.
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

    async def adopt(self, proof: Proof) -> bool:
        """Take over an engine that a service before us started; whether there is one.

        One that ended while no service watched is explained, and what was desired of it stays.

        Args:
            proof: What one must stand that clients have not reached yet.
        """
        run, life = record.latest(self._runs), self._life
        process = EngineProcess.recorded(run.folder(self._runs)) if run else None
        if run is None or process is None:
            return False
        change = unended(self._fallback_file)
        status = adopted_status(run, process, life.clock())
        if process.state() is ProcessState.ENDED:
            return await self._ended(status, process, change)
        life.process = process
        status = replace(status, profile=desire.turned_since(status.profile, self._desired_file))
        if status.state is EngineState.ORPHANED:
            status = replace(status, end=self._explain(process, status).end)
        elif change is not None and change.run != run.id:
            # It may answer by now, but clients have not reached it: the canary comes first.
            status = replace(status, state=EngineState.STARTING, phase="load")
        life.publish(status)
        age_s = life.clock() - process.identity.started_monotonic_s
        self._record("engine.adopted", f"{run.profile.name}, {age_s:.0f} s old, is taken over")
        if change is not None and change.run == run.id and change.stopping:
            return await self._replace_dying(process, change)
        if status.state is not EngineState.STARTING:
            if change is not None and status.state is EngineState.SERVING:
                self._tell(change, run.profile.name, f"{run.profile.name} serves on")
            desire.forget(self._fallback_file)
            life.watch(process)
            return True
        async with self._turn:
            with self._gate.held(f"{run.profile.name} is started"):
                await self._see_through(status, process, change, proof)
        return True

    async def _replace_dying(self, process: EngineProcess, change: Unended) -> bool:
        """It was told to end: see that it does, then start it anew."""
        name = change.before.name if change.before else "the engine"
        async with self._turn:
            with self._gate.held(f"{name} is started"):
                await self._life.take_down(process)
                await self._put_back(change, f"{name} was told to end")
        return True

    async def _ended(
        self, status: EngineStatus, process: EngineProcess, change: Unended | None
    ) -> bool:
        """It ended while no service watched: said, unless it was stopped.

        Whether what served before a change serves again.
        """
        record.remove_stale_socket(status.run)
        if desire.desired(self._desired_file) is None:
            return False
        ending = ended_by_itself(status, self._explain(process, status))
        self._life.publish(ending.status)
        self._record(ending.kind, ending.text, "error", ending.evidence)
        if change is None or change.before is None:
            desire.forget(self._fallback_file)
            return False
        async with self._turn:
            with self._gate.held(f"{change.before.name} is started"):
                await self._put_back(change, ending.text)
        return True

    async def _see_through(
        self,
        status: EngineStatus,
        process: EngineProcess,
        change: Unended | None,
        proof: Proof,
    ) -> None:
        """Wait for a start that another service began; one that fails is rolled back."""
        life, name = self._life, status.profile.name if status.profile else ""
        tried = proof if change is not None and change.after == name else None
        try:
            await life.step.run(life.see_ready(status, process, tried))
        except StartInterruptedError:
            raise
        except ConsoleError as error:
            if change is None or change.before is None or life.status.state is EngineState.ORPHANED:
                raise
            await self._put_back(change, error.message)
            return
        desire.forget(self._fallback_file)
        if change is not None:
            self._tell(change, name, f"{name} serves")

    async def _put_back(self, change: Unended, why: str) -> None:
        """Start what served before a change."""
        before = change.before
        if before is None:
            return
        self._tell(change, before.name, f"{why}; {before.name} is put back")
        try:
            await self._climber.climb(Wanted(before, change.rung))
        finally:
            desire.forget(self._fallback_file)

    def _tell(self, change: Unended, after: str, result: str) -> None:
        """How a change ended that its own service did not live to end."""
        done = after == change.after and (change.before is None or after != change.before.name)
        text = f"{result}, as the {change.what.partition(' ')[0]} was not ended by its service"
        kind = "engine.switched" if done else "engine.rolled_back"
        self._record(kind, text, "warn", change.told(after, result))
