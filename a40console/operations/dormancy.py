"""Puts an engine to sleep and wakes it: one that woke reaches clients once it stands the canary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from a40console.engines.controls import Control, ControlError, EngineControls
from a40console.errors import CheckFailedError, RefusedError
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Missing
from a40console.model.profile import Profile
from a40console.operations import record
from a40console.operations.canary import CanaryReport
from a40console.operations.life import EngineLife
from a40console.operations.operator import EngineOperator
from a40console.operations.record import RunRecord
from a40console.operations.roles import Recorder
from a40console.operations.status import EngineStatus
from a40console.operations.steps import StartInterruptedError
from a40console.operations.switch import Canary
from a40console.operations.who import asking

LEVELS = {1: "its weights wait in the host's memory", 2: "its weights are dropped"}
NOT_WELL = "woken, but its answers are not well"
_REMEDY = "Restart it: a40console engine restart. It serves nobody until then."


class Connect(Protocol):
    """Gives the controls of a running engine."""

    def __call__(self, run: RunRecord) -> EngineControls:
        """The controls; close them."""


def connector(runs: Path) -> Connect:
    """Controls of engines whose run folders are there."""
    return lambda run: EngineControls(run.endpoint(runs), run.profile.kind)


@dataclass(frozen=True, slots=True)
class Dormancy:
    """Sleep and wake of the operator's engine."""

    operator: EngineOperator
    runs: Path
    connect: Connect
    canary: Canary
    record: Recorder
    stopping: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered around what cuts the requests that still run."""

    async def sleep(self, level: int, drain_s: float | None) -> dict[str, str]:
        """Let running requests end, then free the GPU's memory; what came of it.

        Raises:
            RefusedError: If it does not serve, or cannot sleep.
            ControlError: If it does not do it; it serves on.
        """
        run, profile = await self._able("sleep", EngineState.SERVING)
        async with self.operator.exclusively(f"sleep of {profile.name}", drain_s) as life:
            status = _still(life, run)
            began_s = life.clock()
            with self.operator.gate.held(f"{profile.name} is put to sleep"):
                try:
                    cut = await self._drain(life)
                    await life.step.run(self._put_down(run, level))
                except StartInterruptedError:
                    raise  # a stop came: it says how things are
                except Exception:
                    record.note_asleep(run.folder(self.runs), 0)
                    _publish(life, status)
                    raise
                _publish(life, _asleep(status, f"asleep, level {level}"))
        took = f"{life.clock() - began_s:.1f}"
        told = {"before": "serving", "after": f"asleep, level {level}", "cut": str(cut)}
        lost = f", {cut} requests were cut" if cut else ""
        text = f"{profile.name} sleeps: {LEVELS[level]}, the cache is gone{lost}"
        self._note("engine.slept", text, {**told, "took_s": took, "result": "asleep"})
        return {**told, "report": f"{text}. Wake it: a40console engine wake", "took_s": took}

    async def wake(self) -> dict[str, str]:
        """Take the memory again, and serve once the canary stands; what came of it.

        Raises:
            RefusedError: If it does not sleep.
            ControlError: If it does not wake.
            CheckFailedError: If its answers are not well; it serves nobody then.
        """
        run, profile = await self._able("wake", EngineState.ASLEEP)
        async with self.operator.exclusively(f"wake of {profile.name}") as life:
            status = _still(life, run)
            began_s = life.clock()
            with self.operator.gate.held(f"{profile.name} wakes"):
                report = await self._woken(life, run, status)
        told = {"before": status.phase or "asleep", "took_s": f"{life.clock() - began_s:.1f}"}
        told |= {"canary": report.describe()}
        if not report.passed:
            raise self._refused(profile, report, told)
        _still(life, run)
        text = f"{profile.name} woke in {told['took_s']} s, and stands the canary"
        self._note("engine.woken", text, {**told, "after": "serving", "result": "serves"})
        return {"report": f"{text}.", "after": "serving", **told}

    async def _able(self, control: Control, state: EngineState) -> tuple[RunRecord, Profile]:
        """The engine, where it is in the state and has the control.

        Raises:
            RefusedError: If not.
        """
        status = self.operator.status
        if status.state is not state or status.run is None or status.profile is None:
            raise RefusedError(f"No {control} now: {status.state.sentence}")
        async with self.connect(status.run) as controls:
            reason = (await controls.capabilities()).refusal(control)
        if reason is not None:
            remedy = 'Add "--enable-sleep-mode" to the arguments of its profile, and restart it.'
            raise RefusedError(
                f"{status.profile.name} cannot {control}",
                evidence=reason,
                remedy=remedy if "--enable-sleep-mode" in reason else "",
            )
        return status.run, status.profile

    async def _drain(self, life: EngineLife) -> int:
        change = self.operator.under_way
        bound_s = change.change.drain_s if change is not None else 0.0
        life.publish(
            replace(
                life.status,
                state=EngineState.DRAINING,
                phase="drain",
                phase_since_s=life.clock(),
                eta=Missing(f"running requests end, within {bound_s:g} s"),
            )
        )
        return await life.step.run(self.operator.gate.drained(bound_s))

    async def _put_down(self, run: RunRecord, level: int) -> None:
        record.note_asleep(run.folder(self.runs), level)  # a service that dies now finds it so
        with self.stopping():
            async with self.connect(run) as controls:
                await controls.sleep(level)

    async def _woken(self, life: EngineLife, run: RunRecord, status: EngineStatus) -> CanaryReport:
        """Wake it and try it; it serves afterwards, or is asleep again."""
        try:
            report = await life.step.run(self._rouse(life, run, status))
        except StartInterruptedError:
            raise
        except Exception:
            _publish(life, status)
            raise
        if report.passed:
            record.note_asleep(run.folder(self.runs), 0)
            _publish(life, replace(status, state=EngineState.SERVING, phase="ready"))
        else:
            _publish(life, _asleep(status, await self._back_to_sleep(run)))
        return report

    async def _back_to_sleep(self, run: RunRecord) -> str:
        """The phase of an engine whose answers were not well when it woke."""
        level = record.asleep_level(run.folder(self.runs)) or 1
        try:
            async with self.connect(run) as controls:
                await controls.sleep(level)
        except ControlError:
            return NOT_WELL
        return f"asleep, level {level}: its answers were not well when it woke"

    async def _rouse(self, life: EngineLife, run: RunRecord, status: EngineStatus) -> CanaryReport:
        waking = replace(status, state=EngineState.STARTING, phase="wake")
        life.publish(
            replace(waking, phase_since_s=life.clock(), eta=Missing("it takes its memory"))
        )
        async with self.connect(run) as controls:
            await controls.wake()
        trying = replace(waking, phase="canary", eta=Estimated(1.0))
        life.publish(replace(trying, phase_since_s=life.clock()))
        return await self.canary(replace(status, state=EngineState.SERVING))

    def _refused(
        self, profile: Profile, report: CanaryReport, told: dict[str, str]
    ) -> CheckFailedError:
        failed = "; ".join(
            f"{check.name}: {check.evidence}" for check in report.checks if check.passed is False
        )
        text = f"{profile.name} woke, but does not stand the canary: it serves nobody"
        data = {**told, "after": NOT_WELL, "result": "refused", "evidence": failed}
        self._note("engine.woken", text, {**data, "remedy": _REMEDY}, failed=True)
        return CheckFailedError(text, evidence=failed, remedy=_REMEDY)

    def _note(self, kind: str, text: str, data: dict[str, str], *, failed: bool = False) -> None:
        self.record(kind, text, "error" if failed else "info", {"who": asking(), **data})


def _still(life: EngineLife, run: RunRecord) -> EngineStatus:
    """The status, where the engine is still the one that was asked.

    Raises:
        RefusedError: If it is not.
    """
    if life.status.run != run or life.process is None:
        raise RefusedError("The engine is not there any more")
    return life.status


def _asleep(status: EngineStatus, phase: str) -> EngineStatus:
    return replace(status, state=EngineState.ASLEEP, phase=phase)


def _publish(life: EngineLife, status: EngineStatus) -> None:
    """Take a status, unless the engine has ended meanwhile: that is told already."""
    if life.process is not None and life.status.run == status.run:
        life.publish(replace(status, phase_since_s=life.clock()))
