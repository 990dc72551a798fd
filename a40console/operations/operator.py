"""Commands on the one engine: start, stop, restart, switch, speculation, clean, adopt.

One command acts at a time; a stop interrupts a start. A start that fails puts back what served
before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace

from a40console.engines.process import EngineProcess, ProcessState, StopReport
from a40console.engines.run_record import UNSEEN_EXIT
from a40console.errors import ConsoleError, NotServingError, RefusedError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations import desire, record
from a40console.operations.adoption import adopted_status
from a40console.operations.ending import (
    end_of,
    failed_start,
    left_behind,
    not_gone,
    refused_start,
)
from a40console.operations.roles import Recorder, Starter
from a40console.operations.speculation import with_speculation
from a40console.operations.status import EngineStatus, refuse_another
from a40console.operations.watch import Explain, RestartPolicy, Watcher, ended_by_itself
from a40console.paths import Paths

CLEAN_TIMEOUT_S = 2.0
INTERRUPTED = "The start was interrupted by a stop"


class StartInterruptedError(RefusedError):
    """A stop came while an engine was starting."""


class EngineOperator:
    """Owns the engine's state; everything else reads `status`."""

    def __init__(
        self,
        *,
        paths: Paths,
        find_profile: Callable[[str], Profile],
        starter: Starter,
        recorder: Recorder,
        policy: RestartPolicy,
        explain: Explain,
        clock: Callable[[], float],
    ) -> None:
        self._runs = paths.engine_runs
        self._desired_file = paths.desired
        self._find_profile = find_profile
        self._starter = starter
        self._record = recorder
        self._policy = policy
        self._explain = explain
        self._clock = clock
        self._turn = asyncio.Lock()
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._process: EngineProcess | None = None
        self._stops_wanted = 0
        self._unwanted = False  # told to stop: what is left of it is not started again
        self.status = EngineStatus()
        self.on_change: Callable[[EngineStatus], None] = lambda status: None
        """Called after each change of status: telemetry and gateway follow the engine by it."""

    def member_pids(self) -> list[int]:
        """The engine's processes now."""
        return [member.pid for member in self._process.members()] if self._process else []

    @property
    def busy(self) -> bool:
        """Whether a start is under way."""
        return self._starting is not None

    async def start(self, name: str) -> None:
        """Start a profile and wait until it serves.

        Raises:
            RefusedError: If an engine lives already, or something of one is left.
        """
        await self.start_profile(self._find_profile(name))

    async def start_profile(self, profile: Profile) -> None:
        """Start a profile as it is given, and wait until it serves.

        Raises:
            RefusedError: If an engine lives already, or something of one is left.
        """
        refuse_another(self.status, starting=self.busy)
        async with self._turn:
            refuse_another(self.status, starting=self.busy)
            await self._bring_up(profile, asked=True)

    async def stop(self) -> str:
        """Stop the engine and verify that nothing of it is left; what the operator reads.

        A start under way is interrupted; a switch goes no further than it is.

        Raises:
            RefusedError: If there is no engine.
            ConsoleError: If something of it is left.
        """
        self._stops_wanted += 1
        try:
            if self._starting is not None:
                self._starting.cancel()
            async with self._turn:
                desire.forget(self._desired_file)
                self._unwanted = True
                if self._process is not None:
                    return await self._take_down(self._process)
                if self.status.state is EngineState.ABSENT:
                    remedy = "Start one: a40console engine start"
                    raise RefusedError("No engine runs", remedy=remedy)
                self._publish(replace(self.status, state=EngineState.STOPPED, phase=None))
                return "Nothing was running."
        finally:
            self._stops_wanted -= 1

    async def settle(self) -> None:
        """Wait until a stop that is under way has ended."""
        if self.status.state is EngineState.STOPPING:
            async with self._turn:
                return

    async def restart(self) -> None:
        """Stop the engine and start the same profile again, as it was asked for last."""
        await self._replace(self._present_profile())

    async def switch(self, name: str) -> None:
        """Stop the engine and start another profile; puts the old one back if that fails."""
        await self._replace(self._find_profile(name))

    async def speculate(self, mode: str) -> None:
        """Turn speculation on, off, or on at a depth; the engine restarts for it.

        Raises:
            UsageError: If the mode is none of `on`, `off` and a number of tokens.
            RefusedError: If the profile has no speculation.
        """
        await self._replace(with_speculation(self._present_profile(), mode))

    async def clean(self) -> str:
        """End exactly the processes that an engine left behind, an unkillable leader included."""
        async with self._turn:
            if self._process is None or self.status.state is not EngineState.ORPHANED:
                raise RefusedError("Nothing of an engine is left over")
            self._unwatch()
            report = await self._process.stop(term_timeout_s=CLEAN_TIMEOUT_S)
            if report.left:
                raise self._left_behind(self._process, report)
            record.remove_stale_socket(self.status.run)
            self._record("engine.cleaned", report.describe())
            self._process = None
            self._publish(
                replace(self.status, state=EngineState.STOPPED, phase=None, survivors=(), left="")
            )
            return report.describe()

    async def adopt(self) -> bool:
        """Take over an engine that a service before us started; whether there is one.

        One that ended while no service watched is explained, and what was desired of it stays.
        """
        run = record.latest(self._runs)
        process = EngineProcess.recorded(run.folder(self._runs)) if run else None
        if run is None or process is None:
            return False
        status = adopted_status(run, process, self._clock())
        if process.state() is ProcessState.ENDED:
            if desire.desired(self._desired_file) is not None:
                ending = ended_by_itself(status, self._explain(process, status))
                self._publish(ending.status)
                self._record(ending.kind, ending.text, "error", ending.evidence)
            return False
        self._process = process
        if status.state is EngineState.ORPHANED:
            status = replace(status, end=self._explain(process, status).end)
        self._publish(status)
        age_s = self._clock() - process.identity.started_monotonic_s
        self._record("engine.adopted", f"{run.profile.name}, {age_s:.0f} s old, is taken over")
        if status.state is not EngineState.STARTING:
            self._watch(process)
            return True
        async with self._turn:
            await self._interruptible(self._see_ready(status, process))
        return True

    def note_failure(self, error: ConsoleError) -> None:
        """A start that could not even begin is told like one that failed."""
        self._publish(refused_start(EngineStatus(), error))
        self._record_failure(error)

    def _record_failure(self, error: ConsoleError) -> None:
        evidence = {"evidence": error.evidence, "remedy": error.remedy}
        self._record("engine.failed", error.message, "error", evidence)

    async def close(self) -> None:
        """Let go of the engine without touching it."""
        for task in (self._starting, self._watching):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _replace(self, profile: Profile) -> None:
        if self._starting is not None:
            raise RefusedError(
                "The engine is starting", remedy="Wait for it, or stop it first: engine stop"
            )
        async with self._turn:
            before = self.status.run.profile if self.status.run and self._process else None
            if self.status.state is EngineState.ORPHANED:
                refuse_another(self.status, starting=self.busy)
            await self._starter.check(profile)
            if self._process is not None:
                await self._take_down(self._process)
            try:
                await self._bring_up(profile, asked=True)
            except StartInterruptedError:
                raise  # whoever stopped it wants nothing put back
            except ConsoleError as error:
                if before is None:
                    raise
                await self._roll_back(before, error)

    async def _roll_back(self, before: Profile, error: ConsoleError) -> None:
        self._record(
            "engine.rolled_back",
            f"{error.message}; {before.name} is put back",
            "warn",
            {"evidence": error.evidence},
        )
        await self._bring_up(before, asked=True)
        raise type(error)(
            error.message,
            evidence=error.evidence,
            remedy=f"{before.name} serves again. {error.remedy}",
            exit_code=error.exit_code,
        )

    async def _bring_up(self, profile: Profile, *, asked: bool) -> None:
        if self._stops_wanted:
            raise StartInterruptedError(INTERRUPTED)
        self._unwatch()
        await self._interruptible(self._start_now(profile, asked=asked))

    async def _interruptible(self, start: Coroutine[None, None, None]) -> None:
        """Run a start as a task of its own, so that a stop can end it."""
        self._starting = asyncio.create_task(start)
        try:
            await self._starting
        except asyncio.CancelledError:
            if not self._starting.cancelled():
                raise
            raise StartInterruptedError(INTERRUPTED) from None
        finally:
            self._starting = None

    async def _start_now(self, profile: Profile, *, asked: bool) -> None:
        restarts = 0 if asked else self.status.restarts + 1
        fresh = EngineStatus(
            state=EngineState.STARTING,
            profile=profile,
            phase="starting",
            phase_since_s=self._clock(),
            restarts=restarts,
            end=self.status.end,
        )
        self._publish(fresh)
        desire.remember(self._desired_file, profile)
        self._unwanted = False
        try:
            await self._start_once(profile, fresh)
        except NotServingError:
            if not await self._starter.free_port(self.status, self._publish):
                raise
            await self._start_once(profile, fresh)

    async def _start_once(self, profile: Profile, fresh: EngineStatus) -> None:
        try:
            status, process = await self._starter.launch(profile, fresh, self._publish)
        except ConsoleError as error:
            self._record_failure(error)
            raise
        except Exception as error:  # a bug of ours must not leave it `starting` for ever
            self._publish(replace(self.status, state=EngineState.FAILED, phase=None))
            self._record("engine.failed", f"a bug of ours: {error!r}", "error")
            raise
        await self._see_ready(status, process)

    async def _see_ready(self, status: EngineStatus, process: EngineProcess) -> None:
        """Wait until it serves; one that does not is ended, and its end explained.

        Whoever interrupts this takes the process down, or leaves it to the next service.
        """
        self._process = process
        try:
            status = await self._starter.await_ready(status, process, self._publish)
        except ConsoleError as error:
            raise await self._failed_start(process, error) from error
        self._publish(status)
        took_s = self._clock() - process.identity.started_monotonic_s
        name = status.profile.name if status.profile else "the engine"
        self._record("engine.serving", f"{name} serves, {took_s:.1f} s after its start")
        self._watch(process)

    async def _failed_start(self, process: EngineProcess, error: ConsoleError) -> ConsoleError:
        """End what is left of a start that failed; the error that the operator reads."""
        ended = process.state() is ProcessState.ENDED
        report = await process.stop(socket_path=record.socket_of(self.status.run))
        if report.left:
            return self._left_behind(process, report)
        self._process = None
        explain = self._explain if ended else None
        error, failed = failed_start(process, self.status, error, explain)
        self._publish(failed)
        self._record_failure(error)
        return error

    async def _take_down(self, process: EngineProcess) -> str:
        """Stop an engine; its status is `stopped` afterwards, or tells what is left."""
        self._unwatch()
        self._publish(replace(self.status, state=EngineState.STOPPING, phase=None))
        report = await process.stop(socket_path=record.socket_of(self.status.run))
        if report.left:
            raise self._left_behind(process, report)
        self._process = None
        end = end_of(process.exit() or UNSEEN_EXIT, "stopped by the operator")
        profile, run = self.status.profile, self.status.run
        self._publish(EngineStatus(state=EngineState.STOPPED, profile=profile, run=run, end=end))
        name = profile.name if profile else "the engine"
        self._record("engine.stopped", f"{name}: {report.describe()}")
        return report.describe()

    def _left_behind(self, process: EngineProcess, report: StopReport) -> ConsoleError:
        self._publish(left_behind(self.status, process.members(), report))
        self._record("engine.left_behind", report.describe(), "error")
        self._watch(process)
        return not_gone(report)

    def _watch(self, process: EngineProcess) -> None:
        self._watching = asyncio.create_task(self._follow(Watcher(process, self._explain)))

    def _unwatch(self) -> None:
        if self._watching is not None and self._watching is not asyncio.current_task():
            self._watching.cancel()
        self._watching = None

    async def _follow(self, watcher: Watcher) -> None:
        """Follow an engine to its end, and start it again where the policy says so."""
        async for ending in watcher.endings(lambda: self.status):
            self._publish(ending.status)
            if ending.kind:
                self._record(ending.kind, ending.text, "error", ending.evidence)
            if ending.final:
                self._process = None
                record.remove_stale_socket(ending.status.run)
                if self._unwanted:
                    self._publish(replace(self.status, state=EngineState.STOPPED))
                else:
                    await self._start_again(self.status)

    async def _start_again(self, ended: EngineStatus) -> None:
        """Start it anew as often as the policy says, unless the operator acts meanwhile."""
        profile = ended.profile
        while profile and (delay_s := self._policy.delay_s(self._clock())) is not None:
            self._record("engine.restarting", f"{profile.name} starts again in {delay_s:.0f} s")
            await asyncio.sleep(delay_s)
            async with self._turn:
                if self.status is not ended:
                    return
                try:
                    await self._bring_up(profile, asked=False)
                except StartInterruptedError:
                    return
                except ConsoleError:
                    ended = self.status  # the failure is in the journal and in the status
                else:
                    return

    def _present_profile(self) -> Profile:
        if self.status.profile is None:
            raise RefusedError("No engine was started", remedy="Start one: engine start PROFILE")
        return self.status.profile

    def _publish(self, status: EngineStatus) -> None:
        changed = status.state is not self.status.state
        if changed and status.phase_since_s == self.status.phase_since_s:
            status = replace(status, phase_since_s=self._clock())
        self.status = status
        self.on_change(status)
