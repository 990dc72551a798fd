"""A list of rows with a cursor that stays on its row when others come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from textual.events import Click
from textual.geometry import Size
from textual.message import Message

from a40console.tui.ink import Line
from a40console.tui.reading import Reading
from a40console.tui.widgets.cursor_rows import CursorRows
from a40console.tui.widgets.lines import Panel

Row = TypeVar("Row")


class RowList(Panel, CursorRows, Generic[Row]):
    """Rows of one kind, the head lines above them fixed.

    Args:
        rows: The rows of a reading, the first on top.
        key: What tells a row from the others from one reading to the next.
        draw: One row for a width, whether the cursor is on it and the list has the focus.
        head: The lines above the rows.
        none: What stands in place of the rows where there are none.
        say: What the status line says of the row under the cursor.
    """

    class Chosen(Message):
        """The row under the cursor was clicked."""

    def __init__(
        self,
        rows: Callable[[Reading], Sequence[Row]],
        *,
        key: Callable[[Row], str],
        draw: Callable[[Row, int, bool, bool], Line],
        head: Callable[[Reading, int], Sequence[Line]],
        none: Callable[[Reading, int], Sequence[Line]],
        say: Callable[[Row], str],
        dom_id: str,
    ) -> None:
        super().__init__(self._lines_of, notes=self._say_row, dom_id=dom_id)
        self._rows_of, self._key_of = rows, key
        self._draw_row, self._head = draw, head
        self._none, self._say = none, say
        self._rows: Sequence[Row] = ()
        self._key = ""
        self._heads = 0

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor; None where there are none."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    @property
    def place(self) -> tuple[int, int]:
        """The cursor's row, counted from 1, and how many there are."""
        return self._cursor + 1, len(self._rows)

    def begin_anew(self) -> None:
        """Forget where the cursor was: the rows to come are of something else."""
        self._cursor = self._top = 0
        self._key = ""

    def _lines_of(self, reading: Reading, size: Size) -> list[Line]:
        """The head, and the rows around the cursor."""
        self._rows = self._rows_of(reading)
        self._stay()
        if not self._rows:
            return list(self._none(reading, size.width))[: size.height]
        head = list(self._head(reading, size.width))
        self._heads = len(head)
        room = max(1, size.height - len(head))
        self._top = max(0, min(self._top, len(self._rows) - room, self._cursor))
        self._top = max(self._top, self._cursor - room + 1)
        shown = self._rows[self._top : self._top + room]
        return [
            *head,
            *(
                self._draw_row(row, size.width, self._top + index == self._cursor, self.has_focus)
                for index, row in enumerate(shown)
            ),
        ]

    def _stay(self) -> None:
        """Keep the cursor on its row; on the first it stays, whichever that is."""
        keys = [self._key_of(row) for row in self._rows]
        if self._cursor and self._key in keys:
            place = keys.index(self._key)
            self._top += place - self._cursor
            self._cursor = place
        self._cursor = max(0, min(self._cursor, len(keys) - 1))
        self._key = keys[self._cursor] if keys else ""

    def row_count(self) -> int:
        """As many as the last reading had."""
        return len(self._rows)

    def page_rows(self) -> int:
        """What is in sight, but for a row."""
        return self.size.height - self._heads - 1

    def remember(self) -> None:
        """By the row's key."""
        self._key = self._key_of(self._rows[self._cursor])

    def redraw(self) -> None:
        """Draw again what was shown last."""
        if self._reading is not None:
            self.show(self._reading)

    def on_focus(self) -> None:
        """The cursor is bright where the keys go."""
        self.redraw()

    def on_blur(self) -> None:
        """The cursor is faint where they do not."""
        self.redraw()

    def on_click(self, event: Click) -> None:
        """Put the cursor on the clicked row; a click on its row opens it."""
        place = self._top + event.y - self._heads
        if event.y < self._heads or place >= len(self._rows):
            return
        if place == self._cursor:
            self.post_message(self.Chosen())
        else:
            self.go(place)

    def _say_row(self, reading: Reading) -> str:
        chosen = self.chosen
        return "" if chosen is None else self._say(chosen)
