"""The rows of the overview's table: live requests and the sessions whose client has the turn."""

from __future__ import annotations

from datetime import datetime, timedelta

from a40console.model.figures import Figure, Missing, number, total
from a40console.model.snapshot import RecentRequest, Session, Slot, Snapshot
from a40console.tui import format as fmt
from a40console.tui.format import DASH, known, shown
from a40console.tui.ink import Line, Role, Span, clean, fit, line, pad, width_of
from a40console.tui.panels.session_words import row_name
from a40console.tui.panels.slot_cells import cell, finished
from a40console.tui.panels.slot_cells import values as values_of
from a40console.tui.panels.slot_columns import CURSOR, Layout
from a40console.tui.past import Past, session_key
from a40console.tui.raster import ROW_BARS, gauge, spark
from a40console.tui.reading import Reading

Row = Slot | Session | RecentRequest

_TOO_OLD_S = 3600.0
_LONGEST_TOOL = 24
_LEAST_VERDICT = 12
"""Cells below which the words on the sum are cut to their mark."""

_LEAST_BAR = 4
"""Cells below which a bar says less than its figure alone."""

_PHASE_ROLES = {
    "decode": Role.GOOD,
    "prefill": Role.SERIES,
    "queued": Role.WARN,
    "held": Role.WARN,
    "idle": Role.MUTED,
}


def is_live(row: Row) -> bool:
    """Whether the row is a request or a client of now, not one that finished."""
    return not isinstance(row, RecentRequest)


def rows(reading: Reading) -> list[Row]:
    """Live requests and waiting clients in the order they first appeared, then what finished.

    Of the past only what finished is known one by one.
    """
    if not reading.view.live:
        return list(reading.past.ended_within(reading.view))
    snapshot = reading.snapshot
    slots = () if isinstance(snapshot.slots, Missing) else snapshot.slots
    busy = {slot.session for slot in slots if not isinstance(slot.session, Missing)}
    waiting = [session for session in _sessions(snapshot) if session.session not in busy]
    live: list[Slot | Session] = [*slots, *waiting]
    placed = sorted(live, key=lambda row: (_is_idle(row), _place(row, reading.past)))
    return [*placed, *sorted(snapshot.recent, key=lambda done: done.ended_at, reverse=True)]


def _sessions(snapshot: Snapshot) -> tuple[Session, ...]:
    if isinstance(snapshot.sessions, Missing):
        return ()
    return tuple(
        session
        for session in snapshot.sessions
        if session.phase == "client" and (number(session.phase_s) or 0.0) < _TOO_OLD_S
    )


def _is_idle(row: Slot | Session) -> bool:
    return isinstance(row, Slot) and row.phase == "idle"


def _place(row: Slot | Session, past: Past) -> int:
    track = past.tracks.get(key_of(row))
    return track.place if track else 0


def key_of(row: Row) -> str:
    """What identifies the row from one snapshot to the next."""
    match row:
        case Slot():
            return row.request_id
        case Session():
            return session_key(row)
        case RecentRequest():
            return f"finished {row.request_id}"


def header(form: Layout, title: Role = Role.LABEL) -> Line:
    """The column titles."""
    cells = [cell(column.title, column) for column in form.columns]
    gaps = [" " * len(column.gap) for column in form.columns]
    if not form.short:
        gaps = [
            column.gap if column.name == "pair" else gap
            for column, gap in zip(form.columns, gaps, strict=True)
        ]
    return line(
        " " * CURSOR,
        *(Span(gap + cell, title) for gap, cell in zip(gaps, cells, strict=True)),
    )


def draw(row: Row, form: Layout, reading: Reading) -> Line:
    """One row without its cursor."""
    match row:
        case Slot():
            return _slot(row, form, reading.past)
        case Session():
            return _client_turn(row, form)
        case RecentRequest():
            return finished(row, form, reading.past.tracks.get(row.request_id))


def _slot(slot: Slot, form: Layout, past: Past) -> Line:
    values = values_of(slot, form, past.tracks.get(slot.request_id))
    roles = {"phase": _PHASE_ROLES[slot.phase], "speed": Role.STRONG, "spark": Role.SPARK}
    progress = number(slot.prefill_ratio) if slot.phase == "prefill" else None
    parts: list[Span] = []
    for column in form.columns:
        if progress is not None and column.name == "speed":
            parts.append(Span(_progress(slot.prefill_ratio, form), Role.SECOND))
        if progress is not None and column.name in {"speed", "pair", "spark"}:
            continue
        if column.name == "spark":
            values["spark"] = _spark(slot, column.width, past)
        gap = column.gap if values["speed"] != DASH else " " * len(column.gap)
        parts.append(Span(gap, Role.MUTED))
        text = cell(values.get(column.name, ""), column)
        parts.append(Span(text, roles.get(column.name, Role.TEXT)))
    return line(*parts)


def _progress(ratio: Figure, form: Layout) -> str:
    """The prefill's bar, in place of the columns that a prefill has no figures for."""
    room = sum(len(c.gap) + c.width for c in form.columns if c.name in {"speed", "pair", "spark"})
    share = shown(ratio, fmt.percent)
    mark = "≈" if share.startswith(fmt.ESTIMATE) else " "
    width = max(0, min(20, room - 10))
    if width < _LEAST_BAR:
        return share.rjust(room)
    text = f"  {mark} {gauge(number(ratio) or 0.0, width)} {share.lstrip(fmt.ESTIMATE)}"
    return text.ljust(room)[:room]


def _spark(slot: Slot, width: int, past: Past) -> str:
    """The last minute on a scale that all rows share: the fast one is seen at a glance."""
    track = past.tracks.get(slot.request_id)
    if track is None:
        return ""
    return spark(track.spark(past.now_s, width), past.highest_slot_speed, bars=ROW_BARS)


def _client_turn(session: Session, form: Layout) -> Line:
    """A session that waits for its client: the tool that runs there, and since when."""
    name = clean(known(session.tool, ""))
    short = name if len(name) <= _LONGEST_TOOL else f"{name[: _LONGEST_TOOL - 1]}…"
    tool = f": {short} running" if name else ""
    text = f"client's turn{tool} {shown(session.phase_s, fmt.age)}"
    hit = (
        ""
        if isinstance(session.hit_ratio, Missing)
        else (f"   {session.turns} turns, {shown(session.hit_ratio, fmt.percent)} reused")
    )
    names = [column.name for column in form.columns]
    head: list[Span] = []
    for column in form.columns[: names.index("phase")]:
        value = row_name(session.session) if column.name == "session" else known(session.client)
        head.append(Span(column.gap + cell(clean(value), column)))
    start = line(*head)
    body = line(start, Span(" " + clean(text) + hit, Role.MUTED))
    return fit(body, form.width - CURSOR)


def sum_line(reading: Reading, form: Layout, *, hidden: int = 0) -> Line:
    """What waits where, and whether the slots add up to the engine's own counter.

    The sum stands under the column that it adds up. Rows that have no room are counted here.
    """
    if not reading.view.live:
        return _then(reading, form)
    requests = reading.snapshot.requests
    held = f"gate {requests.held}" if form.short else f"held at gate {requests.held}"
    queued = shown(requests.waiting, fmt.count)
    queue = f"queue {queued}" if form.short else f"queued in engine {queued}"
    added, verdict = _check(reading.snapshot)
    room = form.end_of("speed") - width_of(added)
    more = f"… {fmt.plural(hidden, 'more row')}   " if hidden else ""
    left = pad(
        line(Span("  "), Span(more, Role.LABEL), Span(f"{held}   {queue}", Role.MUTED)), room
    )
    rest = form.width - width_of(left) - width_of(added)
    if width_of(verdict) > rest:
        verdict = fit(verdict, rest) if rest >= _LEAST_VERDICT else _mark(verdict)
    return line(left, added, verdict)


def _mark(verdict: Line) -> Line:
    """The glyph that a verdict begins with, where there is no room for its words."""
    return line(verdict[0]._replace(text=verdict[0].text[:2])) if verdict else verdict


def _then(reading: Reading, form: Layout) -> Line:
    """What the history kept of the instant that is looked at."""
    snapshot = reading.snapshot
    requests, speed = snapshot.requests, snapshot.throughput
    return fit(
        line(
            Span("  "),
            Span(f"at {fmt.clock(snapshot.at)}   ", Role.LABEL),
            Span("SIMULATED   " if snapshot.simulated else "", Role.WARN),
            f"{shown(requests.running, fmt.plain)} running   ",
            f"{shown(requests.waiting, fmt.count)} queued   ",
            Span(shown(speed.generation_tokens_per_s, fmt.rate), Role.STRONG),
            " tok/s",
        ),
        form.width,
    )


def _check(snapshot: Snapshot) -> tuple[Line, Line]:
    """Σ of the slots over the window, and how it compares with the engine's counter."""
    if isinstance(snapshot.slots, Missing):
        return line(f"Σ {DASH}"), line(Span(f" {clean(snapshot.slots.reason)}", Role.MUTED))
    figures = [slot.window_tokens_per_s for slot in snapshot.slots]
    counted = [figure for figure in figures if not isinstance(figure, Missing)]
    added = total(counted) if counted else 0
    uncounted = len(figures) - len(counted)
    note = f" ({fmt.plural(uncounted, 'row')} not counted)" if uncounted else ""
    verdict = _against_counter(number(added) or 0.0, snapshot)
    return line(f"Σ {shown(added, fmt.rate)}"), line(verdict, Span(note, Role.MUTED))


def _against_counter(added: float, snapshot: Snapshot) -> Line:
    counter = number(snapshot.throughput.generation_tokens_per_s)
    if counter is None:
        return line(Span(f" counter {DASH}", Role.MUTED))
    gap = counter - added
    if abs(gap) <= max(1.0, 0.01 * counter):
        return line(Span(" ✓ counter", Role.GOOD))
    if gap > 0 and _ended_in_window(snapshot):
        return line(Span(f" + ≈{fmt.rate(gap)} just ended", Role.MUTED))
    word = "not in a row" if gap > 0 else "too many"
    text = f" ≠ counter {fmt.rate(counter)}: {fmt.rate(abs(gap))} {word}"
    return line(Span(text, Role.WARN))


def _ended_in_window(snapshot: Snapshot) -> bool:
    """Whether a request ended so lately that the counter's window still holds its tokens."""
    now = datetime.fromisoformat(snapshot.at)
    window = timedelta(seconds=snapshot.throughput.window_s + snapshot.interval_s)
    return any(now - datetime.fromisoformat(row.ended_at) <= window for row in snapshot.recent)
