"""Further figures over the span that is looked at, as sparks on the time axis of the chart."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from textual.geometry import Size

from a40console.tui import format as fmt
from a40console.tui.bins import Kind
from a40console.tui.format import Formatter
from a40console.tui.ink import Line, Role, Span, fit, line
from a40console.tui.panels.speed import AXIS, TAIL, cells_of, span_name
from a40console.tui.raster import ROW_BARS, area_chart, scale, spark
from a40console.tui.reading import Reading
from a40console.tui.widgets.lines import Draw

_CHART_ROWS = 3
"""A chart of fewer rows says no more than a spark."""


_FEWEST_CELLS = 8


@dataclass(frozen=True, slots=True)
class Trend:
    """One figure of the history as a row."""

    label: str
    figure: str
    shown: Formatter
    kind: Kind = "mean"
    top: float | None = None
    """What the highest bar stands for; None for the highest value of the span."""


def _watts(value: float) -> str:
    return f"{fmt.count(value)} W"


TRENDS = (
    Trend("prefill", "prefill_tokens_per_s", fmt.short_count, "highest"),
    Trend("running", "running", fmt.plain),
    Trend("GPU use", "gpu_utilization_ratio", fmt.percent, top=1.0),
    Trend("KV held", "kv_held_ratio", fmt.percent, "highest", top=1.0),
    Trend("queued", "waiting", fmt.count, "highest"),
    Trend("CPU", "cpu_used_vcpu", fmt.two_digits),
    Trend("tok/pass", "tokens_per_pass", fmt.rate),
    Trend("cache", "cache_hit_ratio", fmt.percent, top=1.0),
    Trend("TTFT", "ttft_s", fmt.latency, "highest"),
    Trend("power", "gpu_power_w", _watts),
    Trend("passes/s", "passes_per_s", fmt.tenths),
    Trend("throttle", "throttled_ms_per_s", fmt.count, "highest"),
)
"""In the order in which they get the rows that there are."""


def trends(
    reading: Reading, size: Size, elsewhere: Collection[str | None] = frozenset()
) -> list[Line]:
    """As many figures as there are rows for, those that are known first.

    What is drawn elsewhere on the same screen is left to that place.
    """
    cells = cells_of(size.width)
    if cells < 4:
        return []
    drawn: list[Line] = []
    unknown: list[Line] = []
    for trend in TRENDS:
        if len(drawn) == size.height:
            break
        if trend.figure in elsewhere:
            continue
        values = reading.past.series(trend.figure, reading.view, cells, trend.kind)
        known = [value for value in values if value is not None]
        if known:
            drawn.append(_row(trend, values, max(known)))
        else:
            head = Span(f"{trend.label:<{AXIS}}", Role.LABEL)
            unknown.append(line(head, Span(f"{fmt.DASH} not measured", Role.MUTED)))
    rows = [*drawn, *unknown][: size.height]
    return [fit(row, size.width) for row in rows]


def _row(trend: Trend, values: list[float | None], highest: float) -> Line:
    """A spark from 0 to the top of its scale, and the highest value."""
    bars = spark(values, trend.top or highest, bars=ROW_BARS)
    return line(
        Span(f"{trend.label:<{AXIS}}", Role.LABEL),
        Span(bars, Role.SECOND),
        Span(f" ↑{trend.shown(highest)}"[:TAIL], Role.MUTED),
    )


def chosen(reading: Reading, size: Size, *choices: str) -> str | None:
    """Which of the choices a chart of that size draws; None where it draws none."""
    cells = size.width - AXIS
    if cells < _FEWEST_CELLS or size.height < _CHART_ROWS:
        return None
    for trend in _wanted(choices):
        values = reading.past.series(trend.figure, reading.view, cells, trend.kind)
        if any(value is not None for value in values):
            return trend.figure
    return None


def _wanted(choices: Sequence[str]) -> list[Trend]:
    return [trend for choice in choices for trend in TRENDS if trend.figure == choice]


def trend_chart(*choices: str) -> Draw:
    """A drawer of one figure as an area: the first of the choices that the history knows."""
    wanted = _wanted(choices)

    def draw(reading: Reading, size: Size) -> list[Line]:
        cells = size.width - AXIS
        if cells < _FEWEST_CELLS or size.height < _CHART_ROWS:
            return []
        for trend in wanted:
            values = reading.past.series(trend.figure, reading.view, cells, trend.kind)
            known = [value for value in values if value is not None]
            if known:
                return _chart(trend, values, max(known), size)
        unknown = Span(f"{fmt.DASH} not measured in {span_name(reading)}", Role.MUTED)
        return [line(Span(f"{wanted[0].label:<{AXIS}}", Role.LABEL), unknown)]

    return draw


def _chart(trend: Trend, values: list[float | None], highest: float, size: Size) -> list[Line]:
    """The area under its name, from 0 to the top of its scale."""
    top, _ = (trend.top, 0.0) if trend.top else scale(highest)
    rows = area_chart(values, height=size.height, top=top)
    heads = {0: trend.label, 1: f"↑{trend.shown(highest)}"}
    return [
        line(
            Span(f"{heads.get(row, ''):<{AXIS}}", Role.LABEL if row == 0 else Role.MUTED),
            *(Span(text, Role.SECOND if crest else Role.RULE) for text, crest in runs),
        )
        for row, runs in enumerate(rows)
    ]
