"""Where values lie along the axes of a drawn plot, and which are written there.

Pages and screens draw with it alike: a run has the same axes in both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

_FEWEST_LOGARITHMIC = 3
_LEAST_FACTOR = 1.5
"""Values that are all more than so many times their neighbour lie at equal distances."""

_MOST_WRITTEN = 8
"""Values that were varied are written themselves, where they are no more than these."""

_LEAST_SPAN = 1e-9
"""Of an axis, in its greatest value: below it, figures do not tell its ticks apart."""

_TINY = 1e-11
"""What is below it is nothing: ticks are rounded to a tenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """One axis: from values to places."""

    low: float
    high: float
    begin: float
    """Where the lowest value lies, in the drawing's units."""

    end: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a value lies."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(value)
        return self.begin + (self.end - self.begin) * (at - low) / (high - low)


def value_scale(values: Iterable[float], begin: float, end: float, most: int = 6) -> Scale:
    """The axis of what was measured: it begins at nothing, so that heights may be compared.

    Args:
        values: All that is drawn on it.
        begin: Where its lowest value lies.
        end: Where its highest lies.
        most: Steps it has at the most, about.
    """
    known = [*values, 0.0]
    ticks = round_ticks(min(known), max(known), most)
    return Scale(low=ticks[0], high=ticks[-1], begin=begin, end=end, ticks=ticks)


def step_scale(values: Iterable[float], begin: float, end: float) -> Scale:
    """The axis of what was varied: logarithmic where each value is well beyond the one before."""
    known = sorted(set(values))
    if grows_by_factors(known):
        low, high, ticks = known[0], known[-1], tuple(known)
        return Scale(low=low, high=high, begin=begin, end=end, ticks=ticks, logarithmic=True)
    low, high = (known[0], known[-1]) if known else (0.0, 1.0)
    if low == high:
        half = max(0.5, abs(low) * _LEAST_SPAN)
        low, high = low - half, high + half
    ticks = tuple(tick for tick in round_ticks(low, high) if low <= tick <= high)
    if 0 < len(known) <= _MOST_WRITTEN:
        ticks = tuple(known)
    return Scale(low=low, high=high, begin=begin, end=end, ticks=ticks)


def grows_by_factors(values: list[float]) -> bool:
    """Whether sorted values grow by factors and not by steps: 1, 2, 4, 8 does, 1, 2, 3 does not."""
    if len(values) < _FEWEST_LOGARITHMIC or values[0] <= 0:
        return False
    return all(b / a > _LEAST_FACTOR for a, b in itertools.pairwise(values))


def round_ticks(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """Round values from at most the lowest to at least the highest, in equal steps."""
    least = max(abs(low), abs(high)) * _LEAST_SPAN
    if high - low <= max(least, _TINY):
        high = low + (least if least > _TINY else 1.0)
    rough = (high - low) / most
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= rough)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(number * step, 12) for number in range(first, last + 1))


def tick_text(value: float) -> str:
    """A tick's value, as short as it is exact."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.6g}"
