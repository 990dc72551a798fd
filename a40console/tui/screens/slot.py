"""The drill-in: one request with everything known of it, live while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from a40console.model.command import BY_ID, Command
from a40console.model.snapshot import RecentRequest, Session, Slot
from a40console.tui.availability import why_not
from a40console.tui.ink import Line
from a40console.tui.panels.slot_detail import request_detail
from a40console.tui.screens.dialog import Fitted, TextDialog
from a40console.tui.widgets.slot_table import SlotTable

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp


class SlotDialog(TextDialog):
    """One request of the table in full; while it runs and can be ended, a key asks to abort it."""

    app: ConsoleApp
    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "abort", "Abort", show=False)]

    def __init__(self, row: Slot | RecentRequest, *, may_abort: bool) -> None:
        super().__init__(f"Request {row.request_id}", self._draw_row)
        self._row = row
        self._may_abort = may_abort and isinstance(row, Slot)
        if self._may_abort:
            self.KEYS = (("↑ ↓", "scroll"), ("x", "abort"), ("escape", "close"))

    def on_mount(self) -> None:
        """Follow the readings while it is open."""
        self.set_interval(1.0, self._follow, name="follow")

    def _follow(self) -> None:
        text = self.query_one("#text", Fitted)
        rows = len(text.lines)
        text.redraw()
        if len(text.lines) != rows:
            self.on_resize()

    def action_abort(self) -> None:
        """Close, and ask about the row, on which the table's cursor still is."""
        if not self._may_abort:
            return
        self.dismiss(None)
        self.app.call_after_refresh(self.app.action_command, "request.abort")

    def _draw_row(self, width: int) -> list[Line]:
        return request_detail(self.app.reading, self._row.request_id, width)


async def show_slot(app: ConsoleApp, command: Command) -> None:
    """Open what is under the cursor of the overview's table, or of the sessions screen."""
    from a40console.tui.screens.session import SessionDialog
    from a40console.tui.screens.sessions import SessionsScreen

    front = app.screen_stack[0]
    if isinstance(front, SessionsScreen):
        front.action_open()
        return
    tables = front.query(SlotTable)
    row = tables.first().row_under_cursor if tables else None
    if row is None:
        where = "there is none" if tables else "the overview lists them: choose one there"
        app.say(command.title, f"Not now: {where}.", "warning")
        return
    if isinstance(row, Session):
        app.push_screen(SessionDialog(row))
        return
    may_abort = why_not(BY_ID["request.abort"], app.reading) is None
    app.push_screen(SlotDialog(row, may_abort=may_abort))
