"""Why the present speed is what it is: every cause with its figures, and what was ruled out how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Strength = Literal["cause", "candidate", "weak"]
"""`cause` explains the speed by itself; `candidate` fits without proof; `weak` is a hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One explanation of the present speed, with the figures that speak for it."""

    cause: str
    """Its short name, as in the snapshot's `limit`: `kv`."""

    strength: Strength
    text: str
    evidence: tuple[str, ...] = ()
    """Figures, each with the window it was taken over where it has one."""

    remedy: str = ""
    """What to do about it; empty where nothing needs doing."""

    command: str | None = None
    """Id of the command that applies the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledOut:
    """A cause that figures exclude."""

    cause: str
    how: str
    """The figure and the threshold that it is on the harmless side of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unjudged:
    """A cause that may be one or not: a figure is missing, old, or between two thresholds."""

    cause: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The ranking of causes at one instant; the first one is the snapshot's `limit`."""

    seq: int
    """Of the snapshot that it explains."""

    at: str
    """ISO 8601, UTC."""

    simulated: bool
    causes: tuple[Cause, ...]
    """Never empty: the first is named `unknown` where no figure explains the speed."""

    ruled_out: tuple[RuledOut, ...]
    unjudged: tuple[Unjudged, ...]
