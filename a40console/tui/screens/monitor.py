"""What every screen has: verdict, tabs and clock above; notes and keys below."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantBlur, DescendantFocus, ScreenResume
from textual.geometry import Size
from textual.screen import Screen

from a40console.tui.ink import Line, Role, Span, line, wrap
from a40console.tui.panels import frame
from a40console.tui.panels.verdict import verdict
from a40console.tui.reading import Reading
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.slot_table import SlotTable

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp


class MonitorScreen(Screen[None]):
    """A screen of panels that are shown each reading."""

    CSS_PATH = ["monitor.tcss"]
    VIEW: ClassVar[str] = ""
    """The id of the command that leads here."""

    app: ConsoleApp

    def compose(self) -> ComposeResult:
        """The frame with the screen's own body inside."""
        yield Panel(verdict, dom_id="verdict", fades=False)
        with Horizontal(id="bar"):
            yield Panel(frame.tabs(self.VIEW), dom_id="tabs", fades=False)
            yield Panel(frame.clock, dom_id="clock", fades=False)
        yield from self.compose_body()
        yield Panel(self._status, dom_id="status", fades=False)
        yield Panel(frame.hints, dom_id="hints", fades=False)

    def compose_body(self) -> ComposeResult:
        """The screen's own panels."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Find the panels once: they stay."""
        self._panels = list(self.query(Panel))
        self.show(self.app.reading)

    def show(self, reading: Reading) -> None:
        """Draw a reading on every panel."""
        for panel in self._panels:
            panel.show(reading)

    @on(ScreenResume)
    def _catch_up(self) -> None:
        """Draw what arrived while another screen was in front."""
        if self.is_mounted and hasattr(self, "_panels"):
            self.show(self.app.reading)

    @on(DescendantFocus)
    @on(DescendantBlur)
    @on(SlotTable.CursorMoved)
    def _tell_notes(self) -> None:
        if self.is_mounted and hasattr(self, "_panels"):
            self.query_one("#status", Panel).show(self.app.reading)

    def _status(self, reading: Reading, size: Size) -> list[Line]:
        """What there is to say of the focused panel: its source and why a dash is a dash."""
        focused = self.focused
        text = focused.notes(reading) if isinstance(focused, Panel) else ""
        lines = wrap(text, size.width - 3, Role.MUTED)
        if len(lines) > size.height:
            lines = [*lines[: size.height - 1], line(lines[size.height - 1], Span("…", Role.MUTED))]
        return [line(" ", entry) for entry in lines]
