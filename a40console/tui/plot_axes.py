"""The axes of a plot: what lies where, and which values are written at them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from a40console.tui import format as fmt

_DOUBLES = 1.5
"""Values that are all so many times their neighbour lie at equal distances."""

_FEWEST = 3
_HEADROOM = 1.03
_MOST_TICKS = 5
_FLAT = 1e-3
"""Below this all is as good as nothing."""

_GAP = 2


def tick(value: float) -> str:
    """A value at an axis, as short as it can be: `0.25`, `40`, `16k`."""
    if value >= 10_000:
        return fmt.short_count(value)
    return fmt.count(value) if value == round(value) else f"{value:.4g}"


@dataclass(frozen=True, slots=True)
class Across:
    """The axis across: from a lowest to a highest value over so many places."""

    low: float
    high: float
    places: int
    doubles: bool = False
    """Whether equal distances stand for equal ratios."""

    whole: bool = False
    """Whether all values are whole, and so are those that are written."""

    def place(self, value: float) -> int:
        """Where a value lies, from 0 to the last place."""
        low, high, at = self.low, self.high, value
        if self.doubles:
            low, high, at = math.log(low), math.log(high), math.log(max(value, low))
        share = (at - low) / (high - low) if high > low else 0.0
        return round(max(0.0, min(1.0, share)) * (self.places - 1))


def across(values: Sequence[float], places: int) -> Across:
    """The axis that these values need."""
    known = sorted(set(values))
    doubles = (
        len(known) >= _FEWEST
        and known[0] > 0
        and all(b / a >= _DOUBLES for a, b in pairwise(known))
    )
    whole = all(value == round(value) for value in known)
    return Across(known[0], known[-1], places, doubles, whole)


def written(axis: Across, values: Sequence[float], cells: int) -> str:
    """The values below the axis, as many as there is room for, each under its place."""
    chosen = sorted(set(values)) if axis.doubles else _round_values(axis, cells)
    text = [" "] * cells
    free = 0
    for value in chosen:
        label = tick(value)
        at = axis.place(value) * cells // axis.places
        start = max(0, min(at - len(label) // 2, cells - len(label)))
        if start < free:
            continue
        text[start : start + len(label)] = label
        free = start + len(label) + _GAP
    return "".join(text)[:cells].rstrip()


def _round_values(axis: Across, cells: int) -> list[float]:
    span = axis.high - axis.low
    if span <= 0:
        return [axis.low]
    room = max(2, cells // 12)
    step = _step(span / room)
    if axis.whole:
        step = max(1.0, step)
    first = math.ceil(axis.low / step - 1e-9)
    last = math.floor(axis.high / step + 1e-9)
    values = [round(n * step, 10) for n in range(first, last + 1)]
    return values if axis.low in values else [axis.low, *values]


@dataclass(frozen=True, slots=True)
class Up:
    """The axis up: from 0 to a little above the highest value, over so many dots."""

    top: float
    step: float
    dots: int

    def place(self, value: float) -> int:
        """The dot's row, counted from above."""
        share = max(0.0, min(1.0, value / self.top)) if self.top > 0 else 0.0
        return round((1 - share) * (self.dots - 1))

    def labels(self, rows: int) -> dict[int, str]:
        """What is written beside which row; 0 at the last."""
        names: dict[int, str] = {}
        count = math.floor(self.top / self.step + 1e-9)
        for n in range(count, -1, -1):
            row = self.place(n * self.step) * rows // self.dots
            names.setdefault(min(rows - 1, row), tick(round(n * self.step, 10)))
        return names


def up(highest: float, dots: int) -> Up:
    """The axis for values of 0 to a highest."""
    step = _step(max(highest, _FLAT) / _MOST_TICKS)
    return Up(max(step, highest * _HEADROOM), step, dots)


def _step(least: float) -> float:
    """The smallest round step that is not below the least."""
    magnitude = 10.0 ** math.floor(math.log10(least))
    return next(magnitude * f for f in (1, 2, 5, 10) if magnitude * f >= least * 0.999)
