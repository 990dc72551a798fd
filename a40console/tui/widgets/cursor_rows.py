"""Rows of which one has the cursor: keys and the wheel move it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import MouseScrollDown, MouseScrollUp
from textual.message import Message

from a40console.tui.widgets.lines import Lines

_WHEEL_ROWS = 3


class CursorRows(Lines, can_focus=True):
    """What lists of rows have in common; which rows there are, and how they look, is theirs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Row above", show=False),
        Binding("down,j", "move(1)", "Row below", show=False),
        Binding("pageup", "page(-1)", "A page up", show=False),
        Binding("pagedown", "page(1)", "A page down", show=False),
        Binding("home", "move(-1000000)", "First row", show=False),
        Binding("end", "move(1000000)", "Last row", show=False),
    ]

    class CursorMoved(Message):
        """The cursor is on another row."""

    _cursor = 0
    _top = 0
    """The first row in sight."""

    def row_count(self) -> int:
        """How many rows there are, in sight or not."""
        raise NotImplementedError

    def page_rows(self) -> int:
        """How many rows a page is."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw again what was shown last, the cursor where it is by now."""
        raise NotImplementedError

    def remember(self) -> None:
        """Keep which row the cursor is on, where rows come and go."""

    def action_move(self, rows: int) -> None:
        """Move the cursor by that many rows."""
        self.go(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        """Move the cursor by what is in sight."""
        self.go(self._cursor + pages * max(1, self.page_rows()))

    def go(self, place: int) -> None:
        """Put the cursor on that row, or on the nearest that there is."""
        if not self.row_count():
            return
        self._cursor = max(0, min(place, self.row_count() - 1))
        self.remember()
        self.redraw()
        self.post_message(self.CursorMoved())

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Go down."""
        event.stop()
        self.go(self._cursor + _WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Go up."""
        event.stop()
        self.go(self._cursor - _WHEEL_ROWS)
