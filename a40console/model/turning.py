"""What turning speculation would take, from what is known before it is tried. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model.control import EngineStart
from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import SpeculationInfo

NEVER_MEASURED = Missing("no start of this profile was measured")


def needs_restart(info: SpeculationInfo, mode: str) -> bool:
    """Whether `on`, `off` or a depth in digits takes a restart of the engine."""
    if info.control != "live":
        return True
    deepest = number(info.started_with)
    return mode.isdecimal() and deepest is not None and int(mode) > deepest


def last_start_s(starts: Iterable[EngineStart], profile: str) -> Figure:
    """Seconds from the last measured start of a profile to its serving; starts newest first."""
    for start in starts:
        if start.profile == profile and (seconds := number(start.ready_after_s)) is not None:
            return seconds
    return NEVER_MEASURED


def restart_in_words(seconds: Figure) -> str:
    """What a restart costs, as far as it was measured."""
    known = number(seconds)
    if known is None:
        reason = seconds.reason if isinstance(seconds, Missing) else "unknown"
        return f"By restart; how long it takes is not known: {reason}."
    return f"By restart, with clients waiting: the last start took {known:.0f} s."


LIVE_IN_WORDS = "Live, from the next pass on: no restart, and no request is cut."
