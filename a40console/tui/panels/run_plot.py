"""A run's plot as lines of text: curves in braille, bars with their intervals. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, floor, log10
from statistics import fmean
from typing import NamedTuple

from a40console.model.plot_scale import Scale, step_scale, value_scale
from a40console.model.run_result import Plot, Point
from a40console.model.run_words import figure_text
from a40console.tui.braille import DOWN, Canvas
from a40console.tui.ink import Line, Role, Span, clean, fit, line, pad, width_of
from a40console.tui.plot_axes import below, beside, tick

ROLES = (Role.SERIES, Role.KEY, Role.SECOND, Role.STRONG, Role.WARN, Role.GOOD)
"""The curves' colours, in order; the letter on a curve says which it is where there are none."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_AXIS = 8
_NAMED_FROM = 60
"""Cells from which on the curves are named at their right ends, and not below."""

_LONGEST_NAME = 20
_CROWD = 3
"""Curves from which on they are smoothed where their points stand close."""

_CELLS_A_POINT = 3
_LEAST_ROWS = 3
_LEAST_CELLS = 16
_BAR_VALUE = 30
_FIGURES = 3
"""Significant digits of the highest bar; the others have as many decimals."""


class Curve(NamedTuple):
    """A series as it is drawn; one without points keeps its letter and colour free."""

    letter: str
    role: Role
    name: str
    points: tuple[Point, ...]


def role_of(index: int) -> Role:
    """The colour of a series by its place."""
    return ROLES[index % len(ROLES)]


def heading(plot: Plot, width: int) -> Line:
    """What it draws in that width: the title, the unit, what lies across, how many are one."""
    joined = _joined(plot, width)
    axes = [f"in {plot.y_label}"] if plot.y_label else []
    axes += [f"by {plot.x_label}"] if plot.x_label else []
    axes += [f"means of {joined}"] if joined > 1 else []
    said = f"  {', '.join(axes)}" if axes else ""
    return line(Span(clean(plot.title), Role.LABEL), Span(clean(said), Role.MUTED))


@lru_cache(16)
def plotted(plot: Plot, width: int, height: int) -> tuple[Line, ...]:
    """The plot without its heading, in so many cells and at most so many rows."""
    joined = _joined(plot, width)
    drawn = tuple(
        Curve(LETTERS[at % 26], role_of(at), series.name, _means(series.points, joined))
        for at, series in enumerate(plot.series)
        if series.points
    )
    if not drawn:
        return (_told("no figures yet", width),)
    if plot.style == "bars":
        return tuple(_bars(drawn, width)[: max(1, height)])
    if width < _LEAST_CELLS + _AXIS or height < _LEAST_ROWS + 2:
        return (_told("no room to draw it", width),)
    return tuple(_curves(plot, drawn, width, height))


def rows_of(plot: Plot, rows: int) -> int:
    """The rows that it takes below its heading, where curves have so many: a bar is one."""
    return max(1, sum(len(each.points) for each in plot.series)) if plot.style == "bars" else rows


def _joined(plot: Plot, width: int) -> int:
    """How many neighbours are drawn as their mean: many restless curves hide each other."""
    counts = [len(series.points) for series in plot.series if series.points]
    bounded = any(point.low is not None for series in plot.series for point in series.points)
    if plot.style != "line" or len(counts) < _CROWD or bounded:
        return 1
    return max(1, ceil(max(counts) * _CELLS_A_POINT / max(1, width - _AXIS - _LONGEST_NAME)))


def _means(points: Sequence[Point], joined: int) -> tuple[Point, ...]:
    if joined == 1:
        return tuple(points)
    ordered = sorted(points, key=lambda each: each.x)
    groups = [ordered[at : at + joined] for at in range(0, len(ordered), joined)]
    return tuple(
        Point(x=group[len(group) // 2].x, y=fmean(each.y for each in group)) for group in groups
    )


def _told(text: str, width: int) -> Line:
    return fit(line(Span(f"  – {text}", Role.MUTED)), width)


def _curves(plot: Plot, drawn: Sequence[Curve], width: int, height: int) -> list[Line]:
    named = width >= _NAMED_FROM
    tail = min(_LONGEST_NAME, max(len(curve.name) for curve in drawn)) + 3 if named else 0
    legend = [] if named else _legend(drawn, width)[: max(1, height - _LEAST_ROWS - 1)]
    rows = height - 1 - len(legend)
    cells = width - _AXIS - 1 - tail
    canvas = Canvas(cells, rows)
    points = [point for curve in drawn for point in curve.points]
    axis_x = step_scale([point.x for point in points], 0, canvas.width - 1)
    axis_y = value_scale([y for point in points for y in _reach(point)], canvas.height - 1, 0)
    for curve in drawn:
        _draw(canvas, curve, axis_x, axis_y, steps=plot.style == "steps")
    if len(drawn) > 1:
        for place, curve in enumerate(drawn, 1):
            _mark(canvas, curve, place / (len(drawn) + 1), axis_x, axis_y)
    names = _names(drawn, axis_y, rows) if named else {}
    labels = beside(axis_y, rows)
    body = [
        line(
            Span(f"{labels.get(row, ''):>{_AXIS - 1}} ", Role.MUTED),
            Span("┤" if row in labels else "│", Role.RULE),
            pad(dots, cells) if row in names else dots,
            names.get(row, ()),
        )
        for row, dots in enumerate(canvas.lines())
    ]
    return [*body, line(" " * (_AXIS + 1), Span(below(axis_x, cells), Role.MUTED)), *legend]


def _reach(point: Point) -> list[float]:
    """Its value, and the bounds that it has."""
    return [each for each in (point.y, point.low, point.high) if each is not None]


def _draw(canvas: Canvas, curve: Curve, axis_x: Scale, axis_y: Scale, *, steps: bool) -> None:
    """The curve through the points, and each point's interval as an upright line."""
    before: tuple[int, int] | None = None
    for point in sorted(curve.points, key=lambda each: each.x):
        here = round(axis_x.place(point.x)), round(axis_y.place(point.y))
        if point.low is not None and point.high is not None:
            low, high = round(axis_y.place(point.low)), round(axis_y.place(point.high))
            canvas.stroke((here[0], high), (here[0], low), curve.role)
        if before is None:
            canvas.dot(*here, curve.role)
        elif steps:
            corner = here[0], before[1]
            canvas.stroke(before, corner, curve.role)
            canvas.stroke(corner, here, curve.role)
        else:
            canvas.stroke(before, here, curve.role)
        before = here


def _mark(canvas: Canvas, curve: Curve, share: float, axis_x: Scale, axis_y: Scale) -> None:
    """The curve's letter on it, at that share of its points: each curve has another."""
    ordered = sorted(curve.points, key=lambda each: each.x)
    point = ordered[int(share * len(ordered))]
    x, y = round(axis_x.place(point.x)), round(axis_y.place(point.y))
    canvas.letter(x, y, curve.letter, curve.role)


def _names(drawn: Sequence[Curve], axis_y: Scale, rows: int) -> dict[int, Line]:
    """The curves' names beside their ends, each in a row of its own."""
    ends = [
        (round(axis_y.place(max(curve.points, key=lambda each: each.x).y)) // DOWN, at)
        for at, curve in enumerate(drawn)
    ]
    taken: dict[int, Line] = {}
    for wanted, at in sorted(ends):
        free = sorted(set(range(rows)) - taken.keys(), key=lambda row: abs(row - wanted))
        if free:
            taken[free[0]] = _name(drawn[at], lettered=len(drawn) > 1)
    return taken


def _name(curve: Curve, *, lettered: bool) -> Line:
    letter = f" {curve.letter}" if lettered else " "
    return line(Span(f"{letter} {clean(curve.name)[:_LONGEST_NAME]}", curve.role))


def _legend(drawn: Sequence[Curve], width: int) -> list[Line]:
    """The curves' names below them, in as many rows as they take."""
    room = width - _AXIS - 1
    rows: list[Line] = []
    for curve in drawn:
        name = _name(curve, lettered=len(drawn) > 1)
        if rows and width_of(rows[-1]) + 1 + width_of(name) <= room:
            rows[-1] = line(rows[-1], " ", name)
        else:
            rows.append(fit(name, room))
    return [line(" " * _AXIS, row) for row in rows]


def _bars(drawn: Sequence[Curve], width: int) -> list[Line]:
    """A bar a point, its value behind it and its interval on it."""
    points = [(curve, point) for curve in drawn for point in curve.points]
    several = any(len(curve.points) > 1 for curve in drawn)
    names = [f"{curve.name} {tick(point.x)}" if several else curve.name for curve, point in points]
    top = max(0.0, *(each for _, point in points for each in _reach(point))) or 1.0
    values = _values([point for _, point in points], top)
    longest = min(_LONGEST_NAME, max(map(len, names)))
    cells = max(4, width - longest - min(_BAR_VALUE, max(map(len, values)) + 1) - 4)
    return [
        fit(
            line(
                Span(f"  {clean(name)[:longest]:<{longest}} ", Role.TEXT),
                _bar(point, top, cells, curve.role),
                Span(f" {value}", Role.STRONG),
            ),
            width,
        )
        for name, value, (curve, point) in zip(names, values, points, strict=True)
    ]


def _values(points: Sequence[Point], top: float) -> list[str]:
    """What stands behind the bars: all with as many decimals, each part flush right."""
    digits = max(0, min(9, _FIGURES - 1 - floor(log10(top))))
    rows = [[figure_text(each, digits) for each in _reach(point)] for point in points]
    longest = [max((len(row[at]) for row in rows if len(row) > at), default=0) for at in range(3)]
    told = [[f"{part:>{cells}}" for part, cells in zip(row, longest, strict=False)] for row in rows]
    return [part[0] + (f"  [{part[1]}, {part[2]}]" if part[2:] else "") for part in told]


def _bar(point: Point, top: float, cells: int, role: Role) -> Line:
    """Filled to the value; beyond its interval's low bound in a lighter shade, to the high one."""
    filled = round(max(0.0, point.y) / top * cells)
    if point.low is None or point.high is None:
        return pad(line(Span("▇" * filled, role)), cells)
    bounds = (min(max(0.0, bound), top) for bound in (point.low, point.high))
    low, high = (round(bound / top * cells) for bound in bounds)
    sure = line(Span("▇" * low, role))
    doubtful = line(Span("─" * max(0, high - low), role))
    bar = line(sure, doubtful)
    if low < filled <= high and width_of(bar) >= filled:
        inside = "─" * (filled - low - 1) + "┃" + "─" * (high - filled)
        bar = line(sure, Span(inside, role))
    return pad(bar, cells)
