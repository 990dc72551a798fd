"""The table of live requests: a cursor, the rows around it, and why a figure is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.events import Click
from textual.geometry import Size

from a40console.model.figures import Missing, number
from a40console.tui.ink import Line, Role, Span, faded, line
from a40console.tui.panels import slots
from a40console.tui.panels.recent_events import happened
from a40console.tui.panels.resting import resting, serves
from a40console.tui.panels.slot_columns import CURSOR, Layout, layout
from a40console.tui.panels.slot_notes import row_notes
from a40console.tui.reading import Reading
from a40console.tui.widgets.cursor_rows import CursorRows
from a40console.tui.widgets.lines import Panel

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_PAGE_ROWS = 10


class SlotTable(Panel, CursorRows):
    """Live requests, one a row; the cursor stays on its request when others come and go."""

    app: ConsoleApp

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(lambda reading, size: [], notes=self._row_notes, dom_id=dom_id)
        self._key = ""
        self._rows: list[slots.Row] = []
        self._places: list[int | None] = []
        """The row that each visible line belongs to."""

    def compose_lines(self, reading: Reading) -> list[Line]:
        """The header, the rows around the cursor, and the sum."""
        size = self.size
        if size.height < 3:
            return []
        form = layout(size.width)
        self._rows = slots.rows(reading)
        self._places = []
        idle = not serves(reading.snapshot) and not any(map(slots.is_live, self._rows))
        if reading.view.live and idle:
            self._rows = []
            told = resting(reading, size.width)
            return faded(told) if reading.stale else told
        self._follow_cursor()
        table = [slots.header(form), *self._body(reading, form, size.height - 1)]
        spare = size.height - len(table)
        if form.short and spare > 0:
            told = happened(reading, Size(size.width - CURSOR, spare))
            table += [line(" " * CURSOR, entry) for entry in told]
        return faded(table) if reading.stale else table

    def rows_wanted(self, reading: Reading) -> tuple[int, int]:
        """How many rows it would fill with what is live, and with what finished too.

        Header and sum are among them.
        """
        rows = slots.rows(reading)
        live = sum(map(slots.is_live, rows))
        if not live and reading.view.live and not serves(reading.snapshot):
            told = len(resting(reading, self.size.width or 80)) + 1
            return told, told
        finished = len(rows) - live
        return max(1, live) + 2, max(1, live) + 2 + finished

    def _body(self, reading: Reading, form: Layout, room: int) -> list[Line]:
        """Live rows, their sum, finished rows; where room is short, the rows around the cursor.

        The sum is always there. `_places` is filled beside the lines: the row each belongs to.
        """
        live = sum(map(slots.is_live, self._rows))
        head = min(max(live, 1), room - 1)
        tail = max(0, room - head - 1)
        above = self._window(0, live, head)
        below = self._window(live, len(self._rows), tail)
        if live > head and self._cursor >= live:
            above, below = self._window(0, len(self._rows), head), range(0)
        hidden = len(self._rows) - len(above) - len(below)
        total = slots.sum_line(reading, form, hidden=hidden)
        lines = [self._row(index, form, reading) for index in above] or [self._nothing(reading)]
        self._places = [*above] if above else [None]
        if below:
            self._places += [None, *below]
            return [*lines, total, *(self._row(index, form, reading) for index in below)]
        return [*lines, total]

    def _window(self, first: int, end: int, room: int) -> range:
        """As many rows as there is room for, the cursor's among them if it is in that part."""
        shown = min(room, end - first)
        top = max(first, min(self._top, end - shown))
        if first <= self._cursor < end and shown:
            top = max(min(top, self._cursor), self._cursor - shown + 1)
            self._top = top
        return range(top, top + shown)

    def _row(self, index: int, form: Layout, reading: Reading) -> Line:
        mark = "▸ " if index == self._cursor else "  "
        role = Role.KEY if self.has_focus else Role.MUTED
        return line(Span(mark, role), slots.draw(self._rows[index], form, reading))

    @staticmethod
    def _nothing(reading: Reading) -> Line:
        if not reading.view.live:
            return line(Span(f"  {_what_ran(reading)}", Role.MUTED))
        known = reading.snapshot.slots
        if isinstance(known, Missing):
            return line(Span(f"  – {known.reason}", Role.MUTED))
        return line(Span("  no request is running", Role.MUTED))

    @property
    def row_under_cursor(self) -> slots.Row | None:
        """The row that the cursor is on; None in an empty table."""
        return self._rows[self._cursor] if self._rows else None

    def _follow_cursor(self) -> None:
        """Keep the cursor on its row; where that is gone, on the same place."""
        keys = [slots.key_of(row) for row in self._rows]
        stays = self._cursor < len(keys) and keys[self._cursor] == self._key
        if self._key in keys and not stays:
            self._cursor = keys.index(self._key)
        self._cursor = max(0, min(self._cursor, len(keys) - 1))
        self._key = keys[self._cursor] if keys else ""

    def row_count(self) -> int:
        """As many as the last reading had."""
        return len(self._rows)

    def page_rows(self) -> int:
        """Few: live and finished rows are in sight by parts."""
        return _PAGE_ROWS

    def remember(self) -> None:
        """By the row's key."""
        self._key = slots.key_of(self._rows[self._cursor])

    def redraw(self) -> None:
        """Draw the last reading again."""
        if self._reading is not None:
            self.show(self._reading)

    def on_click(self, event: Click) -> None:
        """Put the cursor on the clicked row."""
        place = self._places[event.y - 1] if 1 <= event.y <= len(self._places) else None
        if place is None:
            return
        if place == self._cursor:
            self.app.action_command("slot.show")
        else:
            self.go(place)

    def _row_notes(self, reading: Reading) -> str:
        if not self._rows:
            return ""
        return row_notes(self._rows[self._cursor])


def _what_ran(reading: Reading) -> str:
    """What the history knows of the requests at the instant that is looked at."""
    running = reading.snapshot.requests.running
    if isinstance(running, Missing):
        return f"– {running.reason}"
    if not number(running):
        return "no request was running"
    return "– what ran is not kept one by one; below, what ended in this span"
