"""The newest events of the span that is looked at, each in whole words. Pure."""

from __future__ import annotations

from textual.geometry import Size

from a40console.tui import format as fmt
from a40console.tui.ink import Line, Role, Span, clean, fit, line, width_of, wrap
from a40console.tui.panels.labels import LABEL
from a40console.tui.panels.speed import glyph_of, over, role_of, span_name
from a40console.tui.past import Mark
from a40console.tui.reading import Reading

_ROWS = 8
"""What the newest take of a column that has figures below them."""

_ROWS_EACH = 2
"""An event that takes more rows is cut: the journal has it whole."""


def happened(reading: Reading, size: Size) -> list[Line]:
    """The newest events of the span that is looked at, as many as there are rows for."""
    if size.height < 1:
        return []
    head = Span("Events".ljust(LABEL), Role.LABEL)
    marks = reading.past.visible_marks(reading.view)
    if not marks:
        known = f"nothing in {span_name(reading)}" if reading.past.now_s else fmt.DASH
        return [line(head, Span(known, Role.MUTED))]
    lines: list[Line] = []
    for mark in reversed(marks):
        rows = min(_ROWS_EACH, size.height - len(lines))
        if not rows:
            break
        lines += _told(mark, size.width - LABEL, rows)
    return [line(head if index == 0 else " " * LABEL, entry) for index, entry in enumerate(lines)]


def newest_events(reading: Reading, size: Size) -> list[Line]:
    """The newest events, few enough to leave room below them."""
    return happened(reading, Size(size.width, _ROWS))


def _told(mark: Mark, width: int, rows: int) -> list[Line]:
    """An event behind its time, in no more than so many rows."""
    at = Span(f"{fmt.clock_of(mark.at_s)} ", Role.MUTED)
    head = line(at, Span(f"{glyph_of(mark)} ", role_of(mark)))
    room = max(1, width - width_of(head))
    parts = wrap(f"{mark.text or mark.label}{over(mark)}", room) or [line("")]
    if len(parts) > rows:
        rest = " ".join(span.text for part in parts[rows - 1 :] for span in part)
        parts = [*parts[: rows - 1], fit(line(clean(rest)), room)]
    return [
        line(head if index == 0 else " " * width_of(head), part) for index, part in enumerate(parts)
    ]
