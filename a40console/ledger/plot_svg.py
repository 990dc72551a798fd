"""A plot as inline SVG: axes, curves or bars, their intervals, a legend. Pure.

Colours and dashes are the page's: each series has a class of its own, so that the page's light and
dark sheets hold for the drawing. No curve is told by its colour alone; bars stand in the order of
the legend.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from a40console.ledger.plot_bars import bars_svg, rows_svg
from a40console.ledger.plot_frame import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    frame,
    series_class,
    svg,
)
from a40console.model.plot_scale import Scale, step_scale, value_scale
from a40console.model.run_result import Plot, Point, Series
from a40console.model.run_words import visible

_MOST_DOTS = 40
"""A curve of more points is drawn without dots, and its intervals as a band."""

_DOT_SIZE = 3.5
_CAP = 4.0
"""Half the width of an interval's ends."""


def plot_figure(plot: Plot) -> str:
    """The plot as an HTML figure with its title and, where there are several series, a legend."""
    caption = f"<figcaption>{_text(plot.title)}</figcaption>"
    drawn = [series for series in plot.series if series.points]
    if not drawn:
        return f"<figure>{caption}<p>– no figures</p></figure>"
    if plot.style != "bars":
        return f"<figure>{caption}{_curves(plot, drawn)}{_legend(drawn)}</figure>"
    if all(len(series.points) == 1 for series in drawn):
        return f"<figure>{caption}{rows_svg(plot, drawn)}</figure>"
    return f"<figure>{caption}{bars_svg(plot, drawn)}{_legend(drawn, bars=True)}</figure>"


def _curves(plot: Plot, drawn: Sequence[Series]) -> str:
    points = [point for series in drawn for point in series.points]
    across = step_scale((point.x for point in points), LEFT, RIGHT)
    up = value_scale(_heights(points), BOTTOM, TOP)
    parts = frame(across, up, plot.x_label, plot.y_label)
    for index, series in enumerate(drawn):
        ordered = sorted(series.points, key=lambda point: point.x)
        drawing = _curve(ordered, across, up, steps=plot.style == "steps")
        parts.append(f'<g class="{series_class(index)}">{drawing}</g>')
    return svg(plot.title, parts)


def _heights(points: Iterable[Point]) -> list[float]:
    return [
        value for point in points for value in (point.y, point.low, point.high) if value is not None
    ]


def _curve(points: Sequence[Point], across: Scale, up: Scale, *, steps: bool) -> str:
    dense = len(points) > _MOST_DOTS
    parts = [_band(points, across, up) if dense else _whiskers(points, across, up)]
    places = [(across.place(point.x), up.place(point.y)) for point in points]
    if steps:
        places = _stepped(places)
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<polyline class="curve" points="{joined}"/>')
    if not dense:
        parts += [_dot(point, across, up) for point in points]
    return "".join(parts)


def _dot(point: Point, across: Scale, up: Scale) -> str:
    told = f"{point.x:g}: {point.y:.4g}"
    if point.low is not None and point.high is not None:
        told += f" [{point.low:.4g}, {point.high:.4g}]"
    x, y = across.place(point.x), up.place(point.y)
    circle = f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{_DOT_SIZE}">'
    return f"{circle}<title>{told}</title></circle>"


def _stepped(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Each value held until the next one."""
    made = list(places[:1])
    for x, y in places[1:]:
        made += [(x, made[-1][1]), (x, y)]
    return made


def _band(points: Sequence[Point], across: Scale, up: Scale) -> str:
    known = [
        (across.place(point.x), up.place(point.low), up.place(point.high))
        for point in points
        if point.low is not None and point.high is not None
    ]
    if len(known) < 2:
        return ""
    upper = [f"{x:.1f},{high:.1f}" for x, _, high in known]
    lower = [f"{x:.1f},{low:.1f}" for x, low, _ in reversed(known)]
    return f'<polygon class="band" points="{" ".join(upper + lower)}"/>'


def _whiskers(points: Sequence[Point], across: Scale, up: Scale) -> str:
    parts = []
    for point in points:
        if point.low is None or point.high is None:
            continue
        x, low, high = across.place(point.x), up.place(point.low), up.place(point.high)
        caps = "".join(f"M{x - _CAP:.1f} {y:.1f}h{2 * _CAP:.1f}" for y in (low, high))
        parts.append(f'<path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}{caps}"/>')
    return "".join(parts)


def _legend(drawn: Sequence[Series], *, bars: bool = False) -> str:
    if len(drawn) < 2:
        return ""
    dot = f'<circle class="dot" cx="14" cy="5" r="{_DOT_SIZE}"/>'
    sign = '<rect class="bar" x="9" width="10" height="10"/>'
    if not bars:
        sign = f'<path class="curve" d="M0 5H28"/>{dot}'
    items = "".join(
        f'<li class="{series_class(index)}"><svg class="swatch" viewBox="0 0 28 10"'
        f' aria-hidden="true">{sign}</svg>{_text(series.name)}</li>'
        for index, series in enumerate(drawn)
    )
    return f'<ul class="legend">{items}</ul>'


def _text(text: str) -> str:
    return escape(visible(text))
