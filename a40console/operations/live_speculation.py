"""Changes of speculation: while the engine runs where its plugin can, else by a restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from a40console.engines.controls import ControlError, EngineControls, SpeculationChange
from a40console.errors import CheckFailedError, RefusedError
from a40console.model.engine import EngineState
from a40console.model.profile import Profile
from a40console.operations.canary import CanaryReport
from a40console.operations.record import RunRecord
from a40console.operations.roles import Recorder
from a40console.operations.speculation import (
    asked_of,
    turned_live,
    wanted_tokens,
    with_speculation,
)
from a40console.operations.status import EngineStatus
from a40console.operations.switch import Canary
from a40console.operations.who import asking

CHANGED = "speculation.changed"
TAKEN = "from the next pass on"


class NotWellError(CheckFailedError):
    """The engine's answers are not well after a change of depth."""

    stays = False
    """Whether the change stays all the same: a depth that is less is not taken back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a change of speculation is made."""

    how: Literal["live", "restart"]
    tokens: int
    """The depth that is asked for; 0 is off."""

    profile: Profile
    """What is asked of the engine afterwards."""

    why: str = ""
    """Why it takes a restart."""


class LiveSpeculation:
    """Finds the way of a change, and goes the live one."""

    def __init__(
        self,
        *,
        runs: Path,
        canary: Canary,
        recorder: Recorder,
        clock: Callable[[], float],
    ) -> None:
        self._runs = runs
        self._canary = canary
        self._record = recorder
        self._clock = clock

    async def way(self, status: EngineStatus, mode: str) -> Way:
        """How `on`, `off` or a depth would be reached from here.

        Raises:
            UsageError: If the mode is none of these.
            RefusedError: If the profile has no speculation, is locked, or has it off already.
        """
        profile = _profile_of(status)
        tokens = wanted_tokens(asked_of(profile), mode)
        why = await self._why_not_live(status, tokens)
        if not why:
            return Way(how="live", tokens=tokens, profile=turned_live(profile, tokens))
        changed = with_speculation(profile, mode)
        if (
            tokens == 0
            and changed == profile
            and status.state is EngineState.SERVING
            and not (profile.speculation and profile.speculation.ready)
        ):
            raise RefusedError(
                "Speculation is off already",
                evidence=f"{profile.name} was started without it",
            )
        return Way(how="restart", tokens=tokens, profile=changed, why=why)

    async def turn(self, status: EngineStatus, way: Way) -> dict[str, str]:
        """Go a live way: the engine's next pass drafts no deeper; what came of it.

        Raises:
            ControlError: If the engine does not do it; it stays as it was.
            NotWellError: If its answers are not well afterwards; a depth that was new is taken
                back.
        """
        began_s = self._clock()
        if status.run is None:
            raise RefusedError("The engine is not there any more")
        async with self._connect(status.run) as controls:
            change = await controls.set_speculation(way.tokens)
            result = _told(change, self._clock() - began_s)
            if change.before == change.after:
                return result | {"report": f"Speculation was {result['after']} already."}
            report = await self._canary(status)
            if report.passed:
                self._note(result, {"canary": report.describe(), "result": TAKEN})
                canary = f"the canary stands, {report.seconds:.1f} s"
                return result | {"report": f"Speculation is {_moved(result)}, {TAKEN}; {canary}."}
            if change.after > change.before:
                await controls.set_speculation(change.before)
        raise self._taken_back(change, report, result)

    def restarted(self, way: Way, before: str) -> dict[str, str]:
        """What came of the other way, once the engine serves again; it stood the canary then."""
        result = {
            "how": "restart",
            "before": before,
            "after": depth_in_words(way.tokens),
            "why": way.why,
        }
        self._note(result, {"result": "it serves again"})
        return result

    async def _why_not_live(self, status: EngineStatus, tokens: int) -> str:
        """Why a depth cannot be reached while the engine runs; empty where it can."""
        run = status.run
        if status.state is not EngineState.SERVING or run is None:
            return f"it is {status.state}"
        asked = run.profile.speculation
        if asked is None or not asked.ready:
            return "it was started without speculation"
        if not run.profile.turns_live:
            return "live changes need vLLM with our plugin, and n-gram drafts"
        async with self._connect(run) as controls:
            try:
                able = await controls.capabilities()
            except ControlError as error:
                return error.evidence or error.message
        deepest = able.depth.deepest if able.depth is not None else 0
        if (refusal := able.refusal("speculation")) is None and tokens > deepest:
            return f"{tokens} is deeper than the {deepest} that it was started with"
        return refusal or ""

    def _connect(self, run: RunRecord) -> EngineControls:
        return EngineControls(run.endpoint(self._runs), run.profile.kind)

    def _taken_back(
        self, change: SpeculationChange, report: CanaryReport, result: dict[str, str]
    ) -> NotWellError:
        failed = "; ".join(
            f"{check.name}: {check.evidence}" for check in report.checks if check.passed is False
        )
        back = change.after > change.before
        now = depth_in_words(change.before if back else change.after)
        ended = f"the canary does not stand; it is {now}"
        self._note(result, {"canary": report.describe(), "result": ended}, failed=failed)
        taken = f"; it is back at {now}" if back else ""
        told = NotWellError(
            f"The engine's answers are not well with speculation {result['after']}{taken}",
            evidence=failed,
            remedy="Leave speculation off, and restart the engine if that does not mend it.",
        )
        told.stays = not back
        return told

    def _note(self, result: dict[str, str], more: dict[str, str], *, failed: str = "") -> None:
        text = f"speculation {_moved(result)}{f', but {failed}' if failed else ''}"
        data = {"who": asking(), **result, **more}
        self._record(CHANGED, text, "error" if failed else "info", data)


def _moved(result: dict[str, str]) -> str:
    """`off, was 24 (live)`."""
    way = "live" if result["how"] == "live" else "by restart"
    return f"{result['after']}, was {result['before']} ({way})"


def started_depth(status: EngineStatus) -> str:
    """The depth that an engine began with, in words."""
    asked = status.profile.speculation if status.profile else None
    return depth_in_words(None if asked is None else asked.start_tokens)


def depth_in_words(tokens: int | None) -> str:
    """`off`, or the depth."""
    if tokens is None:
        return "unknown"
    return str(tokens) if tokens else "off"


def _told(change: SpeculationChange, took_s: float) -> dict[str, str]:
    passes = change.effective_pass
    return {
        "how": "live",
        "before": depth_in_words(change.before),
        "after": depth_in_words(change.after),
        "took_s": f"{took_s:.3f}",
        **({} if passes is None else {"after_pass": str(passes)}),
    }


def _profile_of(status: EngineStatus) -> Profile:
    if status.profile is None:
        raise RefusedError("No engine was started", remedy="Start one: engine start PROFILE")
    return status.profile
