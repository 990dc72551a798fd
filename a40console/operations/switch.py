"""The sequence in which one engine takes another's place while clients wait.

Gate closed, drain, verified stop, start by the ladder, canary, gate open. What fails puts back what
served before the gate opens; where that fails too the gate opens all the same, so that whoever
waits is told.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from a40console.errors import CheckFailedError, ConsoleError
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Missing
from a40console.model.profile import Profile
from a40console.operations import desire, unended
from a40console.operations.canary import CanaryReport
from a40console.operations.climbing import Climber
from a40console.operations.gatekeeping import Gatekeeper
from a40console.operations.ladder import rung_in_words
from a40console.operations.life import EngineLife, Wanted
from a40console.operations.roles import Recorder
from a40console.operations.status import EngineStatus
from a40console.operations.steps import StartInterruptedError
from a40console.operations.unended import Unended

Canary = Callable[[EngineStatus], Coroutine[Any, Any, CanaryReport]]
"""Tries the engine of a status that has come to serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is asked for: which profile is to serve, and how."""

    what: str
    """In words that an operator reads: `switch to b`."""

    profile: Profile
    rung: int = 0
    drain_s: float
    """How long running requests may take to end; what still runs then is cut."""

    who: str = ""

    def drain_words(self, step: str) -> str:
        """How long the drain lasts at the most; empty in any other step."""
        return f"at most {self.drain_s:g} s" if step == "drain" else ""


PARTS = ("drain", "stop", "start", "canary")


@dataclass(slots=True)
class Passage:
    """How long each part took, in seconds."""

    clock: Callable[[], float]
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the block's time to a part."""
        began_s = self.clock()
        try:
            yield
        finally:
            spent_s = self.seconds.get(name, 0.0) + self.clock() - began_s
            self.seconds[name] = round(spent_s, 3)

    def describe(self) -> str:
        """`drain 0.1 s, stop 0.4 s, …`."""
        return ", ".join(
            f"{part} {self.seconds[part]:.1f} s" for part in PARTS if part in self.seconds
        )


class Switch:
    """Carries out changes of what serves, one at a time: the caller has the turn."""

    def __init__(
        self,
        life: EngineLife,
        climber: Climber,
        gate: Gatekeeper,
        canary: Canary,
        recorder: Recorder,
        *,
        fallback_file: Path,
    ) -> None:
        self._fallback_file = fallback_file
        self._life = life
        self._climber = climber
        self._gate = gate
        self._canary = canary
        self._record = recorder

    async def carry_out(self, change: Change) -> dict[str, str]:
        """Let the profile serve in place of what serves now; what came of it.

        Raises:
            StartInterruptedError: If a stop came; nothing is put back then.
            ConsoleError: If it does not serve; what served before does again, unless it says not.
        """
        life, passage = self._life, Passage(self._life.clock)
        status = life.status
        ours = life.process is not None or life.reviving
        before = Wanted(status.profile, status.rung) if status.profile and ours else None
        with self._gate.held(_why_held(change, before)), passage.part("held"):
            noted = _noted(change, before, status)
            unended.remember(self._fallback_file, noted)
            with passage.part("drain"):
                cut = await self._drain(change)
            if life.process is not None:
                unended.remember(self._fallback_file, replace(noted, stopping=True))
                with passage.part("stop"):
                    await life.take_down(life.process)
            try:
                await self._climb(change, passage)
            except StartInterruptedError:
                raise  # whoever stopped it wants nothing put back
            except ConsoleError as error:
                if before is None or life.status.state is EngineState.ORPHANED:
                    desire.forget(self._fallback_file)
                    raise
                error = await self._put_back(change, before, error)
                desire.forget(self._fallback_file)
                raise error
        desire.forget(self._fallback_file)
        return self._told(change, before, passage, cut)

    async def _drain(self, change: Change) -> int:
        """Let running requests end; how many still run when their time is up."""
        life = self._life
        if life.process is None or life.status.state is not EngineState.SERVING:
            return 0
        draining = replace(
            life.status,
            state=EngineState.DRAINING,
            phase="drain",
            phase_since_s=life.clock(),
            eta=Missing(f"running requests end, within {change.drain_s:g} s"),
        )
        life.publish(draining)
        left = await life.step.run(self._gate.drained(change.drain_s))
        if left:
            text = f"{_requests(left)} still ran after {change.drain_s:g} s of draining: cut now"
            self._record("engine.drained", text, "warn", {"cut": str(left)})
        return left

    async def _climb(self, change: Change, passage: Passage) -> None:
        async def proof(status: EngineStatus) -> None:
            with passage.part("canary"):
                await self.prove(status)

        with passage.part("start"):
            await self._climber.climb(Wanted(change.profile, change.rung, proof=proof))
        spent = passage.seconds
        spent["start"] = round(spent["start"] - spent.get("canary", 0.0), 3)

    async def prove(self, status: EngineStatus) -> None:
        """Try the engine before clients reach it.

        Raises:
            CheckFailedError: If it does not stand the canary.
        """
        trying = replace(
            status,
            state=EngineState.STARTING,
            phase="canary",
            phase_since_s=self._life.clock(),
            eta=Estimated(1.0),
        )
        self._life.publish(trying)
        report = await self._canary(status)
        name = status.profile.name if status.profile else "the engine"
        checks = {check.name: f"{check.verdict}: {check.evidence}" for check in report.checks}
        verdict = "stands" if report.passed else "does not stand"
        self._record(
            "engine.canary",
            f"{name} {verdict} the canary, {report.seconds:.1f} s",
            "info" if report.passed else "error",
            checks,
        )
        if not report.passed:
            failed = [check for check in report.checks if check.passed is False]
            raise CheckFailedError(
                f"{name} serves, but does not stand the canary",
                evidence="; ".join(f"{check.name}: {check.evidence}" for check in failed),
                remedy="Look for what corrupts its answers (speculation, quantization, the cache).",
            )

    async def _put_back(self, change: Change, before: Wanted, error: ConsoleError) -> ConsoleError:
        """Start what served before; the error that the operator reads."""
        name = before.profile.name
        self._record(
            "engine.rolled_back",
            f"{error.message}; {name} is put back",
            "warn",
            {
                "who": change.who,
                "before": name,
                "after": name,
                "result": f"{name} is put back",
                "evidence": error.evidence,
                "remedy": error.remedy,
            },
        )
        try:
            await self._climber.climb(before)
        except StartInterruptedError as interrupted:
            return interrupted
        except ConsoleError as second:
            return type(error)(
                f"{error.message}; and {name} could not be put back: {second.message}",
                evidence="; ".join(part for part in (error.evidence, second.evidence) if part),
                remedy=second.remedy or error.remedy,
                exit_code=error.exit_code,
            )
        return type(error)(
            error.message,
            evidence=error.evidence,
            remedy=f"{name} serves again. {error.remedy}".rstrip(),
            exit_code=error.exit_code,
        )

    def _told(
        self, change: Change, before: Wanted | None, passage: Passage, cut: int
    ) -> dict[str, str]:
        """The result, and its event."""
        spent, name = passage.seconds, change.profile.name
        held_s = spent.pop("held")
        rung = rung_in_words(change.profile, self._life.status.rung)
        was = before.profile.name if before else "nothing"
        result = {"profile": name, "held_s": f"{held_s:.1f}", "parts": passage.describe()}
        if rung:
            result["placement"] = rung
        if cut:
            result["cut"] = _requests(cut)
        data = {"who": change.who, "before": was, "after": name, "result": "serves"}
        data |= {f"{part}_s": f"{seconds:.3f}" for part, seconds in spent.items()}
        data |= {"held_s": f"{held_s:.3f}", "placement": rung, "cut": str(cut)}
        text = f"{change.what}: clients waited {held_s:.1f} s ({passage.describe()})"
        self._record("engine.switched", text, "info", {k: v for k, v in data.items() if v})
        return result


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _noted(change: Change, before: Wanted | None, status: EngineStatus) -> Unended:
    """What a service that comes after us has to know of it."""
    return Unended(
        what=change.what,
        who=change.who,
        after=change.profile.name,
        before=before.profile if before else None,
        rung=before.rung if before else 0,
        run=status.run.id if before and status.run else "",
    )


def _why_held(change: Change, before: Wanted | None) -> str:
    name = change.profile.name
    if before is None or before.profile.name == name:
        return f"{name} is started"
    return f"{name} is started in place of {before.profile.name}"
