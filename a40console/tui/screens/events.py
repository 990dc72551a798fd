"""The journal: what happened and when, how fast it ran meanwhile, and what mends it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import ScreenResume, ScreenSuspend
from textual.geometry import Size
from textual.widgets import Input

from a40console.errors import ConsoleError
from a40console.model.control import HistoryPoint
from a40console.model.event import Event, Severity
from a40console.model.instants import unix_s
from a40console.tui.ink import Line
from a40console.tui.journal import PAGE, Filter, JournalPages
from a40console.tui.panels import events as panel
from a40console.tui.panels.event_strip import DAY_S, strip, strip_heading
from a40console.tui.reading import Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.event_list import EventList
from a40console.tui.widgets.lines import Panel

_STRIP_POINTS = 720
"""Two minutes each."""

_STRIP_EVERY_S = 60.0
_STRIP_STEP_S = 10.0
_STRIP_EVENTS = 1000
_LOOK_EVERY_S = 1.0
_LEAST: dict[Severity, Severity] = {"info": "warn", "warn": "error", "error": "info"}
"""What `v` goes on to."""

_CHART_ROWS = 2
"""Rows of the strip that are not the chart: where entries lie, and the hours."""


class EventsScreen(MonitorScreen):
    """Reads the journal only while it is in front."""

    CSS_PATH = ["monitor.tcss", "events.tcss"]
    VIEW = "view.events"
    AUTO_FOCUS = "#list"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "apply", "Apply the remedy", show=False),
        Binding("slash", "search", "Find", show=False),
        Binding("v", "severity", "Least severity", show=False),
        Binding("o", "look", "Show the overview then", show=False),
        Binding("u", "mark_read", "Mark as read", show=False),
        Binding("escape", "end_search", "End the search", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._journal = JournalPages()
        self._entries = EventList(lambda event: event.id > self._read_to, dom_id="list")
        self._own = (
            Panel(self._strip_heading, dom_id="strip-heading", fades=False),
            Panel(self._strip, dom_id="strip", fades=False),
            Panel(self._detail, dom_id="detail", fades=False),
            Panel(self._about, dom_id="about", fades=False),
        )
        self._read_to = 0
        self._points: Sequence[HistoryPoint] = ()
        self._day: Sequence[Event] = ()
        self._kept: Sequence[Event] = ()
        """Of the last 24 hours, for the strip: all, and those that pass the filter."""

        self._strip_key: object = None
        self._strip_lines: list[Line] = []
        self._trouble = ""
        self._paging = False

    def compose_body(self) -> ComposeResult:
        """The day's strip, the entries, what the chosen one says, and the filter."""
        yield from self._own[:2]
        yield self._entries
        yield from self._own[2:]
        search = Input(placeholder="kind, text or evidence", id="search", compact=True)
        search.display = False
        yield search

    @on(ScreenResume)
    def _begin(self) -> None:
        self._read_to = self.app.absence.read_to or 0
        self._read()

    @on(ScreenSuspend)
    def _pause(self) -> None:
        self.workers.cancel_group(self, "journal")
        self._stop_paging()

    @work(group="journal", exclusive=True)
    async def _read(self) -> None:
        """Follow the journal; once a minute the day's speeds."""
        strip_in_s = 0.0
        while True:
            try:
                client = await self.app.feed.client()
                last_id = self.app.reading.snapshot.events_last_id
                newer = await self._journal.catch_up(client, last_id)
                if newer or strip_in_s <= 0:
                    self._day = await client.events(limit=_STRIP_EVENTS, since_s=-DAY_S)
                if strip_in_s <= 0:
                    self._points = (await client.history(-DAY_S, points=_STRIP_POINTS)).points
                    strip_in_s = _STRIP_EVERY_S
                self._trouble = ""
            except ConsoleError as error:
                self._trouble = error.message
            self._list()
            self.app.mark_events_read()
            await asyncio.sleep(_LOOK_EVERY_S)
            strip_in_s -= _LOOK_EVERY_S

    @on(EventList.EndNeared)
    def _want_older(self) -> None:
        if not (self._journal.whole or self._paging or self._trouble):
            self._paging = True
            self._page()

    @work(group="page", exclusive=True)
    async def _page(self) -> None:
        """Fetch older entries until there are more than are in sight."""
        try:
            client = await self.app.feed.client()
            wanted = len(self._journal.entries) + PAGE // 2
            while await self._journal.go_back(client) and len(self._journal.entries) < wanted:
                self._list()
        except ConsoleError as error:
            self._trouble = error.message
        finally:
            self._paging = False
        self._list()

    def show(self, reading: Reading) -> None:
        """Draw the frame; the entries are drawn when there are new ones."""
        super().show(reading)
        self._entries.now = reading.snapshot.at

    def _list(self) -> None:
        journal = self._journal
        self._kept = tuple(filter(journal.filter.keeps, self._day))
        none = "nothing passes the filter" if journal.filter.narrows else "nothing has happened yet"
        self._entries.show(tuple(journal.entries), none if journal.whole else "the journal is read")
        self._redraw()

    @on(EventList.CursorMoved)
    def _redraw(self) -> None:
        reading = self.app.drawn
        for drawn in self._own:
            drawn.show(reading)

    def _detail(self, reading: Reading, size: Size) -> list[Line]:
        return panel.cut(panel.detail(self._chosen, size.width, reading), size)

    def _about(self, reading: Reading, size: Size) -> list[Line]:
        place = self._entries.place
        return [panel.about(self._chosen, place, self._journal, self._trouble, size.width)]

    def _strip_heading(self, reading: Reading, size: Size) -> list[Line]:
        return [strip_heading(self._points, self._kept, size.width)]

    def _strip(self, reading: Reading, size: Size) -> list[Line]:
        """Drawn anew when the minute or the choice is another, not with each snapshot."""
        chosen = self._chosen
        now_s = (unix_s(reading.snapshot.at) or 0.0) // _STRIP_STEP_S * _STRIP_STEP_S
        key = (size, now_s, chosen, self._points, self._kept)
        if key != self._strip_key:
            self._strip_key = key
            self._strip_lines = strip(
                self._points,
                self._kept,
                now_s=now_s + _STRIP_STEP_S,
                chosen_s=unix_s(chosen.at) if chosen else None,
                width=size.width,
                rows=size.height - _CHART_ROWS,
            )
        return self._strip_lines

    @property
    def _chosen(self) -> Event | None:
        return self._entries.chosen

    def action_apply(self) -> None:
        """Run the command that applies the chosen entry's remedy; what must be asked is asked."""
        chosen = self._chosen
        command = panel.command_of(chosen) if chosen else None
        if command is None:
            self.app.say("Events", "This entry names no command that would mend it.")
        else:
            self.app.action_command(command.id)

    def action_look(self) -> None:
        """Show the overview as it was at the chosen entry."""
        chosen = self._chosen
        at_s = unix_s(chosen.at) if chosen else None
        if at_s is not None:
            self.app.look_at(at_s)

    def action_mark_read(self) -> None:
        """Take the dots away: all that is there has been read."""
        self._read_to = self.app.reading.snapshot.events_last_id
        self.app.mark_events_read()
        self._entries.redraw()

    def action_severity(self) -> None:
        """List only what is graver, or everything again."""
        now = self._journal.filter
        self._narrow(Filter(severity=_LEAST[now.severity], text=now.text))

    def action_search(self) -> None:
        """Ask for the text to find."""
        search = self.query_one("#search", Input)
        search.display = True
        self.set_focus(search)  # at once: what is typed next is for it

    @on(Input.Submitted, "#search")
    def _find(self, event: Input.Submitted) -> None:
        event.input.display = False
        self._narrow(Filter(severity=self._journal.filter.severity, text=event.value.strip()))
        self._entries.focus()

    def action_end_search(self) -> None:
        """Close the search and list everything again."""
        search = self.query_one("#search", Input)
        search.display = False
        search.value = ""
        self._entries.focus()
        if self._journal.filter.narrows:
            self._narrow(Filter())

    def _narrow(self, filter_: Filter) -> None:
        self._stop_paging()
        self._journal.begin_again(filter_)
        self._list()

    def _stop_paging(self) -> None:
        self.workers.cancel_group(self, "page")
        self._paging = False  # a worker that had not begun when it was cancelled says so never
