"""What happened while the operator was away, from what was recorded. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from a40console.model.control import Digest, EngineStart, FindingSpan, History, HistoryPoint
from a40console.model.event import NOTE_KIND, Event, Severity
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.instants import unix_s
from a40console.service.finding_log import BEGAN, ENDED
from a40console.service.spending import generated
from a40console.service.tally import Tally

LASTS = Missing("it lasts")
NO_GAP = Missing("the speed was known all the time")
NO_SPEED = Missing("no speed was recorded")
NOT_COUNTED = Missing("nothing was recorded: the service did not run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What is looked back on."""

    since_s: float
    until_s: float
    since_event: int
    until_event: int
    complete: bool
    """Whether all records reach back to its begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What was recorded in the window."""

    events: Sequence[Event]
    """Oldest first; where there are more than fit, the window is not complete."""

    starts: Sequence[EngineStart]
    """Every start that is known, newest first."""

    counted_since_s: float
    """Begin of the tally."""

    tally: Tally
    usd: Figure
    history: History


def digest(window: Window, records: Records) -> Digest:
    """The digest of a window."""
    tally, events = records.tally, records.events
    count = partial(_counted, seen=tally.observed_s > 0, exact=_begins_there(window, records))
    gap_s, gap_at_s = _longest_gap(records.history)
    peak, peak_at_s = _peak(records.history.points)
    oldest_first = tuple(reversed(records.starts))
    return Digest(
        since_s=window.since_s,
        until_s=window.until_s,
        counted_since_s=records.counted_since_s,
        since_event=window.since_event,
        until_event=window.until_event,
        complete=window.complete,
        starts=tuple(
            one for one in oldest_first if (unix_s(one.started_at) or 0.0) >= window.since_s
        ),
        ends=tuple(sorted((one for one in oldest_first if _ended(one, window)), key=_ended_s)),
        findings=_findings(events),
        notes=tuple(event for event in events if event.kind == NOTE_KIND),
        warnings=_count(events, "warn"),
        errors=_count(events, "error"),
        requests_finished=count(tally.finished),
        requests_failed=count(tally.failed),
        requests_aborted=count(tally.aborted),
        generated_tokens=count(generated(tally)),
        busy_s=count(round(tally.busy_s, 1)),
        usd_spent=records.usd,
        longest_gap_s=gap_s,
        longest_gap_at_s=gap_at_s,
        peak_tokens_per_s=peak,
        peak_at_s=peak_at_s,
        simulated=any(point.simulated for point in records.history.points)
        or any(one.simulated and _within(one, window) for one in oldest_first),
    )


def _begins_there(window: Window, records: Records) -> bool:
    """Whether the sums begin with the window, to the second."""
    return window.since_s - records.counted_since_s < 1.0


def _counted(figure: Figure, *, seen: bool, exact: bool) -> Figure:
    """A sum; estimated where it may hold what came just before the window."""
    if not seen:
        return NOT_COUNTED
    value = number(figure)
    return figure if exact or not value else Estimated(value)


def _count(events: Iterable[Event], severity: Severity) -> int:
    return sum(event.severity == severity for event in events)


def _within(start: EngineStart, window: Window) -> bool:
    """Whether it was started or ended in the window."""
    return (unix_s(start.started_at) or 0.0) >= window.since_s or _ended(start, window)


def _ended(start: EngineStart, window: Window) -> bool:
    return not isinstance(start.end, Missing) and _ended_s(start) >= window.since_s


def _ended_s(start: EngineStart) -> float:
    """When it ended; 0 where nobody saw it."""
    return 0.0 if isinstance(start.ended_at, Missing) else unix_s(start.ended_at) or 0.0


def _findings(events: Iterable[Event]) -> tuple[FindingSpan, ...]:
    """What came or went: the end of one that began before the window names its begin."""
    spans: list[FindingSpan] = []
    open_spans: dict[str, int] = {}
    for event in events:
        code = event.data.get("code", "")
        if event.kind == BEGAN:
            open_spans[code] = len(spans)
            spans.append(
                FindingSpan(
                    code=code,
                    severity=event.severity,
                    title=event.text,
                    began_at=event.at,
                    ended_at=LASTS,
                )
            )
        elif event.kind == ENDED:
            place = open_spans.pop(code, None)
            span = _closed(event, spans[place] if place is not None else None)
            if place is None:
                spans.append(span)
            else:
                spans[place] = span
    return tuple(sorted(spans, key=lambda span: span.began_at))


def _closed(event: Event, began: FindingSpan | None) -> FindingSpan:
    data = event.data
    severities: dict[str, Severity] = {"warn": "warn", "error": "error"}
    return FindingSpan(
        code=data.get("code", ""),
        severity=began.severity if began else severities.get(data.get("severity", ""), "info"),
        title=began.title if began else data.get("title", event.text),
        began_at=began.began_at if began else data.get("began", event.at),
        ended_at=event.at,
    )


def _longest_gap(history: History) -> tuple[Figure, Figure]:
    """The longest run of spans of which the speed was not known, and when it began.

    A span that was known in part may hold a piece of the gap beside it: seconds are exact only
    where each span is one.
    """
    longest_s = begin_s = run_s = 0.0
    run_begin_s: float | None = None
    for point in history.points:
        unknown_s = (1.0 - point.known_ratio) * history.step_s
        if run_begin_s is None and unknown_s > 0:
            run_begin_s = point.at_s
        run_s = run_s + unknown_s if unknown_s > 0 else 0.0
        if run_s > longest_s and run_begin_s is not None:
            longest_s, begin_s = run_s, run_begin_s
        if point.known_ratio > 0:
            run_begin_s, run_s = (point.at_s, unknown_s) if unknown_s > 0 else (None, 0.0)
    if not history.points:
        return NO_SPEED, NO_SPEED
    if longest_s == 0.0:
        return NO_GAP, NO_GAP
    exact = history.step_s <= 1.0
    return (longest_s if exact else Estimated(round(longest_s, 1))), begin_s


def _peak(points: Iterable[HistoryPoint]) -> tuple[Figure, Figure]:
    known = [
        (speed, point)
        for point in points
        if (speed := number(point.generation_peak_tokens_per_s)) is not None
    ]
    if not known:
        return NO_SPEED, NO_SPEED
    _, point = max(known, key=lambda pair: pair[0])
    return point.generation_peak_tokens_per_s, point.at_s
