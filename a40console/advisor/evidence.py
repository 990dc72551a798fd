"""What the rules need besides the snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.model.figures import Figure, Missing

_NOT_FOLLOWED = Missing("not followed")
NOT_ASKED = Missing("not asked")
_NO_RESET = Missing("never seen")


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that an engine left behind, proven to be of it."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StalledStart:
    """A start that no longer gets on: since when, at what, and what may help."""

    for_s: float
    cause: str
    evidence: str
    """The last sign of progress, in the engine's words."""

    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Signals of the service that no block of the snapshot holds."""

    generation_flat_s: Figure = _NOT_FOLLOWED
    """Seconds that the count of generated tokens stood still while there was work."""

    steps_flat_s: Figure = _NOT_FOLLOWED
    """The same of engine steps or computed prompt tokens: they move during a long prefill too."""

    health_status: int | Missing = NOT_ASKED
    """HTTP status of the engine's `/health`."""

    stall: StalledStart | None = None
    """None while a start gets on, and where nothing starts."""

    counters_reset_s: Figure = _NO_RESET
    """Seconds since the engine's counters began again."""

    survivors: tuple[Survivor, ...] = ()
    unkillable: bool = False
    """The survivors outlived KILL and the deadline after it."""

    state_trouble: str = ""
    """Why the service cannot write its state, in the system's words."""

    end_evidence: str = ""
    """The line of a failed engine's output that shows why it ended."""

    end_remedy: str = ""
    """What to do about that end."""
