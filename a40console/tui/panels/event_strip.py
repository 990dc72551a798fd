"""The day's strip on the events screen: speed over 24 hours, and where what happened lies on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from a40console.model.control import HistoryPoint
from a40console.model.event import NOTE_KIND, Event, gravity
from a40console.model.instants import unix_s
from a40console.tui import format as fmt
from a40console.tui.bins import Bins
from a40console.tui.engine_kinds import kinds, value_of
from a40console.tui.format import DASH
from a40console.tui.ink import Line, Role, Span, line, rule
from a40console.tui.panels.events import mark_of
from a40console.tui.panels.findings import GLYPHS
from a40console.tui.raster import area_chart, spark
from a40console.tui.time_axis import cell_of, ruled, ticks

DAY_S = 86_400.0
_NOTE_GRAVITY = gravity("info") + 0.5
"""Between what only happened and a warning."""

_EDGE = 1
_FEWEST_CELLS = 24


def strip_heading(points: Sequence[HistoryPoint], events: Sequence[Event], width: int) -> Line:
    """What the strip shows, and how many entries of which severity lie on it."""
    drawn = kinds(points)
    peaks = [_fastest(point, simulated=drawn.simulated) for point in points]
    known = [peak for peak in peaks if peak is not None]
    peak = f", peak {fmt.rate(max(known))}" if known else ""
    counts = [(word, sum(event.severity == word for event in events)) for word in ("error", "warn")]
    tail = [Span(fmt.plural(len(events), "event"), Role.MUTED)]
    for word, number_of in counts:
        if number_of:
            glyph, role = GLYPHS[word]
            tail += [Span("  "), Span(f"{glyph} {fmt.count(number_of)} {word}", role)]
    said = drawn.words(labelled=False)
    title = line(
        Span("Last 24 h", Role.LABEL),
        Span(f"  gen tok/s{peak}, and what happened", Role.MUTED),
        Span(f"  {said}" if said else "", Role.WARN),
    )
    return rule(title, width, line(*tail))


def _fastest(point: HistoryPoint, *, simulated: bool) -> float | None:
    """The highest speed within the point's span; None for an engine of the other kind."""
    peak = value_of(point, "generation_peak_tokens_per_s", simulated=simulated)
    speed = value_of(point, "generation_tokens_per_s", simulated=simulated)
    return speed if peak is None else peak


def strip(
    points: Sequence[HistoryPoint],
    events: Iterable[Event],
    *,
    now_s: float,
    chosen_s: float | None,
    width: int,
    rows: int,
) -> list[Line]:
    """Speed over the last 24 h in `rows` rows, below it where the entries lie, and the hours."""
    cells = width - 2 * _EDGE
    if cells < _FEWEST_CELLS or rows < 1:
        return []
    return [
        *_speed(points, now_s, cells, rows),
        line(" " * _EDGE, *_marks(events, now_s, cells)),
        line(" " * _EDGE, *_hours(now_s, chosen_s, cells)),
    ]


def _speed(points: Sequence[HistoryPoint], now_s: float, cells: int, rows: int) -> list[Line]:
    bins, drawn = Bins(DAY_S / cells), kinds(points)
    for point in points:
        bins.add(point.at_s, _fastest(point, simulated=drawn.simulated))
    values = bins.values(now_s, cells, "highest")
    top = max((value for value in values if value is not None), default=0.0)
    if all(value is None for value in values):
        said = line(Span(f"{DASH} no speed was recorded in the last 24 h", Role.MUTED))
        return [line(" ", said), *[line("")] * (rows - 1)]
    if rows == 1:
        return [line(" " * _EDGE, Span(spark(values), Role.SERIES))]
    return [
        line(
            " " * _EDGE,
            *(Span(text, Role.SERIES if crest else Role.SPARK) for text, crest in runs),
        )
        for runs in area_chart(values, height=rows, top=max(top, 1.0))
    ]


def _cell(at_s: float, now_s: float, cells: int) -> int | None:
    """The cell of an instant on the strip; None before its begin."""
    since_s = now_s - DAY_S
    within = since_s <= at_s < now_s + DAY_S / cells
    return cell_of(at_s, since_s, now_s, cells) if within else None


def _marks(events: Iterable[Event], now_s: float, cells: int) -> Iterable[Span]:
    """The gravest entry of each cell."""
    gravest: dict[int, Event] = {}
    for event in events:
        at_s = unix_s(event.at)
        cell = _cell(at_s, now_s, cells) if at_s is not None else None
        if cell is None:
            continue
        known = gravest.get(cell)
        if known is None or _gravity(event) > _gravity(known):
            gravest[cell] = event
    for cell in range(cells):
        if cell in gravest:
            yield Span(*mark_of(gravest[cell]))
        else:
            yield Span(" ")


def _gravity(event: Event) -> float:
    return _NOTE_GRAVITY if event.kind == NOTE_KIND else gravity(event.severity)


def _hours(now_s: float, chosen_s: float | None, cells: int) -> Iterable[Span]:
    """The axis: full hours, now, and the chosen entry's place."""
    drawn = ruled(ticks(now_s - DAY_S, now_s, cells), cells, labelled=True)
    here = _cell(chosen_s, now_s, cells) if chosen_s is not None else None
    if here is not None:
        drawn[here] = ("▲", Role.KEY)
    return (Span(letter, role) for letter, role in drawn)
