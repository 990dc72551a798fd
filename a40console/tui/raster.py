"""Sparks, gauges and area charts made of characters: pure, one raster for each new value."""

from __future__ import annotations

import math
from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
ROW_BARS = "▁▂▃▄▅▆▇"
"""For sparks in neighbouring rows: the full block would run them together."""

_FLAT = 0.001
"""Below this all is as good as nothing, and the scale is that of an empty chart."""


def spark(values: Sequence[float | None], top: float | None = None, *, bars: str = BARS) -> str:
    """One character a value from 0 to `top` (the largest by default); a blank where none is."""
    highest = max((v for v in values if v is not None), default=0.0) if top is None else top
    return "".join(" " if value is None else _bar(value, highest, bars) for value in values)


def _bar(value: float, top: float, bars: str) -> str:
    if top <= 0 or value <= 0:
        return bars[0]
    return bars[min(len(bars) - 1, int(value / top * len(bars)))]


def gauge(ratio: float, width: int) -> str:
    """A bar of `width` cells, filled to a ratio of 0 to 1."""
    filled = round(min(1.0, max(0.0, ratio)) * width)
    return "▓" * filled + "░" * (width - filled)


def scale(highest: float) -> tuple[float, float]:
    """A round top not below the highest value and the step of its ticks, two to four of them."""
    if highest < _FLAT:
        return 2.0, 1.0
    magnitude = 10 ** math.floor(math.log10(highest))
    for factor in (0.2, 0.5, 1, 2, 5):
        step = magnitude * factor
        if highest / step <= 4:
            break
    return step * max(2, math.ceil(highest / step - 1e-9)), step


def area_chart(
    values: Sequence[float | None], *, height: int, top: float
) -> list[list[tuple[str, bool]]]:
    """The area below the values, one a cell, as runs of characters; None is a gap.

    Each run says whether it is the crest, the cells that the values themselves end in. What is
    known is never empty: nothing is a thin line, and a gap a blank.
    """
    levels = [None if v is None else _level(v, height, top) for v in values]
    return [_area_row(levels, 8 * (height - 1 - row)) for row in range(height)]


def _level(value: float, height: int, top: float) -> int:
    """Eighths of a cell that a value is high, one at the least."""
    return max(1, round(min(1.0, max(0.0, value / top)) * 8 * height))


def _area_row(levels: Sequence[int | None], floor: int) -> list[tuple[str, bool]]:
    """One row of cells above so many eighths: full below the crest, blank above it."""
    runs: list[tuple[str, bool]] = []
    for level in levels:
        above = 0 if level is None else level - floor
        cell = " " if above <= 0 else BARS[min(8, above) - 1]
        crest = 0 < above <= 8
        if runs and (runs[-1][1] == crest or cell == " "):
            runs[-1] = (runs[-1][0] + cell, runs[-1][1])
        else:
            runs.append((cell, crest))
    return runs
