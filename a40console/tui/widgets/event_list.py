"""The journal's entries: a cursor that stays on its entry, and a word when more are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from a40console.model.event import Event
from a40console.tui.ink import Line, Role, Span, line
from a40console.tui.panels import events as panel
from a40console.tui.panels.moments import day_of
from a40console.tui.widgets.cursor_rows import CursorRows

_AHEAD = 20
"""So many entries before the last one the next page is asked for."""


class EventList(CursorRows):
    """Entries, newest first, one a row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "move(-1000000)", "Newest", show=False),
        Binding("G", "move(1000000)", "Oldest", show=False),
    ]

    class EndNeared(Message):
        """The last of the entries is nearly in sight."""

    def __init__(self, unread: Callable[[Event], bool], *, dom_id: str | None = None) -> None:
        super().__init__(dom_id=dom_id)
        self._unread = unread
        self._events: Sequence[Event] = ()
        self._none = ""
        self.now = ""
        """ISO 8601: entries of its day show the time alone."""

    @property
    def chosen(self) -> Event | None:
        """The entry under the cursor."""
        return self._events[self._cursor] if self._cursor < len(self._events) else None

    @property
    def place(self) -> int:
        """How many entries stand above the cursor."""
        return self._cursor

    def show(self, events: Sequence[Event], none: str) -> None:
        """List these entries, newest first; the cursor stays on its entry unless that is the top.

        `none` is said where there are none.
        """
        chosen = self.chosen
        self._events, self._none = events, none
        if chosen is not None and self._cursor > 0:
            place = next((i for i, event in enumerate(events) if event.id == chosen.id), None)
            if place is not None:
                self._top += place - self._cursor
                self._cursor = place
        self._cursor = max(0, min(self._cursor, len(events) - 1))
        self.redraw()
        if self.chosen != chosen:
            self.post_message(self.CursorMoved())

    def redraw(self) -> None:
        """Draw the rows around the cursor."""
        width, height = self.size
        rows = height - 1
        if width < 1 or rows < 1:
            return
        self._top = max(0, min(self._top, len(self._events) - rows, self._cursor))
        self._top = max(self._top, self._cursor - rows + 1)
        self.paint([panel.header(width), *self._rows(width, rows)])
        if self._top + rows + _AHEAD >= len(self._events):
            self.post_message(self.EndNeared())

    def _rows(self, width: int, rows: int) -> list[Line]:
        if not self._events:
            return [line(Span(f"  – {self._none}", Role.MUTED))] if self._none else []
        today = day_of(self.now)
        return [
            panel.row(
                event,
                width,
                unread=self._unread(event),
                here=self._top + index == self._cursor,
                today=today,
            )
            for index, event in enumerate(self._events[self._top : self._top + rows])
        ]

    def on_resize(self) -> None:
        """Draw for the new room."""
        self.redraw()

    def row_count(self) -> int:
        """As many as were shown last."""
        return len(self._events)

    def page_rows(self) -> int:
        """What is in sight, but for a row."""
        return self.size.height - 2

    def on_click(self, event: Click) -> None:
        """Put the cursor on the clicked entry."""
        if event.y >= 1 and self._top + event.y - 1 < len(self._events):
            self.go(self._top + event.y - 1)
