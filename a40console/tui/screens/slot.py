"""The drill-in: one request or session with everything known of it, live while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.model.command import Command
from a40console.model.figures import Missing
from a40console.model.snapshot import Session
from a40console.tui.ink import Line
from a40console.tui.panels.slot_detail import request_detail, session_detail
from a40console.tui.panels.slots import Row
from a40console.tui.screens.dialog import Fitted, TextDialog
from a40console.tui.widgets.slot_table import SlotTable

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp


class SlotDialog(TextDialog):
    """One row of the table in full."""

    app: ConsoleApp

    def __init__(self, title: str, row: Row) -> None:
        super().__init__(title, self._draw_row)
        self._row = row

    def on_mount(self) -> None:
        """Follow the readings while it is open."""
        self.set_interval(1.0, self._follow, name="follow")

    def _follow(self) -> None:
        text = self.query_one("#text", Fitted)
        rows = len(text.lines)
        text.redraw()
        if len(text.lines) != rows:
            self.on_resize()

    def _draw_row(self, width: int) -> list[Line]:
        reading, row = self.app.reading, self._row
        if not isinstance(row, Session):
            return request_detail(reading, row.request_id, width)
        sessions = reading.snapshot.sessions
        listed = () if isinstance(sessions, Missing) else sessions
        now = (session for session in listed if session.session == row.session)
        return session_detail(next(now, row), width)


def title_of(row: Row) -> str:
    """What the drill-in is called."""
    return f"Session {row.session}" if isinstance(row, Session) else f"Request {row.request_id}"


async def show_slot(app: ConsoleApp, command: Command) -> None:
    """Open the request under the cursor of the overview's table."""
    tables = app.screen_stack[0].query(SlotTable)
    row = tables.first().row_under_cursor if tables else None
    if row is None:
        where = "there is none" if tables else "the overview lists them: choose one there"
        app.say(command.title, f"Not now: {where}.", "warning")
        return
    app.push_screen(SlotDialog(title_of(row), row))
