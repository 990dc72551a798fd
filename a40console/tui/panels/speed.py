"""Speed over the last quarter of an hour, with what happened on its time axis."""

from __future__ import annotations

from collections.abc import Iterable

from textual.geometry import Size

from a40console.model.figures import Missing, number
from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import Line, Role, Span, clean, flow, line
from a40console.tui.panels.frame import heading
from a40console.tui.past import SPEED_SPAN_S, Mark, Past
from a40console.tui.raster import buckets, line_chart, scale, spark
from a40console.tui.reading import Reading

_AXIS = 7
"""Cells of the tick labels and the axis."""


def speed_chart(reading: Reading, size: Size) -> list[Line]:
    """The line of generation tokens per second, and the axis with its events."""
    width, height = size
    rows = height - 1
    if width <= _AXIS + 4 or rows < 2:
        return []
    past = reading.past
    values = _generation(past, 2 * (width - _AXIS))
    known = [value for value in values if value is not None]
    top, step = scale(max(known, default=0.0))
    if not known:
        reason = "no speed was measured in the last 15 min"
        blank = [line("")] * (rows // 2)
        return [*blank, line(" " * _AXIS, Span(f"{fmt.DASH} {reason}", Role.MUTED))]
    labels = _tick_rows(top, step, rows)
    plot = line_chart(values, height=rows, top=top)
    body = [
        line(Span(labels.get(y, " " * (_AXIS - 1) + "│"), Role.RULE), Span(dots, Role.SERIES))
        for y, dots in enumerate(plot)
    ]
    axis = line(Span(f"{'0 ┼':>{_AXIS}}", Role.RULE), _axis(past, width - _AXIS))
    return [*body, axis]


def speed_heading(reading: Reading, size: Size) -> list[Line]:
    """The rule above the chart: what it draws, over which span, and its peak."""
    known = [
        value
        for point in reading.past.speed
        if (value := number(point.generation_tokens_per_s)) is not None
    ]
    peak = f", peak {fmt.rate(max(known))}" if known else ""
    return [heading("Speed", f"gen tok/s, 15 min{peak}", size.width)]


def _generation(past: Past, dots: int) -> list[float | None]:
    return buckets(
        ((p.at_s, number(p.generation_tokens_per_s)) for p in past.speed),
        now_s=past.now_s,
        span_s=SPEED_SPAN_S,
        number=dots,
    )


def _tick_rows(top: float, step: float, rows: int) -> dict[int, str]:
    """Tick labels by row, from the top down; zero is written on the axis."""
    ticks: dict[int, str] = {}
    value = top
    while value > step / 2:
        row = int((1 - value / top) * rows)
        ticks.setdefault(row, f"{_tick(value) + ' ┤':>{_AXIS}}")
        value -= step
    return ticks


def _tick(value: float) -> str:
    return fmt.count(value) if value >= 10 or value == round(value) else f"{value:g}"


def _axis(past: Past, width: int) -> Line:
    """The time axis with a mark and, where there is room, a word for each event."""
    cells: list[tuple[str, Role]] = [("─", Role.RULE)] * width
    taken = width
    for mark in reversed(_visible(past.marks, past.now_s)):
        at = int((mark.at_s - (past.now_s - SPEED_SPAN_S)) / SPEED_SPAN_S * width)
        at = min(at, width - 1)
        if at >= taken:
            continue
        role = Role.WARN if mark.severity != "info" else Role.MUTED
        text = f"▲{mark.label} "
        if len(text) > taken - at:
            text = "▲"
            left = f"{mark.label}▲"
            if taken == width and len(left) <= at:
                text, at = left, at + 1 - len(left)
        cells[at : at + len(text)] = [(letter, role) for letter in text]
        taken = at - 1
    return line(*(Span(letter, role) for letter, role in cells))


def _visible(marks: Iterable[Mark], now_s: float) -> list[Mark]:
    return [mark for mark in marks if now_s - SPEED_SPAN_S <= mark.at_s <= now_s + 1]


def prefill(reading: Reading, width: int) -> Line:
    """Computed prompt tokens per second over the same span, as a spark."""
    past = reading.past
    cells = max(8, width - 19)
    values = buckets(
        ((p.at_s, number(p.prefill_tokens_per_s)) for p in past.speed),
        now_s=past.now_s,
        span_s=SPEED_SPAN_S,
        number=cells,
        of=max,
    )
    known = [value for value in values if value is not None]
    if not known:
        return line(Span(f"{fmt.DASH} nothing was measured in 15 min", Role.MUTED))
    return line(
        Span(spark(values), Role.SECOND),
        Span(f" peak {fmt.rate(max(known))} tok/s", Role.MUTED),
    )


def compact_speed(reading: Reading, width: int) -> Line:
    """The chart's stand-in on a small screen: a spark, its peak and the last event."""
    past = reading.past
    values = _generation(past, max(10, width - 38))
    known = [value for value in values if value is not None]
    if not known:
        return line(Span(f"{fmt.DASH} no speed was measured in 15 min", Role.MUTED))
    marks = _visible(past.marks, past.now_s)
    last = line(Span(f"▲ {marks[-1].label}", Role.MUTED)) if marks else line("")
    return flow(
        [
            line(Span(spark(values), Role.SERIES)),
            line(f"15 min, peak {fmt.rate(max(known))}"),
            last,
        ],
        width,
    )


def passes(reading: Reading) -> Line:
    """Engine passes a second and sequences in each."""
    throughput = reading.snapshot.throughput
    if isinstance(throughput.passes_per_s, Missing):
        return line(Span(f"{fmt.DASH} {clean(throughput.passes_per_s.reason)}", Role.MUTED))
    return line(
        f"{shown(throughput.passes_per_s, fmt.tenths)}/s",
        Span(" × ", Role.MUTED),
        f"{shown(throughput.sequences_per_pass, fmt.rate)} sequences",
    )
