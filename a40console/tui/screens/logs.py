"""The engine's output as it is written: levels, search, filter, errors and what they mean."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.events import ScreenResume, ScreenSuspend
from textual.geometry import Size
from textual.widgets import Input

from a40console.errors import ConsoleError
from a40console.model.control import EngineStart
from a40console.model.engine_log import LogPassage
from a40console.model.figures import Missing
from a40console.model.log_line import Level
from a40console.pattern import REMEDY
from a40console.tui import format as fmt
from a40console.tui.clipboard import copy
from a40console.tui.ink import Line
from a40console.tui.output import FirstError, OutputReader
from a40console.tui.panels import logs as panels
from a40console.tui.reading import Reading
from a40console.tui.screens.dialog import Choice, PickDialog
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.log_view import LogView

_BUSY_PERIOD_S = 0.3
_QUIET_PERIOD_S = 1.0
_BREATH_S = 0.004
"""Between two slices of lines: a key that was pressed is answered there."""

_AFTER_KEY_S = 0.06
_ASKED_AT_ONCE = 12
"""Passages about which the service is asked with one piece of output."""

_LEVELS = (Level.DEBUG, Level.INFO, Level.WARN, Level.ERROR)


class LogsScreen(MonitorScreen):
    """Reads the output only while it is in front."""

    CSS_PATH = ["monitor.tcss", "logs.tcss"]
    VIEW = "view.logs"
    AUTO_FOCUS = "#log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "ask('search')", "Search", show=False),
        Binding("f", "ask('filter')", "Filter", show=False),
        Binding("n", "match(1)", "Next match", show=False),
        Binding("N", "match(-1)", "Match before", show=False),
        Binding("l", "level", "Level", show=False),
        Binding("E", "first_error", "First error", show=False),
        Binding("full_stop", "error(1)", "Next error", show=False),
        Binding("comma", "error(-1)", "Error before", show=False),
        Binding("F", "follow", "Follow the end", show=False),
        Binding("W", "wrap", "Wrap long lines", show=False),
        Binding("o", "choose_start", "Another start's output", show=False),
        Binding("v", "mark", "Select lines", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("escape", "give_up", "End what was asked for", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._reader = OutputReader()
        self._trouble = ""
        self._matches = 0
        self._asking = "search"
        self._chosen: EngineStart | None = None

    def compose_body(self) -> ComposeResult:
        """The output; below it what the line under the cursor means, and what there is to do."""
        yield LogView(dom_id="log")
        yield Panel(self._meaning, dom_id="meaning")
        yield Panel(self._about, dom_id="about")
        asked = Input(id="asked", compact=True)
        asked.display = False
        yield asked

    def on_mount(self) -> None:
        """Nothing is explained until a line is held."""
        super().on_mount()
        self.query_one("#meaning").display = False

    # --- Reading -----------------------------------------------------------------------------

    @on(ScreenResume)
    def _begin(self) -> None:
        self._read()

    @on(ScreenSuspend)
    def _pause(self) -> None:
        self.workers.cancel_group(self, "output")

    @work(group="output", exclusive=True)
    async def _read(self) -> None:
        # The screen has all that is looked for but while it is taken down around its reader.
        with suppress(NoMatches):
            await self._follow_output()

    async def _follow_output(self) -> None:
        client, log = await self.app.feed.client(), self.query_one(LogView)
        while True:
            busy = False
            try:
                if not self._reader.has_pieces and log.room > 0:
                    busy = await self._reader.read(client, newest=log.following)
                await self._take()
                self._trouble = ""
                await self._ask_meanings(settled=not busy)
            except ConsoleError as error:
                self._trouble = error.message
            self._tell_state()
            await asyncio.sleep(_BUSY_PERIOD_S if busy else _QUIET_PERIOD_S)

    async def _take(self) -> None:
        """Show what was read, as far as what is held leaves room for it."""
        log = self.query_one(LogView)
        while log.room > self._reader.next_lines and (piece := self._reader.piece()):
            log.feed(piece.lines, piece.note)
            await asyncio.sleep(_BREATH_S)
        log.settle(self._reader.tail)

    async def _ask_meanings(self, *, settled: bool) -> None:
        """Ask the service what the newest warnings and errors mean."""
        log = self.query_one(LogView)
        numbers = log.buffer.unexplained(_ASKED_AT_ONCE, settled=settled)
        if log.cursor is not None:
            head = log.buffer.head_of(log.cursor)
            if head not in log.buffer.meanings and head not in numbers:
                numbers.append(head)
        if not numbers:
            return
        before_ready = self._reader.whole and not self._reader.ready_seen
        passages = [
            LogPassage(text="\n".join(log.buffer.block(number)), before_ready=before_ready)
            for number in numbers
        ]
        client = await self.app.feed.client()
        meanings = await client.explain_output(passages, start=self._reader.start)
        log.buffer.meanings.update(zip(numbers, meanings, strict=True))
        log.refresh()

    @work(group="output", exclusive=True)
    async def _search_first_error(self) -> None:
        """Search the whole output, beyond the lines that are held."""
        with suppress(NoMatches):  # as above
            await self._find_first_error()

    async def _find_first_error(self) -> None:
        client = await self.app.feed.client()
        try:
            found = await self._reader.find_first_error(client)
        except ConsoleError as error:
            self.app.say("First error", error.message, "warning")
            found = None
        else:
            self._show_first_error(found)
        self.call_later(self._read)

    def _show_first_error(self, found: FirstError | None) -> None:
        if found is None:
            self.app.say("First error", "The output holds no error.")
            return
        log = self.query_one(LogView)
        log.clear()
        log.feed(found.lines, f"{fmt.count(found.before)} lines before" if found.before else "")
        log.go_to(log.buffer.end - len(found.lines) + found.index)

    # --- What is shown beside it -------------------------------------------------------------

    def _about(self, reading: Reading, size: Size) -> list[Line]:
        log = self.query_one(LogView)
        state = panels.State(
            trouble=self._trouble,
            path=self._reader.path,
            following=log.following,
            selecting=log.marked_from is not None,
            held=log.buffer.count,
            shown=len(log.buffer),
            dropped=log.dropped,
            skipped=self._reader.skipped,
            waiting_bytes=self._reader.waiting_bytes,
            minimum=log.buffer.minimum,
            filter=log.buffer.filter,
            needle=log.needle,
            matches=self._matches,
            explained=any(log.buffer.meanings.values()),
            start=self._chosen,
        )
        return panels.about(state, size.width)

    def _meaning(self, reading: Reading, size: Size) -> list[Line]:
        log = self.query_one(LogView)
        if log.cursor is None or not log.buffer.count:
            return []
        head = log.buffer.head_of(log.cursor)
        asked = head in log.buffer.meanings
        text = log.buffer.block(log.cursor)
        return panels.meaning(log.buffer.meanings.get(head), text, size.width, asked=asked)

    @on(LogView.StateChanged)
    def _tell_state(self) -> None:
        log, meaning = self.query_one(LogView), self.query_one("#meaning", Panel)
        if why := log.buffer.dropped_filter():
            self.app.say("Filter dropped: it takes too long", f"{why} {REMEDY}", "warning")
            log.narrow(log.buffer.minimum, log.buffer.filter)
        meaning.display = log.cursor is not None
        meaning.show(self.app.reading)
        self.query_one("#about", Panel).show(self.app.reading)

    # --- What keys do ------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without a search `n` is nobody's here, and goes to the console's own meaning of it."""
        return action != "match" or bool(self.query_one(LogView).needle)

    def action_ask(self, what: str) -> None:
        """Ask for the text to find, or for what every line must hold."""
        self._asking = what
        log, asked = self.query_one(LogView), self.query_one("#asked", Input)
        asked.placeholder = (
            "search the output, enter to find"
            if what == "search"
            else "only lines with this text, or /pattern/; empty for all"
        )
        asked.value = "" if what == "search" else log.buffer.filter
        asked.display = True
        asked.focus()

    @on(Input.Submitted, "#asked")
    def _answered(self, event: Input.Submitted) -> None:
        log = self.query_one(LogView)
        event.input.display = False
        log.focus()
        if self._asking == "filter":
            log.narrow(log.buffer.minimum, event.value)
        else:
            self._matches = log.search(event.value)
            if event.value and not log.go_to_match(-1):
                self.app.say("Search", f"Nothing holds {event.value!r}.", "warning")
        self._tell_state()

    def action_match(self, step: int) -> None:
        """Go to another match."""
        self.query_one(LogView).go_to_match(step)

    def action_level(self) -> None:
        """Show the next higher level and above; after the highest all again."""
        log = self.query_one(LogView)
        here = _LEVELS.index(log.buffer.minimum)
        log.narrow(_LEVELS[(here + 1) % len(_LEVELS)], log.buffer.filter)

    def action_error(self, step: int) -> None:
        """Go to another error among the lines that are held."""
        if not self.query_one(LogView).go_to_error(step):
            self.app.say("Errors", "No line that is shown is an error.")

    def action_first_error(self) -> None:
        """Go to the first error of the output."""
        log = self.query_one(LogView)
        if not self._reader.whole or log.dropped or log.buffer.filter:
            log.narrow(log.buffer.minimum, "")
            self._search_first_error()
        elif log.buffer.errors():
            log.go_to(log.buffer.number_at(len(log.buffer) - 1))
            log.go_to_error(1)
        else:
            self._show_first_error(None)

    def action_follow(self) -> None:
        """Follow the end of the output, or hold it."""
        log = self.query_one(LogView)
        log.follow(not log.following)
        if log.following:
            self.set_timer(_AFTER_KEY_S, self._read_on)  # what the key changed is painted first

    def _read_on(self) -> None:
        if self.is_current:
            self._read()

    def action_wrap(self) -> None:
        """Break long lines, or let them run out of the window."""
        log = self.query_one(LogView)
        log.set_wrap(not log.wrap)

    def action_mark(self) -> None:
        """Begin a selection, or give it up."""
        self.query_one(LogView).mark()

    def action_copy(self) -> None:
        """Copy the selected lines, or the one under the cursor with its traceback."""
        log = self.query_one(LogView)
        if not (lines := log.chosen()):
            self.app.say("Copy", "Hold the output first: ↑ puts a cursor on its last line.")
            return
        how = copy(self.app, "\n".join(lines) + "\n")
        self.app.say("Copy", f"{fmt.plural(len(lines), 'line')}: {how}")
        log.marked_from = None
        log.refresh()
        self._tell_state()

    def action_give_up(self) -> None:
        """End the question, the selection, the search or the filter, in this order."""
        log, asked = self.query_one(LogView), self.query_one("#asked", Input)
        if asked.display:
            asked.display = False
            log.focus()
        elif log.marked_from is not None:
            log.mark()
        elif log.needle:
            self._matches = log.search("")
        else:
            log.narrow(log.buffer.minimum, "")
        self._tell_state()

    @work(group="starts", exclusive=True)
    async def action_choose_start(self) -> None:
        """Choose whose output is shown."""
        try:
            client = await self.app.feed.client()
            starts = await client.starts()
        except ConsoleError as error:
            self.app.say("Outputs", error.message, "warning")
            return
        choices = [_choice(start, newest=start is starts[0]) for start in starts]
        chosen = await self.app.push_screen_wait(PickDialog("Whose output", choices))
        if chosen is None:
            return
        self._chosen = next(start for start in starts if start.id == chosen)
        if self._chosen is starts[0]:
            self._chosen = None
        self._reader = OutputReader(self._chosen.id if self._chosen else "")
        self.query_one(LogView).clear()
        self._read()


def _choice(start: EngineStart, *, newest: bool) -> Choice:
    ended = start.end
    detail = "runs" if isinstance(ended, Missing) else ended.cause
    title = f"{start.profile}  {fmt.clock(start.started_at)}" + ("  (newest)" if newest else "")
    return Choice(value=start.id, title=title, detail=f"{detail} · {start.id}")
