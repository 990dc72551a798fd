"""The engine's output as it is written, with search."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import ScreenResume, ScreenSuspend
from textual.geometry import Size
from textual.widgets import Input

from a40console.errors import ConsoleError
from a40console.model.control import LogChunk
from a40console.tui import format as fmt
from a40console.tui.ink import Line, Role, Span, clean, line
from a40console.tui.reading import Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.log_view import LogView

_READ_EVERY_S = 1.0
_FIRST_BYTES = 262_144
_CHUNK_BYTES = 65_536


class LogsScreen(MonitorScreen):
    """Reads the output only while it is in front."""

    CSS_PATH = ["monitor.tcss", "logs.tcss"]
    VIEW = "view.logs"
    AUTO_FOCUS = "#log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", show=False),
        Binding("n", "match(1)", "Next match", show=False),
        Binding("N", "match(-1)", "Match before", show=False),
        Binding("f", "follow", "Follow the end", show=False),
        Binding("escape", "end_search", "End the search", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._path: str | None = None
        self._offset = -_FIRST_BYTES
        self._trouble = ""
        self._matches = 0

    def compose_body(self) -> ComposeResult:
        """The output, and below it the search or what there is to know of the output."""
        yield LogView(dom_id="log")
        yield Panel(self._about, dom_id="about")
        search = Input(placeholder="search the output, enter to find", id="search", compact=True)
        search.display = False
        yield search

    @on(ScreenResume)
    def _begin(self) -> None:
        self._read()

    @on(ScreenSuspend)
    def _pause(self) -> None:
        self.workers.cancel_group(self, "output")

    @work(group="output", exclusive=True)
    async def _read(self) -> None:
        client = await self.app.feed.client()
        while True:
            more = False
            try:
                limit = _FIRST_BYTES if self._offset < 0 else _CHUNK_BYTES
                chunk = await client.logs(self._offset, limit)
                self._trouble = ""
                more = self._take(chunk)
            except ConsoleError as error:
                self._trouble = error.message
            self.query_one("#about", Panel).show(self.app.reading)
            await asyncio.sleep(0.05 if more else _READ_EVERY_S)

    def _take(self, chunk: LogChunk) -> bool:
        """Show a piece of output; answers whether more is probably waiting."""
        log = self.query_one(LogView)
        if chunk.path != self._path:
            another = self._path is not None and chunk.path is not None
            self._path = chunk.path
            if another:
                # The piece was read from where the other file had been read to.
                log.note(f"another engine start: {chunk.path}")
                self._offset = -_FIRST_BYTES
                return True
        elif 0 <= chunk.next_offset < self._offset:
            log.note("the output was rotated")
        if chunk.text:
            log.feed(chunk.text)
        self._offset = chunk.next_offset
        return len(chunk.text) >= _CHUNK_BYTES // 2

    def _about(self, reading: Reading, size: Size) -> list[Line]:
        log = self.query_one(LogView)
        if self._trouble:
            return [line(Span(f" ✖ {clean(self._trouble)}", Role.BAD))]
        if self._path is None:
            return [line(Span(" – there is no engine whose output could be shown", Role.MUTED))]
        state = "following" if log.following else "held (f or end follows)"
        dropped = f", {fmt.count(log.dropped)} older dropped" if log.dropped else ""
        found = f"  {fmt.count(self._matches)} lines with {log.needle!r}, n N" if log.needle else ""
        return [
            line(
                Span(" / ", Role.KEY, "screen.search"),
                Span("search  ", Role.MUTED),
                Span("f ", Role.KEY, "screen.follow"),
                Span("follow   ", Role.MUTED),
                Span(state, Role.GOOD if log.following else Role.WARN),
                Span(f"  {fmt.count(log.line_count)} lines{dropped}{found}  ", Role.MUTED),
                Span(clean(self._path), Role.MUTED),
            )
        ]

    @on(LogView.StateChanged)
    def _tell_state(self) -> None:
        self.query_one("#about", Panel).show(self.app.reading)

    def action_search(self) -> None:
        """Ask for the text to find."""
        search = self.query_one("#search", Input)
        search.display = True
        search.focus()

    @on(Input.Submitted, "#search")
    def _search(self, event: Input.Submitted) -> None:
        log = self.query_one(LogView)
        self._matches = log.search(event.value)
        event.input.display = False
        log.focus()
        if event.value and not log.go_to_match(-1):
            self.app.say("Search", f"Nothing holds {event.value!r}.", "warning")
        self._tell_state()

    def action_match(self, step: int) -> None:
        """Go to another match."""
        if not self.query_one(LogView).go_to_match(step):
            self.app.say("Search", "Search first: press /.")

    def action_follow(self) -> None:
        """Follow the end of the output, or stop following."""
        log = self.query_one(LogView)
        log.follow(not log.following)

    def action_end_search(self) -> None:
        """Close the search and take its highlights away."""
        log = self.query_one(LogView)
        search = self.query_one("#search", Input)
        search.display = False
        search.value = ""
        self._matches = log.search("")
        log.focus()
        self._tell_state()
