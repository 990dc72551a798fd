"""The log screen as a test opens and reads it."""

from __future__ import annotations

from a40console.tui.app import ConsoleApp
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.log_view import LogView
from tests.tui.driving import Driven, until

STAMP = "(APIServer pid=7) {} 11-29 14:00:00 [serving.py:929] "


async def opened(app: ConsoleApp, pilot: Driven, lines: int = 200) -> LogView:
    await pilot.press("3")
    await until(pilot, lambda: bool(app.screen.query(LogView)))
    log = app.screen.query_one(LogView)
    await until(pilot, lambda: log.buffer.count >= lines)
    await pilot.pause()
    return log


def visible(log: LogView) -> str:
    return "\n".join(log.render_line(y).text.rstrip() for y in range(log.size.height))


def about(app: ConsoleApp) -> str:
    return app.screen.query_one("#about", Panel).plain


def cursor_line(log: LogView) -> str:
    assert log.cursor is not None
    return log.buffer.line_at(log.buffer.row_of(log.cursor)).text


def levels(count: int = 40) -> str:
    """Lines of every level by turns."""
    names = ("DEBUG", "INFO", "WARNING", "ERROR")
    return "".join(f"{STAMP.format(names[n % 4])}line {n}\n" for n in range(count))
