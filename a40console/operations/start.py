"""Brings one engine up: model, process, readiness; a start that fails leaves nothing running."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from a40console.engines.capability import check
from a40console.engines.logs import LogReader, last_lines
from a40console.engines.phases import ORDER
from a40console.engines.ports import PortHolder, describe
from a40console.engines.process import EngineProcess
from a40console.engines.readiness import HealthProbe, PhaseTracker, eta_s, wait_ready
from a40console.engines.run_record import OUTPUT_FILE
from a40console.engines.transfer import TransferRate
from a40console.errors import ConsoleError, NotServingError, RefusedError, TimedOutError
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Figure, Missing, measured, number
from a40console.model.profile import Profile
from a40console.operations import record
from a40console.operations.asked import not_in_force
from a40console.operations.ending import refused_start
from a40console.operations.memory import GpuMemory
from a40console.operations.past_starts import PastStarts
from a40console.operations.port import PortWait, refuse_taken_port
from a40console.operations.preparation import check_room, fetch_model, prepare
from a40console.operations.record import RunRecord
from a40console.operations.roles import Publish, Recorder
from a40console.operations.status import EngineStatus
from a40console.operations.words import transfer_in_words
from a40console.paths import Paths

LOOK_PERIOD_S = 0.25


class EngineStarter:
    """Starts engines of this machine."""

    def __init__(
        self,
        *,
        paths: Paths,
        memory: GpuMemory,
        threads: Callable[[], int],
        recorder: Recorder,
        past: PastStarts,
        clock: Callable[[], float],
    ) -> None:
        self._paths = paths
        self._memory = memory
        self._threads = threads
        self._record = recorder
        self._clock = clock
        self._past = past

    async def launch(
        self, profile: Profile, status: EngineStatus, publish: Publish
    ) -> tuple[EngineStatus, EngineProcess]:
        """Fetch what the profile needs and start its process.

        Raises:
            ConsoleError: If it cannot be started; nothing of it runs then.
        """
        try:
            return await self._launch(profile, status, publish)
        except ConsoleError as error:
            publish(refused_start(status, error))
            raise

    async def check(self, profile: Profile) -> None:
        """See that this machine can run the profile, and its disk can take another start.

        Raises:
            RefusedError: If not.
        """
        can = check(profile, os.environ, environments=self._paths.environments)
        if not can.ready:
            raise RefusedError(f"{profile.name} cannot run here", evidence=can.why_not or "")
        await asyncio.to_thread(check_room, self._paths)

    async def _launch(
        self, profile: Profile, status: EngineStatus, publish: Publish
    ) -> tuple[EngineStatus, EngineProcess]:
        await self.check(profile)
        refuse_taken_port(profile)
        model_path = await self._fetch(profile, status, publish)
        baseline = await self._memory.wait_for_room(profile, self._teller(status, publish))
        run, launch = await asyncio.to_thread(
            prepare,
            profile,
            self._paths,
            model_path=model_path,
            threads=self._threads(),
            vram=baseline,
            status=status,
        )
        record.note_before(run.folder(self._paths.engine_runs), status.restarts, status.end)
        self._record("engine.starting", f"{profile.name} starts", data={"run": run.id})
        process = await EngineProcess.start(run.folder(self._paths.engine_runs), launch)
        starting = replace(
            status,
            state=EngineState.STARTING,
            run=run,
            phase="starting",
            phase_since_s=self._clock(),
            pid=process.pid,
            session_id=process.identity.session_id,
            leader=process.identity.leader,
            started_at_s=process.identity.started_monotonic_s,
        )
        publish(starting)
        return starting, process

    async def await_ready(
        self, status: EngineStatus, process: EngineProcess, publish: Publish
    ) -> EngineStatus:
        """Wait until the engine serves, publishing its phases.

        Raises:
            NotServingError: If it ends first.
            TimedOutError: If it does not serve in its profile's time; it is left alone.
        """
        run = status.run
        if run is None:
            raise NotServingError("This engine's start was not written down")
        progress = _Progress(self, status, run, process, publish)
        try:
            await progress.watch()
        except TimedOutError as error:
            raise TimedOutError(
                f"{run.profile.name}: {error.message}",
                evidence=progress.evidence(),
                remedy=error.remedy,
            ) from error
        record.note_served(process.run_dir)
        self._past.measured(run.id, progress.durations_s)
        lines = await asyncio.to_thread(last_lines, progress.output, 4000)
        return replace(
            progress.status,
            state=EngineState.SERVING,
            phase="ready",
            phase_since_s=self._clock(),
            eta=Missing("ready"),
            stall=None,
            differences=not_in_force(run, lines),
        )

    def _teller(self, status: EngineStatus, publish: Publish) -> Callable[[str, float], None]:
        """Publishes that a start waits for memory; the first time it is an event too."""
        since_s = self._clock()
        told = False

        def tell(text: str, left_s: float) -> None:
            nonlocal told
            if not told:
                told = True
                self._record("engine.waiting_for_memory", text, "warn")
            publish(
                replace(
                    status,
                    phase="memory",
                    phase_since_s=since_s,
                    eta=Missing(f"{text}; it is refused in {left_s:.0f} s"),
                )
            )

        return tell

    async def free_port(self, status: EngineStatus, publish: Publish) -> bool:
        """Wait, counting down, where closed connections alone kept an engine from its port.

        Whether another start is worth it: false where they were not the cause.
        """
        run, since_s, told = status.run, self._clock(), False

        def tell(holder: PortHolder) -> None:
            nonlocal told
            text = describe(holder.port, holder)
            if not told:
                told = True
                self._record("engine.waiting_for_port", text, "warn")
            publish(
                replace(
                    status,
                    state=EngineState.STARTING,
                    phase="port",
                    phase_since_s=since_s,
                    eta=measured(holder.remaining_s, "the kernel does not tell"),
                    pid=None,
                )
            )

        return run is not None and await PortWait().until_free(run.profile, tell)

    async def _fetch(self, profile: Profile, status: EngineStatus, publish: Publish) -> Path | None:
        began_s, transfer = self._clock(), TransferRate()

        def progress(done: int, whole: int) -> None:
            moment = transfer.read(self._clock(), done, whole or Missing("the source does not say"))
            detail, left_s = transfer_in_words(moment), number(moment.eta_s)
            unknown = _unforeseen("a download's end is not foreseen", detail)
            eta = unknown if left_s is None else Estimated(left_s)
            publish(
                replace(
                    status,
                    state=EngineState.FETCHING,
                    phase="download",
                    phase_since_s=began_s,
                    eta=eta,
                )
            )

        return await fetch_model(profile, self._paths, progress)

    def eta(self, profile: str, phase: str, phase_s: float) -> Figure:
        """Seconds until it serves, by earlier starts."""
        return eta_s(phase, phase_s, self._past.of(profile))

    def now(self) -> float:
        """The monotonic clock."""
        return self._clock()


class _Progress:
    """One start on its way to serving: reads its output, publishes its phases."""

    def __init__(
        self,
        starter: EngineStarter,
        status: EngineStatus,
        run: RunRecord,
        process: EngineProcess,
        publish: Publish,
    ) -> None:
        self.status = status
        self.run = run
        self.process = process
        self.output = process.run_dir / OUTPUT_FILE
        self._starter = starter
        self._publish = publish
        self._reader = LogReader(self.output)
        self._endpoint = run.endpoint(process.run_dir.parent)
        self._tracker = PhaseTracker(
            run.profile.kind,
            started_s=process.identity.started_monotonic_s,
            stall_after_s=run.profile.stall_after_s,
        )

    @property
    def durations_s(self) -> dict[str, float]:
        """Seconds of each phase."""
        return dict(self._tracker.durations_s)

    def evidence(self) -> str:
        """Where the start was last, in the engine's words."""
        stall = self._tracker.stall(self._starter.now())
        return f"{stall.cause}: {stall.evidence}" if stall else f"phase {self._tracker.phase}"

    async def watch(self) -> None:
        """Return once it serves; see wait_ready for what is raised."""
        probe = HealthProbe(self._endpoint)
        reading = asyncio.create_task(self._read())
        try:
            age_s = self._starter.now() - self.process.identity.started_monotonic_s
            left_s = max(1.0, self.run.profile.start_timeout_s - age_s)
            await wait_ready(probe, self.process.leader_alive, timeout_s=left_s)
            self._take_in()
            self._tracker.serve(self._starter.now())
        finally:
            reading.cancel()
            await probe.close()

    async def _read(self) -> None:
        while True:
            self._take_in()
            await asyncio.sleep(LOOK_PERIOD_S)

    def _take_in(self) -> None:
        now_s = self._starter.now()
        while lines := self._reader.read_lines():
            for line in lines:
                self._tracker.feed(line, now_s)
        phase, phase_s = self._tracker.phase, self._tracker.phase_s(now_s)
        stall = self._tracker.stall(now_s)
        self.status = replace(
            self.status,
            phase=phase,
            phase_since_s=now_s - phase_s,
            eta=self._eta(phase, phase_s),
            stall=stall,
        )
        self._publish(self.status)

    def _eta(self, phase: str, phase_s: float) -> Figure:
        """Seconds until it serves; where that is not known, how far it is."""
        eta = self._starter.eta(self.run.profile.name, phase, phase_s)
        if isinstance(eta, Missing) and phase != ORDER[-1]:
            return _unforeseen(eta.reason, self._tracker.progress)
        return eta


def _unforeseen(why: str, progress: str) -> Missing:
    """An estimate that cannot be made, with the last sign of progress in its place."""
    return Missing(f"{progress}; {why}" if progress else why)
