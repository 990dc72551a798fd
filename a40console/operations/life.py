"""The one engine: its process and its status, and the ways up and down.

It keeps no order among commands: whoever calls it has the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from a40console.engines.process import EngineProcess, ProcessState, StopReport
from a40console.engines.run_record import UNSEEN_EXIT
from a40console.errors import ConsoleError, NotServingError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations import desire, record
from a40console.operations.asked import evidence_of
from a40console.operations.ending import (
    FailedStartError,
    end_of,
    failed_start,
    left_behind,
    not_gone,
    unforeseen,
)
from a40console.operations.ladder import placed
from a40console.operations.roles import Recorder, Starter
from a40console.operations.status import EngineStatus
from a40console.operations.steps import INTERRUPTED, Interruptible, StartInterruptedError
from a40console.operations.watch import Ending, Explain, Watcher, ended_by_itself
from a40console.paths import Paths

Proof = Callable[[EngineStatus], Awaitable[None]]
"""What an engine must stand before it is said to serve; a ConsoleError fails its start."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A start: of what, and how."""

    profile: Profile
    rung: int = 0
    asked: bool = True
    """Whether an operator asked for it, or it ended by itself."""

    proof: Proof | None = None


DYING_S = 0.5
"""What fails because the engine dies is seen before its end is."""


async def _has_ended(process: EngineProcess) -> bool:
    """Whether it has ended, or does in a moment."""
    for _ in range(10):
        if process.state() is ProcessState.ENDED:
            return True
        await asyncio.sleep(DYING_S / 10)
    return False


class EngineLife:
    """Owns the engine's process and status; everything else reads `status`."""

    def __init__(
        self,
        *,
        paths: Paths,
        starter: Starter,
        recorder: Recorder,
        explain: Explain,
        clock: Callable[[], float],
    ) -> None:
        self._desired_file = paths.desired
        self._starter = starter
        self._record = recorder
        self._explain = explain
        self._watching: asyncio.Task[None] | None = None
        self.clock = clock
        self.step = Interruptible()
        """What a stop may end: a start, a drain."""

        self.process: EngineProcess | None = None
        self.stops_wanted = 0
        self.unwanted = False
        """Told to stop: what is left of it is not started again."""

        self.reviving = False
        """It ended by itself, and is to be started again."""

        self.status = EngineStatus()
        self.on_change: Callable[[EngineStatus], None] = lambda status: None
        """Called after each change of status: telemetry and gateway follow the engine by it."""

        self.on_gone: Callable[[], None] = lambda: None
        """Called as soon as the engine is seen to be gone by itself, before it is known why."""

        self.on_ending: Callable[[Ending], Awaitable[None]] | None = None
        """Called after what ended by itself is published."""

    def publish(self, status: EngineStatus) -> None:
        """Take a status; a new state begins now."""
        changed = status.state is not self.status.state
        if changed and status.phase_since_s == self.status.phase_since_s:
            status = replace(status, phase_since_s=self.clock())
        self.status = status
        self.on_change(status)

    async def bring_up(self, wanted: Wanted) -> None:
        """Start it and wait until it serves.

        Raises:
            ConsoleError: If it does not come to serve; nothing of it runs then, or the status says
                what is left.
            StartInterruptedError: If a stop came.
        """
        if self.stops_wanted:
            raise StartInterruptedError(INTERRUPTED)
        self._unwatch()
        await self.step.run(self._start_now(wanted))

    async def _start_now(self, wanted: Wanted) -> None:
        fresh = EngineStatus(
            state=EngineState.STARTING,
            profile=wanted.profile,
            rung=wanted.rung,
            phase="starting",
            phase_since_s=self.clock(),
            restarts=0 if wanted.asked else self.status.restarts + 1,
            end=self.status.end,
        )
        self.publish(fresh)
        desire.remember(self._desired_file, wanted.profile)
        self.unwanted = False
        try:
            await self._start_once(wanted, fresh)
        except NotServingError:
            if not await self._starter.free_port(self.status, self.publish):
                raise
            await self._start_once(wanted, fresh)

    async def _start_once(self, wanted: Wanted, fresh: EngineStatus) -> None:
        profile = placed(wanted.profile, wanted.rung)
        try:
            status, process = await self._starter.launch(profile, fresh, self.publish)
        except ConsoleError as error:
            self.record_failure(error)
            raise
        except Exception as error:  # it must not stay `starting`, and what served is put back
            told = unforeseen(profile.name, error)
            self.publish(replace(self.status, state=EngineState.FAILED, phase=None))
            self.record_failure(told)
            raise told from error
        await self.see_ready(status, process, wanted.proof)

    async def see_ready(
        self, status: EngineStatus, process: EngineProcess, proof: Proof | None = None
    ) -> None:
        """Wait until it serves; one that does not is ended, and its end explained.

        Whoever interrupts this takes the process down, or leaves it to the next service.
        """
        self.process = process
        try:
            status = await self._starter.await_ready(status, process, self.publish)
            if proof is not None:
                await proof(status)
        except ConsoleError as error:
            raise await self._failed_start(process, error) from error
        except Exception as error:
            name = status.profile.name if status.profile else "the engine"
            raise await self._failed_start(process, unforeseen(name, error)) from error
        self.publish(replace(status, phase_since_s=self.clock()))
        took_s = self.clock() - process.identity.started_monotonic_s
        name = status.profile.name if status.profile else "the engine"
        text = f"{name} serves, {took_s:.1f} s after its start"
        self._record("engine.serving", text, data=evidence_of(status))
        self.watch(process)

    async def _failed_start(self, process: EngineProcess, error: ConsoleError) -> ConsoleError:
        """End what is left of a start that failed; the error that the operator reads."""
        ended = await _has_ended(process)
        report = await process.stop(socket_path=record.socket_of(self.status.run))
        if report.left:
            return self._left_behind(process, report)
        self.process = None
        error, failed = failed_start(process, self.status, error, self._explain if ended else None)
        self.publish(failed)
        self.record_failure(error)
        return error

    def record_failure(self, error: ConsoleError) -> None:
        """Write down why a start failed."""
        evidence = {"evidence": error.evidence, "remedy": error.remedy}
        evidence |= error.told if isinstance(error, FailedStartError) else {}
        self._record("engine.failed", error.message, "error", evidence)

    async def take_down(self, process: EngineProcess) -> str:
        """Stop an engine; its status is `stopped` afterwards, or tells what is left.

        Raises:
            ConsoleError: If something of it is left.
        """
        self._unwatch()
        ended = process.state() is ProcessState.ENDED
        self.publish(replace(self.status, state=EngineState.STOPPING, phase=None))
        report = await process.stop(socket_path=record.socket_of(self.status.run))
        if report.left:
            raise self._left_behind(process, report)
        self.process = None
        profile, run = self.status.profile, self.status.run
        if ended:
            ending = ended_by_itself(self.status, self._explain(process, self.status))
            end = ending.status.end
            self._record(ending.kind, ending.text, "error", ending.evidence)
        else:
            end = end_of(process.exit() or UNSEEN_EXIT, "stopped by the operator")
            name = profile.name if profile else "the engine"
            self._record("engine.stopped", f"{name}: {report.describe()}")
        self.publish(EngineStatus(state=EngineState.STOPPED, profile=profile, run=run, end=end))
        return report.describe()

    async def clean(self, process: EngineProcess, term_timeout_s: float) -> str:
        """End what an engine left behind.

        Raises:
            ConsoleError: If something of it is still there.
        """
        self._unwatch()
        report = await process.stop(term_timeout_s=term_timeout_s)
        if report.left:
            raise self._left_behind(process, report)
        record.remove_stale_socket(self.status.run)
        self._record("engine.cleaned", report.describe())
        self.process = None
        stopped = replace(self.status, state=EngineState.STOPPED, phase=None)
        self.publish(replace(stopped, survivors=(), left=""))
        return report.describe()

    def _left_behind(self, process: EngineProcess, report: StopReport) -> ConsoleError:
        self.publish(left_behind(self.status, process.members(), report))
        self._record("engine.left_behind", report.describe(), "error")
        self.watch(process)
        return not_gone(report)

    def watch(self, process: EngineProcess) -> None:
        """Follow an engine from now on."""
        watcher = Watcher(process, self._explain, lambda: self.on_gone())
        self._watching = asyncio.create_task(self._follow(watcher))

    def _unwatch(self) -> None:
        if self._watching is not None and self._watching is not asyncio.current_task():
            self._watching.cancel()
        self._watching = None

    async def _follow(self, watcher: Watcher) -> None:
        """Follow an engine to its end, and tell who may start it again."""
        async for ending in watcher.endings(lambda: self.status):
            self.publish(ending.status)
            if ending.kind:
                self._record(ending.kind, ending.text, "error", ending.evidence)
            if ending.final:
                self.process = None
                record.remove_stale_socket(ending.status.run)
                if self.unwanted:
                    self.publish(replace(self.status, state=EngineState.STOPPED))
            if self.on_ending is not None:
                await self.on_ending(ending)

    async def close(self) -> None:
        """Let go of the engine without touching it."""
        await self.step.close()
        if (watching := self._watching) is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
