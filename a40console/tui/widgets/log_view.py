"""The engine's output: bounded, with levels, searchable, and following its end until held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from rich.cells import chop_cells
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from a40console.model.log_line import Level, LogLine, split_stamp
from a40console.tui.log_buffer import LogBuffer, is_error
from a40console.tui.theming import ink_styles
from a40console.tui.widgets.log_ink import GUTTER, LogInk, Mark

SHORT_BELOW = 160
"""In fewer columns a line's stamp is reduced to time and process."""

_Test = Callable[[LogLine], bool]
_Row = tuple[int, int]
"""Which of the shown lines stands in a row of the window, and which of its parts."""


class LogView(ScrollView, can_focus=True):
    """Lines of output, painted by the line API, with a cursor while they are held."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Up", show=False),
        Binding("down,j", "step(1)", "Down", show=False),
        Binding("left", "scroll_left", "Left", show=False),
        Binding("right", "scroll_right", "Right", show=False),
        Binding("home,g", "first", "First line", show=False),
        Binding("end,G", "last", "Last line", show=False),
        Binding("pageup", "pages(-1)", "Page up", show=False),
        Binding("pagedown", "pages(1)", "Page down", show=False),
    ]

    class StateChanged(Message):
        """The cursor moved, or following, searching or what is shown changed."""

    def __init__(self, *, dom_id: str | None = None, buffer: LogBuffer | None = None) -> None:
        super().__init__(id=dom_id)
        self.buffer = buffer or LogBuffer()
        self.following = True
        self.needle = ""
        self.wrap = False
        self.cursor: int | None = None
        """The number of the line under the cursor; None while the end is followed."""

        self.marked_from: int | None = None
        """The number of the line where a selection began."""

        self.dropped = 0
        """Lines that were dropped to stay within the limits."""

        self._tail: LogLine | None = None
        self._gone = 0
        """Lines that were shown and had to go since it was painted last."""

        self._fed = False
        self._own_scroll = False
        self._rows: list[_Row] | None = None
        self._inks: LogInk | None = None

    # --- What is held ----------------------------------------------------------------------

    def feed(self, lines: Iterable[LogLine], note: str = "") -> None:
        """Append a line of our own, such as a rotation of the file, and lines.

        They are painted by `settle`: once, however many pieces they came in.
        """
        before = self.buffer.first
        if note:
            self._gone += self.buffer.note(note)
        self._gone += self.buffer.take(lines)
        self._fed, self._rows = True, None
        self.dropped += self.buffer.first - before

    def settle(self, tail: LogLine | None = None) -> None:
        """Show what was fed, and what is written of a line that has not ended yet."""
        if self._fed or tail != self._tail:
            self._tail = tail
            self._settle()

    def clear(self) -> None:
        """Forget every line, and begin anew."""
        self.buffer.clear()
        self.cursor = self.marked_from = self._tail = None
        self._gone = 0
        self.dropped = 0
        self.following = True
        self._settle()

    def narrow(self, minimum: Level, needle: str) -> None:
        """Show only lines of a level or above that hold a text."""
        self.buffer.narrow(minimum, needle)
        self.marked_from = None
        self._settle()
        if self.cursor is not None and len(self.buffer):
            self._to_row(self.buffer.row_of(self.cursor), middle=True)
        self._tell()

    @property
    def room(self) -> int:
        """How many more lines may come: while the output is held, nothing of it goes."""
        return 1 << 30 if self.following else self.buffer.room

    def _settle(self) -> None:
        """Take in new lines: keep following, or keep what is being read in place."""
        gone, self._gone = self._gone, 0
        self._fed, self._rows = False, None
        width = 0 if self.wrap else self.buffer.widest + GUTTER
        rows = len(self.buffer) + (self._tail is not None and self.following)
        if self.wrap and rows:  # a single line may fill the window: each may stand at its top
            rows += max(0, self.size.height - 1)
        with self._scrolling():
            self.virtual_size = Size(width, rows)
            if self.following:
                # Forced: before the next layout it does not know yet that it can scroll.
                self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)
            elif gone:
                place = max(0, self.scroll_y - gone)
                self.scroll_to(y=place, animate=False, immediate=True, force=True)
        if self.cursor is not None and self.cursor < self.buffer.first:
            self.cursor = self.buffer.first
        self.refresh()

    # --- Moving ----------------------------------------------------------------------------

    @contextmanager
    def _scrolling(self) -> Iterator[None]:
        """Our own scrolling, which neither ends the following nor begins it."""
        self._own_scroll = True
        try:
            yield
        finally:
            self._own_scroll = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The wheel or the bar: away from the end holds, reaching the end follows."""
        super().watch_scroll_y(old_value, new_value)
        self._rows = None
        if self._own_scroll or not self.is_mounted:
            return
        at_end = new_value >= self.max_scroll_y
        if at_end is not self.following:
            self.follow(at_end)

    def on_resize(self) -> None:
        """Stay at the end, or at the cursor, when the window changes."""
        self._settle()
        if self.cursor is not None and len(self.buffer):
            self._to_row(self.buffer.row_of(self.cursor))

    def follow(self, follow: bool) -> None:
        """Follow the end, or hold what is shown, with the cursor on its last line."""
        self._window()
        self.following = follow
        if follow:
            self.cursor = self.marked_from = None
            self._settle()
        elif self.cursor is None and len(self.buffer):
            rows = self._rows or [(0, 0)]  # as they were laid out while it followed
            with self._scrolling():
                self.scroll_to(y=rows[0][0], animate=False, immediate=True, force=True)
            self._to_row(min(rows[-1][0], len(self.buffer) - 1))
        self._tell()

    def go_to(self, number: int) -> None:
        """Hold, with the cursor on a line in the middle of the window."""
        if len(self.buffer):
            self._to_row(self.buffer.row_of(number), middle=True)

    def action_step(self, rows: int) -> None:
        """Move the cursor; the first step up holds the output."""
        if self.following:
            if rows < 0:
                self.follow(False)
            return
        here = self.buffer.row_of(self.cursor or 0)
        self._move_to(here + rows)

    def action_pages(self, pages: int) -> None:
        """Move the cursor by a window."""
        if self.following:
            if pages > 0:
                return
            self.follow(False)
        here = self.buffer.row_of(self.cursor or 0)
        self._move_to(here + pages * max(1, self.size.height - 1))

    def action_first(self) -> None:
        """Go to the first line that is held."""
        self._move_to(0)

    def action_last(self) -> None:
        """Follow the end."""
        self.follow(True)

    def _move_to(self, row: int) -> None:
        """The cursor to a row; below the last one the end is followed."""
        if not len(self.buffer):
            return
        if row >= len(self.buffer) and self.marked_from is None:
            self.follow(True)
        else:
            self._to_row(max(0, min(row, len(self.buffer) - 1)))

    def _to_row(self, row: int, *, middle: bool = False) -> None:
        if self.following:
            self.following = False
            self._settle()
        self.cursor = self.buffer.number_at(row)
        top, height = round(self.scroll_y), max(1, self.size.height)
        if middle:
            top = row - height // 2
        top = min(row, max(top, self._highest_top(row, height)))
        with self._scrolling():
            self.scroll_to(y=max(0, top), animate=False, immediate=True, force=True)
        self._rows = None
        self.refresh()
        self._tell()

    def _highest_top(self, row: int, height: int) -> int:
        """The first line that may stand at the top while another is still in the window."""
        if not self.wrap:
            return row - height + 1
        left = height - len(self._parts(row))
        while row > 0 and (left := left - len(self._parts(row - 1))) >= 0:
            row -= 1
        return row

    def on_click(self, event: Click) -> None:
        """Put the cursor on the line that was clicked."""
        rows = self._window()
        if event.y < len(rows) and rows[event.y][0] < len(self.buffer):
            self._to_row(rows[event.y][0])

    def _tell(self) -> None:
        self.post_message(self.StateChanged())

    # --- Searching -------------------------------------------------------------------------

    def search(self, needle: str) -> int:
        """Highlight a text, whatever its case; answers how many lines that are shown hold it."""
        self.needle = needle.casefold()
        self.refresh()
        return self.buffer.matches(needle) if needle else 0

    def go_to_match(self, step: int) -> bool:
        """The cursor to the next match below (1) or above (-1); answers whether there is one."""
        needle = self.needle
        if not needle:
            return False
        return self._go(step, lambda line: needle in line.text.casefold())

    def go_to_error(self, step: int) -> bool:
        """The cursor to the next error below (1) or above (-1); answers whether there is one."""
        return self._go(step, is_error)

    def _go(self, step: int, test: _Test) -> bool:
        if not len(self.buffer):
            return False
        here = len(self.buffer) if self.cursor is None else self.buffer.row_of(self.cursor)
        found = self.buffer.find(here, step, test)
        if found is not None:
            self._to_row(found, middle=True)
        return found is not None

    # --- Selecting -------------------------------------------------------------------------

    def mark(self) -> bool:
        """Begin a selection at the cursor, or give one up; answers whether there is one now."""
        if self.cursor is None:
            self.follow(False)
        self.marked_from = self.cursor if self.marked_from is None else None
        self._settle()
        self._tell()
        return self.marked_from is not None

    def chosen(self) -> list[str]:
        """The selected lines; without a selection the line under the cursor, and its block."""
        if self.cursor is None:
            return []
        if self.marked_from is None:
            return self.buffer.block(self.cursor)
        return self.buffer.between(self.marked_from, self.cursor)

    # --- Painting --------------------------------------------------------------------------

    def set_wrap(self, wrap: bool) -> None:
        """Break long lines, or let them run out of the window."""
        self.wrap = wrap
        with self._scrolling():
            self.scroll_to(x=0, animate=False, immediate=True, force=True)
        self._settle()
        if self.cursor is not None and len(self.buffer):
            self._to_row(self.buffer.row_of(self.cursor))
        self._tell()

    def _window(self) -> list[_Row]:
        """What stands in each row of the window."""
        if self._rows is None:
            self._rows = self._lay_out()
        return self._rows

    def _lay_out(self) -> list[_Row]:
        height, top = self.size.height, round(self.scroll_y)
        count = len(self.buffer) + (self._tail is not None and self.following)
        if not self.wrap:
            return [(row, 0) for row in range(top, min(top + height, count))]
        if self.following:  # from the last line upwards
            rows: list[_Row] = []
            row = count - 1
            while row >= 0 and len(rows) < height:
                rows = [(row, part) for part in range(len(self._parts(row)))] + rows
                row -= 1
            return rows[-height:]
        rows = []
        while top < count and len(rows) < height:
            rows += [(top, part) for part in range(len(self._parts(top)))]
            top += 1
        return rows[:height]

    def _line(self, row: int) -> LogLine:
        if row >= len(self.buffer):
            return self._tail or LogLine("")
        return self.buffer.line_at(row)

    @property
    def _width(self) -> int:
        """Columns for a line, beside the gutter and the scrollbar."""
        return (self.scrollable_content_region.width or self.size.width) - GUTTER

    def _split(self, line: LogLine) -> tuple[str, str]:
        return split_stamp(line.text, short=self.size.width < SHORT_BELOW)

    def _parts(self, row: int) -> list[str]:
        """The pieces of a line that is broken at the window's width."""
        text = "".join(self._split(self._line(row)))
        return chop_cells(text, max(8, self._width)) or [""]

    def render_line(self, y: int) -> Strip:
        """One row of the window."""
        rows, base = self._window(), self.rich_style
        if y >= len(rows):
            return Strip.blank(self.size.width, base)
        row, part = rows[y]
        line = self._line(row)
        gutter = Strip(self._ink.gutter(line, self._mark(row, part)))
        width = self._width
        if self.wrap:
            stamp, text = self._split(line)[0], self._parts(row)[part]
            stamp = stamp if not part and text.startswith(stamp) else ""
            body = Strip(self._ink.body(stamp, text[len(stamp) :], line, self.needle))
            return Strip.join([gutter, body.adjust_cell_length(width, base)])
        x = round(self.scroll_x)
        body = Strip(self._ink.body(*self._split(line), line, self.needle))
        return Strip.join([gutter, body.crop_extend(x, x + width, base)])

    def _mark(self, row: int, part: int) -> Mark:
        """What the gutter says of a row."""
        number = self.buffer.number_at(row) if row < len(self.buffer) else -1
        here = number == self.cursor and number >= 0
        selected = False
        if self.marked_from is not None and self.cursor is not None and number >= 0:
            low, high = sorted((self.marked_from, self.cursor))
            selected = low <= number <= high
        explained = self.buffer.meanings.get(number) is not None and not part
        return Mark(here=here, selected=selected, explained=explained, first=not part)

    @property
    def _ink(self) -> LogInk:
        if self._inks is None:
            self._inks = LogInk(self.rich_style, ink_styles(self.app.theme_variables))
        return self._inks

    def notify_style_update(self) -> None:
        """Forget the colours of another theme."""
        super().notify_style_update()
        self._inks = None
