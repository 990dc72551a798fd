"""Time to first token, passes, the queue, and what became of requests."""

from __future__ import annotations

from statistics import median

from textual.geometry import Size

from a40console.model.figures import Figure, Missing, number
from a40console.model.latency import FirstToken, Percentiles
from a40console.model.snapshot import Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import DASH, shown
from a40console.tui.ink import Line, Role, Span, clean, flow, line
from a40console.tui.instant import first_token, held
from a40console.tui.panels.labels import LABEL, aged, gap, labelled
from a40console.tui.panels.speed import passes
from a40console.tui.reading import Reading

_OUTLIER = 3.0
"""A first-token time this many times the median of the last five is marked."""


def latencies(reading: Reading, size: Size) -> list[Line]:
    """Time to first token, passes, and what went wrong with requests."""
    snapshot = reading.snapshot
    width = size.width
    room = width - LABEL
    passing = labelled("Passes", _passes(reading, room), width)
    requests = labelled("Requests", _requests(snapshot, room), width)
    return [
        labelled("First token", first_tokens(first_token(reading), room), width),
        *aged(reading, snapshot.throughput.age_s, [passing]),
        *aged(reading, snapshot.requests.age_s, [requests]),
    ]


def queue(reading: Reading, size: Size) -> list[Line]:
    """What waits where, for how long, and why."""
    snapshot = reading.snapshot
    requests, waited = snapshot.requests, snapshot.latency.queue_s
    by_reason = ", ".join(
        f"{shown(figure, fmt.count)} for {clean(reason)}"
        for reason, figure in requests.waiting_by_reason.items()
        if number(figure)
    )
    items = [
        line(f"{shown(held(reading), fmt.count)} held at the gate"),
        line(f"{shown(requests.waiting, fmt.count)} in the engine"),
        line(Span(by_reason, Role.WARN)),
    ]
    if not isinstance(waited, Missing):
        items.append(line(Span(f"waited p95 {shown(waited.p95, fmt.latency)}", Role.MUTED)))
    row = labelled("Queue", flow(items, size.width - LABEL), size.width)
    return aged(reading, requests.age_s, [row])


def first_tokens(first: FirstToken | Figure, width: int) -> Line:
    """The last first-token times with their outliers marked, and the median; or the one kept."""
    if isinstance(first, Missing):
        return gap(first)
    if not isinstance(first, FirstToken):
        where = line(Span("at the gateway", Role.MUTED))
        return flow([line(shown(first, fmt.latency)), where], width)
    middle = median(first.last) if first.last else 0.0
    parts: list[Span] = []
    for seconds in first.last:
        odd = middle > 0 and seconds > _OUTLIER * middle
        text = f"{fmt.rate(seconds)}{'!' if odd else ''} "
        parts.append(Span(text, Role.WARN if odd else Role.TEXT))
    last = line(*parts, "s") if parts else line(Span(DASH, Role.MUTED))
    listed = isinstance(first.p50, Missing) and first.count <= len(first.last)
    p50 = Span("" if listed else f"p50 {_quantile(first.p50)} of {first.count}", Role.MUTED)
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
        line(f"p50 {_quantile(latency.p50)}"),
        line(Span(f"p95 {_quantile(latency.p95)}", Role.MUTED)),
    ]


def _quantile(figure: Figure) -> str:
    """A quantile; beyond the last finite bound of its histogram that bound: `> 80 s`."""
    if isinstance(figure, Missing) and figure.reason.startswith(">"):
        return figure.reason
    return shown(figure, fmt.latency)


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
