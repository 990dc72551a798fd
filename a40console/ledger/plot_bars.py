"""Bars as inline SVG: one row an arm, or groups where arms have several values. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.ledger.plot_frame import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    series_class,
    svg,
    text,
    values_grid,
)
from a40console.model.plot_scale import Scale, tick_text, value_scale
from a40console.model.run_result import Plot, Point, Series

_ROW = 30.0
_BAR = 18.0
_LETTER = 7.6
"""A letter of a name, at the most in the mean."""

_LEAST_NAME, _LONGEST_NAME = 12, 40
"""Letters for which there is room before the bars."""

_VALUE_WIDTH = 76.0
_CAP = 4.0
_FILLED = 0.8
"""How much of a group's room its bars take."""

_BODY = 0.92
"""How much of its own room a bar takes."""


def rows_svg(plot: Plot, drawn: Sequence[Series]) -> str:
    """A bar for each series, its name before it and its value behind it."""
    bottom = TOP + _ROW * len(drawn)
    right = WIDTH - _VALUE_WIDTH
    longest = max(len(series.name) for series in drawn)
    left = max(_LEAST_NAME, min(longest, _LONGEST_NAME)) * _LETTER
    along = value_scale(_values(drawn), left, right)
    parts = []
    for tick in along.ticks:
        x = along.place(tick)
        kind = "axis" if tick == 0 else "grid"
        parts.append(f'<path class="{kind}" d="M{x:.1f} {TOP}V{bottom}"/>')
        parts.append(text(x, bottom + 17, tick_text(tick), "middle"))
    for index, series in enumerate(drawn):
        middle = TOP + _ROW * (index + 0.5)
        parts.append(text(left - 10, middle + 4, _shortened(series.name), "end", "name"))
        drawing = _row(series.points[0], along, middle)
        parts.append(f'<g class="{series_class(index)}">{drawing}</g>')
        end = max(along.place(value) for value in _point_values(series.points[0]))
        parts.append(text(end + 8, middle + 4, f"{series.points[0].y:,.4g}", "start"))
    parts.append(text((left + right) / 2, bottom + 38, plot.y_label, "middle", "name"))
    return svg(plot.title, parts, bottom + 50)


def _row(point: Point, along: Scale, middle: float) -> str:
    begin, end = sorted((along.place(0.0), along.place(point.y)))
    bar = (
        f'<rect class="bar" x="{begin:.1f}" y="{middle - _BAR / 2:.1f}"'
        f' width="{end - begin:.1f}" height="{_BAR}"/>'
    )
    if point.low is None or point.high is None:
        return bar
    low, high = along.place(point.low), along.place(point.high)
    caps = "".join(f"M{x:.1f} {middle - _CAP:.1f}v{2 * _CAP}" for x in (low, high))
    return f'{bar}<path class="whisker" d="M{low:.1f} {middle:.1f}H{high:.1f}{caps}"/>'


def bars_svg(plot: Plot, drawn: Sequence[Series]) -> str:
    """A group of bars for each value of what was varied, a bar a series."""
    groups = sorted({point.x for series in drawn for point in series.points})
    up = value_scale(_values(drawn), BOTTOM, TOP)
    room = (RIGHT - LEFT) / len(groups)
    width = room * _FILLED / len(drawn)
    parts = values_grid(up, plot.y_label)
    for place, value in enumerate(groups):
        middle = LEFT + room * (place + 0.5)
        parts.append(text(middle, BOTTOM + 19, tick_text(value), "middle"))
    for index, series in enumerate(drawn):
        bars = []
        for point in series.points:
            begin = LEFT + room * (groups.index(point.x) + (1 - _FILLED) / 2) + width * index
            bars.append(_bar(point, up, begin, width * _BODY))
        parts.append(f'<g class="{series_class(index)}">{"".join(bars)}</g>')
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 42, plot.x_label, "middle", "name"))
    return svg(plot.title, parts)


def _bar(point: Point, up: Scale, begin: float, width: float) -> str:
    top, bottom = sorted((up.place(0.0), up.place(point.y)))
    bar = (
        f'<rect class="bar" x="{begin:.1f}" y="{top:.1f}" width="{width:.1f}"'
        f' height="{bottom - top:.1f}"><title>{point.y:.4g}</title></rect>'
    )
    if point.low is None or point.high is None:
        return bar
    x, low, high = begin + width / 2, up.place(point.low), up.place(point.high)
    cap = min(_CAP, width / 3)
    caps = "".join(f"M{x - cap:.1f} {y:.1f}h{2 * cap:.1f}" for y in (low, high))
    return f'{bar}<path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}{caps}"/>'


def _values(drawn: Sequence[Series]) -> list[float]:
    return [value for series in drawn for point in series.points for value in _point_values(point)]


def _point_values(point: Point) -> list[float]:
    return [value for value in (point.y, point.low, point.high) if value is not None]


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
