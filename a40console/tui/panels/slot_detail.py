"""Everything known of one request or session: what the drill-in says. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model.figures import Missing, Text, number, ratio
from a40console.model.snapshot import RecentRequest, Slot
from a40console.tui import format as fmt
from a40console.tui.bins import Bins
from a40console.tui.format import shown, unix_seconds
from a40console.tui.ink import Line, Role, Span, flow, line, wrap
from a40console.tui.panels.facts import fact, figure
from a40console.tui.panels.slot_notes import ended_ttft
from a40console.tui.raster import ROW_BARS, area_chart, scale, spark
from a40console.tui.reading import Reading
from a40console.tui.track import Track

_CHART_ROWS = 4
_NAME = 9
_AXIS = 17
"""Cells before the charts: a name, the top of the scale, the axis."""

_APART = 4
"""Cells between what stands on the time axis, both gaps together."""

_LONGEST_GAP_S = 3.0
"""Readings further apart than this are not joined in the charts."""

_UNSEEN = Missing("this console never saw it run")

METHODS = {
    "engine": "by the engine itself, pass by pass: exact",
    "usage": "from the usage that the engine sends with the stream: exact",
    "apportioned": (
        "the engine's exact rate shared out by streamed characters, put right by the final usage: ≈"
    ),
}
"""What each way of counting means."""

_ENDS = {
    "stop": "the model ended its turn",
    "end_turn": "the model ended its turn",
    "tool_use": "the model called a tool: the client has the turn",
    "tool_calls": "the model called a tool: the client has the turn",
    "length": "it reached its token limit",
    "max_tokens": "it reached its token limit",
    "abort": "it was given up: the client closed it, or somebody aborted it",
    "aborted": "it was given up: the client closed it, or somebody aborted it",
    "error": "it failed",
}


def request_detail(reading: Reading, request_id: str, width: int) -> list[Line]:
    """A request, live, finished, or gone without a word."""
    track = reading.past.tracks.get(request_id)
    live = _live(reading, request_id)
    ended = _ended(reading, request_id, track)
    slot = live or (track.slot if track else None)
    told = [] if live or ended is None else _told_phases(ended, width)
    told = told or _phases(track, live is not None, width)
    lines = [*_state(reading, live, ended, width), *told, ()]
    lines += _identity(request_id, slot, ended, width)
    lines += fact("came", _came(reading, live, slot, ended), width)
    lines += [(), *_tokens(slot, ended, live is None, width), (), *_speed(slot, ended, width)]
    if track is not None and len(track) > 1:
        lines += [(), *_charts(track, reading.past.now_s if live else track.seen_s, width)]
    return lines


def _live(reading: Reading, request_id: str) -> Slot | None:
    slots = reading.snapshot.slots
    if isinstance(slots, Missing):
        return None
    return next((slot for slot in slots if slot.request_id == request_id), None)


def _ended(reading: Reading, request_id: str, track: Track | None) -> RecentRequest | None:
    listed = (row for row in reading.snapshot.recent if row.request_id == request_id)
    return next(listed, track.ended if track else None)


def _state(
    reading: Reading, live: Slot | None, ended: RecentRequest | None, width: int
) -> list[Line]:
    if live is not None:
        role = Role.GOOD if live.phase == "decode" else Role.WARN
        age = line(Span(f"for {shown(live.age_s, fmt.duration)} in all", Role.MUTED))
        return [flow([line(Span(f"● {live.phase}", role)), age], width)]
    if ended is None:
        text = "○ gone: the service lists it no more, and how it ended was not told"
        return wrap(text, width, Role.MUTED)
    at_s = unix_seconds(ended.ended_at)
    ago = "" if at_s is None else f", {fmt.age(max(0.0, reading.past.now_s - at_s))} ago"
    reason = fmt.known(ended.finish_reason)
    means = _ENDS.get(reason, "")
    said = f"○ ended at {fmt.clock(ended.ended_at)}{ago}: {reason}"
    return wrap(f"{said} ({means})" if means else said, width, Role.STRONG)


def _told_phases(ended: RecentRequest, width: int) -> list[Line]:
    """The phases by gateway and engine; none where they do not tell when it was begun."""
    phases = {"queue": ended.queue_s, "prefill": ended.prefill_s, "decode": ended.decode_s}
    if number(ended.queue_s) is None:
        return []
    parts = [
        f"{name} {shown(seconds, fmt.spent)}"
        for name, seconds in phases.items()
        if not isinstance(seconds, Missing)
    ]
    return fact("phases", " → ".join(parts) + _in_all(ended), width)


def _in_all(ended: RecentRequest) -> str:
    return "" if isinstance(ended.age_s, Missing) else f", {shown(ended.age_s, fmt.spent)} in all"


def _phases(track: Track | None, live: bool, width: int) -> list[Line]:
    """The phases in which it was seen, to the second that snapshots are apart."""
    if track is None or not track.phases:
        return fact("phases", _UNSEEN, width)
    parts = [
        f"{'' if track.watched or index else '≥ '}{phase.name} {fmt.duration(phase.seconds)}"
        for index, phase in enumerate(track.phases[-6:])
    ]
    if live and track.slot is not None and not parts:
        return []
    return fact("phases", "≈ " + " → ".join(parts), width)


def _identity(
    request_id: str, slot: Slot | None, ended: RecentRequest | None, width: int
) -> list[Line]:
    who = slot or ended
    session = who.session if who else _UNSEEN
    agent = "" if who is None or isinstance(who.agent, Missing) else f"  agent {who.agent}"
    return [
        *fact("request", request_id, width),
        *fact("session", _with(session, agent), width),
        *fact("client", who.client if who else _UNSEEN, width),
        *fact("model", who.model if who else _UNSEEN, width),
    ]


def _with(text: Text, tail: str) -> Text:
    return text if isinstance(text, Missing) or not tail else text + tail


def _came(
    reading: Reading, live: Slot | None, slot: Slot | None, ended: RecentRequest | None
) -> Text:
    """When it came, and by which way where this console saw it run."""
    begin_s = _begin_s(reading, live, ended)
    at = "" if begin_s is None else f"at {fmt.clock_of(begin_s)}"
    if slot is None:
        return at or _UNSEEN
    way = "directly to the engine" if slot.direct else "through the gateway"
    return f"{at} {way}, slot {slot.slot}".lstrip()


def _begin_s(reading: Reading, live: Slot | None, ended: RecentRequest | None) -> float | None:
    """Unix time of its arrival."""
    age_s = number(live.age_s) if live else number(ended.age_s) if ended else None
    end_s = reading.past.now_s if live else unix_seconds(ended.ended_at) if ended else None
    return None if age_s is None or end_s is None else end_s - age_s


def _tokens(slot: Slot | None, ended: RecentRequest | None, over: bool, width: int) -> list[Line]:
    """By the service's last word: of an ended request its own, else the row as it was seen."""
    of = ended if over and ended and (slot is None or number(ended.prompt_tokens)) else slot
    if of is None:
        return [*fact("context", _UNSEEN, width), *figure("generated", _UNSEEN, fmt.count, width)]
    made = ended.generated_tokens if over and ended else of.generated_tokens
    reused = ratio(of.cached_tokens, of.prompt_tokens)
    share = "" if isinstance(reused, Missing) else f" ({shown(reused, fmt.percent)})"
    most = (
        f"  {of.max_tokens.reason}"
        if isinstance(of.max_tokens, Missing)
        else f"  of at most {shown(of.max_tokens, fmt.count)}"
    )
    return [
        *figure("context", of.prompt_tokens, fmt.count, width, " tokens"),
        *figure("reused", of.cached_tokens, fmt.count, width, share),
        *figure("re-read", of.reread_tokens, fmt.count, width),
        *figure("generated", made, fmt.count, width, most),
        *(_progress(slot, over, width) if slot else []),
    ]


def _progress(slot: Slot, over: bool, width: int) -> list[Line]:
    if over or slot.phase != "prefill":
        return []
    return figure("prefilled", slot.prefill_ratio, fmt.percent, width)


def _speed(slot: Slot | None, ended: RecentRequest | None, width: int) -> list[Line]:
    over = ended is not None
    speed = ended.tokens_per_s if ended else slot.tokens_per_s if slot else _UNSEEN
    ttft = ended_ttft(ended) if ended else slot.ttft_s if slot else _UNSEEN
    lines = figure("speed", speed, fmt.rate, width, " tok/s" + (" in all" if over else ""))
    if slot is not None and not over:
        lines += figure("passes", slot.passes_per_s, fmt.tenths, width, " a second")
        lines += figure("tok/pass", slot.tokens_per_pass, fmt.rate, width)
    lines += figure("first token", ttft, fmt.latency, width, " after it came")
    method: Text = slot.method if slot else ended.method if ended else _UNSEEN
    counted = method if isinstance(method, Missing) else METHODS.get(method, method)
    return [*lines, *fact("counted", counted, width)]


def _charts(track: Track, end_s: float, width: int) -> list[Line]:
    """Its speed, passes and tokens a pass over the time that this console watched."""
    cells = max(8, width - _AXIS)
    first_s = next((at_s for at_s, _ in track.speeds()), end_s)
    span_s = max(end_s - first_s, float(cells) / 2)
    speeds = _binned(track.speeds(), end_s, span_s, cells)
    known = [value for value in speeds if value is not None]
    top, _ = scale(max(known, default=0.0))
    drawn = area_chart(speeds, height=_CHART_ROWS, top=top)
    ticks = [f"{fmt.count(top)} ┤", *["│"] * (_CHART_ROWS - 1)]
    lines = [
        line(
            Span(f"{'tok/s' if row == 0 else '':<{_NAME}}", Role.LABEL),
            Span(f"{ticks[row]:>{_AXIS - _NAME}}", Role.RULE),
            *(Span(text, Role.SERIES if crest else Role.RULE) for text, crest in runs),
        )
        for row, runs in enumerate(drawn)
    ]
    for name, values in (("passes/s", track.passes()), ("tok/pass", track.tokens_per_pass())):
        binned = _binned(values, end_s, span_s, cells)
        high = max((value for value in binned if value is not None), default=0.0)
        if high:
            peak = f"{fmt.rate(high)} ┤"
            head = line(
                Span(f"{name:<{_NAME}}", Role.LABEL),
                Span(f"{peak:>{_AXIS - _NAME}}", Role.RULE),
            )
            lines.append(line(head, Span(spark(binned, high, bars=ROW_BARS), Role.SECOND)))
    return [*lines, line(" " * _AXIS, Span(_time_axis(end_s - span_s, end_s, cells), Role.MUTED))]


def _time_axis(begin_s: float, end_s: float, cells: int) -> str:
    """The times of day at both ends, and what lies between; all charts above share them."""
    begin, end = fmt.clock_of(begin_s), fmt.clock_of(end_s)
    span = fmt.duration(end_s - begin_s)
    for said in (f"{span}, as this console saw it", span):
        if len(begin) + len(said) + len(end) + _APART <= cells:
            return f"{begin}{said:^{cells - len(begin) - len(end)}}{end}"
    return span


def _binned(
    values: Iterable[tuple[float, float | None]], end_s: float, span_s: float, cells: int
) -> list[float | None]:
    bins = Bins(span_s / cells)
    before_s, apart_s = None, 1.0
    for at_s, value in values:
        if before_s is not None:
            apart_s = max(apart_s, at_s - before_s)
        bins.add(at_s, value)
        before_s = at_s
    return bins.bridged(end_s, cells, 1.5 * min(apart_s, _LONGEST_GAP_S))
