"""What a run found, in a shape that reports and screens draw without knowing the experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from a40console.model.figures import Figure, Missing

NO_COMPARISON = Missing("no comparison")

Cell: TypeAlias = Figure | str
"""A figure with its column's unit, or a word."""

VerdictKind: TypeAlias = Literal["difference", "no difference", "passed", "failed", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its bounds: resampled repeats, widened where they are few."""

    value: float
    low: float
    high: float
    confidence: float
    """0.95: of such bounds, so many hold the true value."""

    repeats: int
    """How many independent repeats it rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    title: str
    unit: str = ""
    """`tok/s`, `s`, `$`; empty for words and counts."""

    digits: int = 1
    """Decimals that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of cells under columns, one row an arm or a step."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """What a reader must know: what was left out, over which window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a plot, with its interval where repeats gave one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one arm."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Series over one axis."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    style: Literal["line", "steps", "bars"] = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What follows, and how sure it is."""

    kind: VerdictKind
    """`none`: the preset or the data allow no verdict, and the text says why."""

    text: str
    """One or two sentences."""

    winner: str = ""
    """The arm that is better; empty where none is."""

    ratio: Interval | Missing = NO_COMPARISON
    """The winner's score against the runner-up's or the baseline's, as the text says."""

    paste: str = ""
    """The line to paste into the client or the profile to have it; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Something that speaks against believing a run, or a part of it."""

    code: str
    """Stable: `client-saturated`, `counters-disagree`, `foreign-traffic`, `clock-step`, ..."""

    text: str
    """What was seen, with its figures."""

    invalidates: bool
    """Whether no figure of the run may be believed."""

    arm: str = ""
    """The arm that it is about; empty for the whole run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Everything that a run found."""

    headline: str
    """One line: the sustained figure, the winner, or what failed."""

    verdict: Verdict
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    excerpts: tuple[str, ...] = ()
    """Short texts of our own probes that show a fault: a spliced fragment. Never a user's text."""
