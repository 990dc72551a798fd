"""Where the engine is in its life, as one frozen value that others read at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a40console.engines.readiness import Stall
from a40console.engines.tree import ProcessId, ProcessInfo
from a40console.errors import RefusedError
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.figures import Figure, Missing
from a40console.model.profile import Profile
from a40console.model.snapshot import Difference
from a40console.operations.record import RunRecord

NOTHING_STARTS = Missing("nothing starts")
NOT_SERVING = Missing("the engine does not serve")

LIVING = frozenset(
    {
        EngineState.STARTING,
        EngineState.SERVING,
        EngineState.DRAINING,
        EngineState.STOPPING,
        EngineState.ORPHANED,
        EngineState.HUNG,
        EngineState.ASLEEP,
    }
)
"""States in which processes of the engine exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """One moment of an engine's life; times are on the monotonic clock."""

    state: EngineState = EngineState.ABSENT
    profile: Profile | None = None
    """What is asked for, from the moment on that its start is taken up."""

    run: RunRecord | None = None
    """What was started of it."""

    rung: int = 0
    """Of the profile's ladder: 0 as it is written, n with its n-th placement."""

    phase: str | None = None
    """Of a start: `download`, `load`, `compile`, `capture`; `ready` once it serves."""

    phase_since_s: float | None = None

    eta: Figure = NOTHING_STARTS
    """Seconds until it serves, while it starts."""

    stall: Stall | None = None
    """The verdict on a start that no longer gets on."""

    pid: int | None = None
    session_id: int | None = None
    leader: ProcessId | None = None
    started_at_s: float | None = None
    restarts: int = 0
    """Starts by us after it ended by itself, since it was last asked for."""

    end: EngineEnd | None = None
    end_evidence: str = ""
    """The line that shows the cause of the last end."""

    remedy: str = ""
    """What to do about a failure."""

    stays_down: str = ""
    """Why it is not started again by itself: `not started again: 3 restarts within 10 min`."""

    keeper_gone: bool = False
    """Whether it lives without the keeper that caps its output and records its end."""

    differences: tuple[Difference, ...] | Missing = NOT_SERVING
    survivors: tuple[ProcessInfo, ...] = ()
    left: Literal["", "survivors", "unkillable"] = ""
    """What the last stop or end left behind."""

    @property
    def in_words(self) -> str:
        """State and profile: `serving (beta)`."""
        return f"{self.state} ({self.profile.name})" if self.profile else str(self.state)

    @property
    def living(self) -> bool:
        """Whether the engine has processes."""
        return self.state in LIVING


def refuse_another(status: EngineStatus, *, starting: bool) -> None:
    """See that no engine is there already.

    Raises:
        RefusedError: If one lives, starts, or has left something behind.
    """
    if status.state is EngineState.ORPHANED:
        names = ", ".join(f"{p.name} (pid {p.pid})" for p in status.survivors)
        raise RefusedError(
            "Something of the last engine is left",
            evidence=names or "its processes still live",
            remedy="End exactly those: a40console engine clean",
        )
    if status.living or starting:
        name = status.profile.name if status.profile else "an engine"
        raise RefusedError(
            f"{name} is {status.state}",
            remedy="Switch to another profile: engine switch; or stop it: engine stop",
        )
