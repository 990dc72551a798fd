"""What a change of speculation takes, as the service tells it before it is confirmed. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from a40console.model.control import EngineStart
from a40console.model.figures import Figure, Missing, number

NEVER_MEASURED = Missing("no start of this profile was measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurningWay:
    """How a change of speculation would be made, if it were asked for now."""

    how: Literal["live", "restart"]
    tokens: int
    """The depth that it leads to; 0 is off."""

    why: str
    """Why it takes a restart; empty where it takes none."""

    last_start_s: Figure
    """Seconds from the last measured start of this profile to its serving."""

    issues: tuple[str, ...] = ()
    """What is known not to work with speculation in this profile."""


def last_start_s(starts: Iterable[EngineStart], profile: str) -> Figure:
    """Seconds from the last measured start of a profile to its serving; starts newest first."""
    for start in starts:
        if start.profile == profile and (seconds := number(start.ready_after_s)) is not None:
            return seconds
    return NEVER_MEASURED


def way_in_words(way: TurningWay) -> str:
    """That it is live, or what the restart costs, as far as it was measured, and why it takes one.

    `By restart, with clients waiting (it was started without speculation): the last start took 9 s`
    """
    if way.how == "live":
        return "Live, from the next pass on: no restart, and no request is cut."
    why = f" ({way.why})" if way.why else ""
    known = number(way.last_start_s)
    if known is None:
        missing = way.last_start_s
        reason = missing.reason if isinstance(missing, Missing) else "unknown"
        return f"By restart{why}; how long it takes is not known: {reason}."
    return f"By restart, with clients waiting{why}: the last start took {known:.0f} s."


def told(way: TurningWay) -> tuple[str, ...]:
    """The depth that it leads to, what is known against it, and what the change takes."""
    cut = "What still runs after the drain is cut."
    cost = (way_in_words(way), *((cut,) if way.how == "restart" else ()))
    if not way.tokens:
        return cost
    tokens = "1 token is" if way.tokens == 1 else f"{way.tokens:,} tokens are"
    known = tuple(f"Known issue of this profile: {issue}." for issue in way.issues)
    return (f"{tokens} drafted for each pass then.", *known, *cost)
