"""What every screen has: verdict, tabs and clock above; notes and keys below."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.css.scalar import Scalar
from textual.events import DescendantBlur, DescendantFocus, ScreenResume
from textual.geometry import Size
from textual.screen import Screen

from a40console.tui.ink import Line, Role, Span, fit, line, width_of, wrap
from a40console.tui.panels import frame
from a40console.tui.panels.verdict import verdict
from a40console.tui.reading import Reading
from a40console.tui.widgets.cursor_rows import CursorRows
from a40console.tui.widgets.lines import Panel

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp


class MonitorScreen(Screen[None]):
    """A screen of panels that are shown each reading."""

    CSS_PATH = ["monitor.tcss"]
    VIEW: ClassVar[str] = ""
    """The id of the command that leads here."""

    FOLLOWS_TIME: ClassVar[bool] = False
    """Whether its figures are those of the part of time that is looked at."""

    app: ConsoleApp

    def compose(self) -> ComposeResult:
        """The frame with the screen's own body inside."""
        yield Panel(verdict, dom_id="verdict", fades=False)
        with Horizontal(id="bar"):
            yield Panel(self._tabs, dom_id="tabs", fades=False)
            yield Panel(self._clock, dom_id="clock", fades=False)
        yield from self.compose_body()
        yield Panel(self._status, dom_id="status", fades=False)
        yield Panel(self._hints, dom_id="hints", fades=False)

    def compose_body(self) -> ComposeResult:
        """The screen's own panels."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Find the panels once: they stay."""
        self._panels = list(self.query(Panel))
        self.show(self.app.drawn)

    def show(self, reading: Reading) -> None:
        """Draw a reading on every panel."""
        if not self.query("#clock"):
            return  # it is being taken down
        self.make_room_for_clock(reading)
        for panel in self._panels:
            panel.show(reading)

    @on(ScreenResume)
    def _catch_up(self) -> None:
        """Draw what arrived while another screen was in front."""
        if self.is_mounted and hasattr(self, "_panels"):
            self.show(self.app.drawn)

    @on(DescendantFocus)
    @on(DescendantBlur)
    @on(CursorRows.CursorMoved)
    def _tell_notes(self) -> None:
        if self.is_mounted and hasattr(self, "_panels"):
            self.query_one("#status", Panel).show(self.app.drawn)

    def _compositor_refresh(self) -> None:
        """Draw what changed; behind a dialog too, no more than that.

        Textual marks a screen behind another as to be painted anew each time it was, so that it
        repaints all of both, 20 KB, at every change.
        """
        changed = self._compositor._dirty_regions  # noqa: SLF001 - the compositor tells it nobody
        if self not in self.app._background_screens:  # noqa: SLF001
            super()._compositor_refresh()
        elif changed:
            self.app.screen.refresh(*changed)
            changed.clear()
            self._dirty_widgets.clear()

    def make_room_for_clock(self, reading: Reading) -> None:
        """Give the clock the cells that it needs, and the tabs the others."""
        if not hasattr(self, "_panels"):
            return  # it is being composed
        width = Scalar.from_number(width_of(self._clock_line(reading)))
        clock = self.query_one("#clock")
        if clock.styles.width != width:
            clock.styles.width = width

    def _tabs(self, reading: Reading, size: Size) -> list[Line]:
        return [frame.tabs(self.VIEW, reading, size.width, screen_width=self.size.width)]

    def _clock(self, reading: Reading, size: Size) -> list[Line]:
        return [self._clock_line(reading)]

    def _clock_line(self, reading: Reading) -> Line:
        return frame.clock(
            self.VIEW,
            reading,
            screen_width=self.size.width,
            follows_time=self.FOLLOWS_TIME,
        )

    def _hints(self, reading: Reading, size: Size) -> list[Line]:
        return frame.hints(reading, size, self.VIEW)

    def _status(self, reading: Reading, size: Size) -> list[Line]:
        """What there is to say of the focused panel: its source and why a dash is a dash."""
        focused = self.focused
        drawn = focused.reading or reading if isinstance(focused, Panel) else reading
        text = focused.notes(drawn) if isinstance(focused, Panel) else ""
        lines = wrap(text, size.width - 3, Role.MUTED)
        if len(lines) > size.height:
            last = lines[size.height - 1]
            if last and not last[-1].text.endswith("…"):
                last = fit(line(last, Span(" …", Role.MUTED)), size.width - 2)
            lines = [*lines[: size.height - 1], last]
        return [line(" ", entry) for entry in lines]
