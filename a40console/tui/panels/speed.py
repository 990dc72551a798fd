"""Speed over the span that is looked at, with what happened on its time axis."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size

from a40console.model.figures import Missing, number
from a40console.tui import format as fmt
from a40console.tui.format import shown
from a40console.tui.ink import Line, Role, Span, clean, flow, line, rule, width_of
from a40console.tui.panels.findings import GLYPHS
from a40console.tui.past import Mark
from a40console.tui.raster import ROW_BARS, area_chart, scale, spark
from a40console.tui.reading import Reading
from a40console.tui.time_axis import cell_of, clock_span, labels, ruled, ticks

AXIS = 9
"""Cells before the charts: tick labels, names, and the axis."""

TAIL = 8
"""Cells behind the charts, for one figure."""

_GENERATION = "generation_tokens_per_s"
_PEAK = "generation_peak_tokens_per_s"
_TIME_KEYS = (
    ("time.shorter", ""),
    ("time.longer", "span"),
    ("time.back", ""),
    ("time.forward", ""),
)


def cells_of(width: int) -> int:
    """Cells of time in a chart of that width."""
    return max(0, width - AXIS - TAIL)


def speed_chart(reading: Reading, size: Size) -> list[Line]:
    """Generation tokens per second, the axis with its events, and the clock times."""
    width, height = size
    cells, rows = cells_of(width), height - 2
    if cells < 4 or rows < 2:
        return []
    values = reading.past.series(_GENERATION, reading.view, cells)
    known = [value for value in values if value is not None]
    if not known:
        blank = [line("")] * (rows // 2)
        reason = line(" " * AXIS, Span(f"{fmt.DASH} {why_nothing(reading)}", Role.MUTED))
        body = [*blank, reason, *[line("")] * (rows - 1 - len(blank))]
    else:
        point = reading.past.point_at(reading.view)
        body = _plot(values, rows, number(point.generation_tokens_per_s) if point else None)
    if not reading.past.now_s:
        return body
    axis = line(Span(f"{'0 ┼':>{AXIS}}", Role.RULE), _axis(reading, cells))
    window = reading.view.window(reading.past.now_s)
    times = labels(ticks(*window, cells), cells)
    return [*body, axis, line(" " * AXIS, Span(times, Role.MUTED))]


def _plot(values: Sequence[float | None], rows: int, last: float | None) -> list[Line]:
    """The area, its ticks, and the last value beside its end."""
    known = [value for value in values if value is not None]
    top, step = scale(max(known))
    names = _tick_rows(top, step, rows)
    at = None if last is None else max(0, min(rows - 1, int((1 - last / top) * rows)))
    return [
        line(
            Span(names.get(y, " " * (AXIS - 1) + "│"), Role.RULE),
            *(Span(text, Role.SERIES if crest else Role.RULE) for text, crest in runs),
            Span(f"◂{fmt.rate(last or 0.0)}"[:TAIL] if y == at else "", Role.STRONG),
        )
        for y, runs in enumerate(area_chart(values, height=rows, top=top))
    ]


def why_nothing(reading: Reading) -> str:
    """Why the span that is looked at is empty."""
    timeline, past = reading.past.timeline, reading.past
    if reading.stale or timeline.trouble:
        return timeline.trouble or "no service answers"
    _, end_s = reading.view.window(past.now_s)
    oldest_s = number(timeline.oldest_s)
    if oldest_s is not None and end_s < oldest_s:
        return "nothing so old is kept"
    if past.speed and timeline.needed(reading.view, past.now_s, past.known_from_s):
        return "being fetched"
    return f"no speed was measured in {span_name(reading)}"


def span_name(reading: Reading) -> str:
    """The span as it is called: `15 min`, `24 h`."""
    span_s = reading.view.span_s
    return f"{span_s / 60:.0f} min" if span_s < 3600 else f"{span_s / 3600:.0f} h"


def speed_heading(reading: Reading, size: Size) -> list[Line]:
    """The rule above the chart: what it draws, over which span, its peak, and the keys of time."""
    cells = cells_of(size.width)
    highest = peak_of(reading, cells)
    peak = "" if highest is None else f", peak {fmt.rate(highest)}"
    when = span_name(reading)
    if not reading.view.live:
        now_s = reading.past.now_s
        when = clock_span(*reading.view.window(now_s), now_s)
    title = line(
        Span("Speed", Role.LABEL), Span(f"  tok/s, {when}{peak}", Role.MUTED), *_kinds(reading)
    )
    keys = _keys(reading)
    room = size.width - width_of(title) - 7
    return [rule(title, size.width, keys if width_of(keys) <= room else line(""))]


def _kinds(reading: Reading) -> Line:
    """Whether what is drawn is SIMULATED, and which history is left out."""
    drawn = reading.past.kind(reading.view)
    said = drawn.words(labelled=reading.snapshot.simulated)
    return line(Span(f"  {said}", Role.WARN)) if said else ()


def peak_of(reading: Reading, cells: int) -> float | None:
    """The highest speed of any second in the span that is looked at; None where none is known.

    Args:
        reading: What is shown.
        cells: Of the chart or spark that it stands with.
    """
    series = (
        reading.past.series(name, reading.view, cells, "highest") for name in (_PEAK, _GENERATION)
    )
    return max((value for values in series for value in values if value is not None), default=None)


def _keys(reading: Reading) -> Line:
    """The keys that move through time, each of them a button too."""
    spans: list[Span] = []
    for command_id, word in _TIME_KEYS:
        key = reading.keymap.hint(command_id)
        if key:
            click = f"app.command('{command_id}')"
            spans += [Span(key, Role.KEY, click), Span(f" {word} " if word else " ", Role.MUTED)]
    return line(*spans[:-1], spans[-1]._replace(text=spans[-1].text.rstrip())) if spans else ()


def _tick_rows(top: float, step: float, rows: int) -> dict[int, str]:
    """Tick labels by row, from the top down; zero is written on the axis."""
    names: dict[int, str] = {}
    value = top
    while value > step / 2:
        row = int((1 - value / top) * rows)
        names.setdefault(row, f"{_tick(value) + ' ┤':>{AXIS}}")
        value -= step
    return names


def _tick(value: float) -> str:
    return fmt.count(value) if value >= 10 or value == round(value) else f"{value:g}"


def _axis(reading: Reading, cells: int) -> Line:
    """The time axis: a tick over each clock time, a mark and a word where something happened."""
    since_s, end_s = reading.view.window(reading.past.now_s)
    drawn = ruled(ticks(since_s, end_s, cells), cells)
    marks = reading.past.visible_marks(reading.view)
    places = [(mark, cell_of(mark.at_s, since_s, end_s, cells)) for mark in marks]
    for mark, at in places:
        drawn[at] = (glyph_of(mark), role_of(mark))
    taken = {at for _, at in places}
    for mark, at in sorted(places, key=lambda place: (_rank(place[0]), -place[0].at_s)):
        word = clean(mark.label)
        for start in (at + 1, at - len(word)):
            room = range(start - (start < at), start + len(word) + (start > at))
            if start >= 0 and start + len(word) <= cells and taken.isdisjoint(room):
                drawn[start : start + len(word)] = [(letter, role_of(mark)) for letter in word]
                taken.update(room)
                break
    return line(*(Span(letter, role) for letter, role in drawn))


def _rank(mark: Mark) -> int:
    """Whose words come first where there is room for few: the operator's, then what went wrong."""
    return 0 if mark.note else {"error": 1, "warn": 2}.get(mark.severity, 3)


def glyph_of(mark: Mark) -> str:
    """A note is told from what happened by itself."""
    return "◆" if mark.note else GLYPHS.get(mark.severity, GLYPHS["error"])[0]


def over(mark: Mark) -> str:
    """Said behind what lasted and has ended."""
    return ", over" if mark.over else ""


def role_of(mark: Mark) -> Role:
    """How gravely a mark is drawn."""
    if mark.note:
        return Role.KEY
    return {"info": Role.MUTED, "warn": Role.WARN}.get(mark.severity, Role.BAD)


def compact_speed(reading: Reading, width: int) -> Line:
    """The chart's stand-in on a small screen: a spark, its peak and the last event that holds."""
    view, past = reading.view, reading.past
    kind = past.kind(view).words(labelled=reading.snapshot.simulated)
    cells = max(10, width - 36 - len(kind))
    values, highest = past.series(_GENERATION, view, cells), peak_of(reading, cells)
    if highest is None:
        return line(Span(f"{fmt.DASH} {why_nothing(reading)}", Role.MUTED))
    marks = [mark for mark in past.visible_marks(view) if not mark.over]
    last = (
        line(Span(f"{glyph_of(marks[-1])} {clean(marks[-1].label)}", Role.MUTED))
        if marks
        else line("")
    )
    told = (kind, span_name(reading), f"peak {fmt.rate(highest)}")
    peak = ", ".join(part for part in told if part)
    drawn = Span(spark(values, bars=ROW_BARS), Role.SERIES)
    return flow([line(drawn), line(peak), last], width)


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
