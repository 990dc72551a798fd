"""Prefill speed, time to first token, passes, and what became of requests."""

from __future__ import annotations

from statistics import median

from textual.geometry import Size

from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import FirstToken, Percentiles, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, flow, line
from a40console.tui.panels.labels import LABEL, gap, labelled
from a40console.tui.panels.speed import passes, prefill
from a40console.tui.reading import Reading

_OUTLIER = 3.0
"""A first-token time this many times the median of the last five is marked."""


def latencies(reading: Reading, size: Size) -> list[Line]:
    """Prefill speed, time to first token, passes, and what went wrong with requests."""
    snapshot = reading.snapshot
    width = size.width
    room = width - LABEL
    latency = snapshot.latency
    return [
        labelled("Prefill", prefill(reading, room), width),
        labelled("First token", first_tokens(latency.ttft_s, room), width),
        labelled("Passes", _passes(reading, room), width),
        labelled("Requests", _requests(snapshot, room), width),
    ]


def first_tokens(first: FirstToken | Missing, width: int) -> Line:
    """The last first-token times with their outliers marked, and the median."""
    if isinstance(first, Missing):
        return gap(first)
    middle = median(first.last) if first.last else 0.0
    parts: list[Span] = []
    for seconds in first.last:
        odd = middle > 0 and seconds > _OUTLIER * middle
        text = f"{fmt.rate(seconds)}{'!' if odd else ''} "
        parts.append(Span(text, Role.WARN if odd else Role.TEXT))
    last = line(*parts, "s") if parts else line(Span(DASH, Role.MUTED))
    p50 = Span(f"p50 {shown(first.p50, fmt.latency)} of {first.count}", Role.MUTED)
    origin = Span("" if first.origin == "gateway" else "by the engine", Role.MUTED)
    return flow([last, line(p50), line(origin)], width)


def _passes(reading: Reading, width: int) -> Line:
    steps = reading.snapshot.latency.pass_s
    if isinstance(steps, Missing):
        return passes(reading)
    return flow([passes(reading), *quantiles(steps)], width)


def quantiles(latency: Percentiles | Missing) -> list[Line]:
    """The median and the 95th percentile, each an item of its own."""
    if isinstance(latency, Missing):
        return [gap(latency)]
    return [
        line(f"p50 {shown(latency.p50, fmt.latency)}"),
        line(Span(f"p95 {shown(latency.p95, fmt.latency)}", Role.MUTED)),
    ]


def _requests(snapshot: Snapshot, width: int) -> Line:
    requests = snapshot.requests
    if isinstance(requests.running, Missing):
        return gap(requests.running)
    running = f"{shown(requests.running, fmt.count)} of {shown(requests.max_running, fmt.count)}"
    return flow(
        [
            line(f"{running} running"),
            _count("preempted", requests.preemptions),
            line(Span(f"aborted {shown(requests.aborted, fmt.count)}", Role.MUTED)),
            _count("failed", requests.failed),
        ],
        width,
    )


def _count(word: str, figure: Figure) -> Line:
    return line(
        Span(f"{word} {shown(figure, fmt.count)}", Role.WARN if number(figure) else Role.MUTED)
    )
