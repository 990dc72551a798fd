"""Controlled experiments: the history, what a run found or is at, and two runs side by side."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Literal

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import ScreenResume
from textual.geometry import Size

from a40console.errors import ConsoleError
from a40console.model.run import ENDED, Run
from a40console.tui.ink import Line, Role, Span, clean, flow, line
from a40console.tui.panels import run_list
from a40console.tui.panels.frame import heading
from a40console.tui.panels.moments import day_of, second_of
from a40console.tui.panels.run_compare import compared
from a40console.tui.panels.run_text import detail, plots_of
from a40console.tui.panels.run_words import begun_at, kind_of
from a40console.tui.reading import Reading
from a40console.tui.run_book import RunBook
from a40console.tui.run_watch import MEASURES
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.screens.run_keeping import CLAIMS, KEEPING, keep
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.row_list import RowList

MODE = "runs"
_ROOMY = 100
_LOOK_EVERY_S = 1.0
_LIST_EVERY_S = 5.0
_LIST_AT_REST_S = 60.0
"""While nothing runs the journal says when the list is another."""

_SHARE = {"-tiny": 3, "-short": 5, "-normal-height": 9, "-tall": 13}
"""Rows of the list, its head included, by the height of the screen."""


class RunsScreen(MonitorScreen):
    """Asks for runs only while it is in front; follows the records of the one under the cursor."""

    CSS_PATH = ["monitor.tcss", "runs.tcss"]
    VIEW = "view.runs"
    AUTO_FOCUS = "#list"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "The run alone", show=False),
        Binding("escape", "back", "Back to the list", show=False),
        Binding("v", "compare", "Compare", show=False),
        Binding("p", "plot", "Next plot", show=False),
        *(
            Binding(key, f"keep('{what}')", word, show=False)
            for key, what, word in (*KEEPING, CLAIMS)
        ),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.book = RunBook()
        self._plot = 0
        self._whole = False
        """Whether the run has the whole screen."""

        self._wanted = asyncio.Event()
        self._goes_to: Literal["active", "newest", ""] = "active"
        """Where the cursor goes once the list is there."""

        self._listed: RowList[Run] = RowList(
            lambda reading: self.book.runs,
            key=lambda run: run.id,
            draw=self._row,
            head=lambda reading, width: [run_list.header(width)],
            none=lambda reading, width: run_list.nothing(
                self.book.trouble, self.book.fetched, reading, width
            ),
            say=run_list.notes,
            dom_id="list",
        )

    def compose_body(self) -> ComposeResult:
        """The history; below it the run under the cursor, or the comparison."""
        yield self._listed
        yield Panel(self._heading, dom_id="heading", fades=False)
        with VerticalScroll(id="scroll"):
            yield Panel(self._detail, dom_id="detail", fades=False)
        yield Panel(self._keys, dom_id="about", fades=False)

    @property
    def chosen(self) -> Run | None:
        """The run under the cursor, in full where it is known so."""
        return self.book.shown(self._listed.chosen)

    # --- What comes in ----------------------------------------------------------------------

    @on(ScreenResume)
    def _begin(self) -> None:
        self._follow()

    @work(group="runs", exclusive=True)
    async def _follow(self) -> None:
        """The list when it may be another, and the chosen run while it is under way.

        Behind a dialog too, which may say of them what has changed; behind another view nothing.
        """
        list_in_s, seen = 0.0, -1
        while self in self.app.screen_stack:
            client = await self.app.feed.client()
            last_id = self.app.reading.snapshot.events_last_id
            if list_in_s <= 0 or last_id != seen:
                await self.book.list_runs(client)
                list_in_s = _LIST_EVERY_S if self.book.active else _LIST_AT_REST_S
                seen = last_id
                self._draw()
            listed = self._listed.chosen
            if listed is not None and not (self._is_paused and listed.state not in ENDED):
                await self.book.look_at(client, listed)
            self._draw()
            self._wanted.clear()
            try:
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._wanted.wait()
            except TimeoutError:
                list_in_s -= _LOOK_EVERY_S

    @property
    def _is_paused(self) -> bool:
        return self.app.drawn.paused_s is not None

    def look_at_newest(self) -> None:
        """A run was just put into the queue: list anew, with the cursor on it."""
        self._goes_to = "newest"
        self.book.comparison = None
        self.ask_again()

    def ask_again(self) -> None:
        """Ask for the list now: something was changed."""
        self._follow()

    def _draw(self) -> None:
        if not (self.is_mounted and self.query("#scroll")):
            return  # it is being taken down
        self.show(self.app.drawn)
        if self._goes_to and self.book.runs:
            states = [run.state for run in self.book.runs]
            asked = [(run.asked_at, run.id) for run in self.book.runs]
            if self._goes_to == "newest":
                self._listed.go(asked.index(max(asked)))
            elif "running" in states:
                self._listed.go(states.index("running"))
            self._goes_to = ""

    # --- What is drawn ----------------------------------------------------------------------

    def show(self, reading: Reading) -> None:
        """Share the rows between the list and what is below, and draw."""
        alone = bool(self.book.runs) and (self._whole or self.book.comparison is not None)
        self.set_class(alone, "-alone")
        self.set_class(not self.book.runs, "-none")
        if self.book.runs:
            most = next((rows for name, rows in _SHARE.items() if self.has_class(name)), 5)
            rows = min(most, len(self.book.runs) + 1)
            if self._listed.styles.height is None or self._listed.styles.height.value != rows:
                self._listed.styles.height = rows
        else:
            self._listed.styles.height = None
        super().show(reading)

    def on_resize(self) -> None:
        """Share the rows anew once the screen knows how high it is."""
        self.call_after_refresh(lambda: self.show(self.app.drawn))

    def _row(self, run: Run, width: int, here: bool, focused: bool) -> Line:
        return run_list.row(
            run,
            width,
            here=here,
            focused=focused,
            marked=run.id == self.book.left,
            today=day_of(self.app.drawn.snapshot.at),
            simulated=self.app.drawn.snapshot.simulated,
        )

    def _heading(self, reading: Reading, size: Size) -> list[Line]:
        run, comparison = self.chosen, self.book.comparison
        if comparison is not None:
            return [heading("Comparison", f"{comparison.left} | {comparison.right}", size.width)]
        if run is None:
            return []
        kind = kind_of(run, simulated=reading.snapshot.simulated)
        name = f"{run.spec.experiment} {run.spec.preset}" + (f"  {kind}" if kind else "")
        place, count = self._listed.place
        begun = f"{second_of(begun_at(run))}, " if size.width >= _ROOMY else ""
        tail = f"{place} of {count}, {begun}{run.id}"
        return [heading(clean(name), clean(tail), size.width, Role.WARN if kind else Role.TITLE)]

    def _detail(self, reading: Reading, size: Size) -> list[Line]:
        room = self.query_one("#scroll").size
        run, comparison = self.chosen, self.book.comparison
        if room.width < 1:
            return []
        if comparison is not None:
            sides = self.book.by_id(comparison.left), self.book.by_id(comparison.right)
            return compared(comparison, *sides, Size(size.width, room.height))
        if run is None:
            return []
        lines = detail(run, self.book.watch_of(run), Size(size.width, room.height), self._plot)
        if self.book.trouble:
            lines[:0] = [line(Span(f"  ✖ {clean(self.book.trouble)}", Role.BAD))]
        return lines

    def _keys(self, reading: Reading, size: Size) -> list[Line]:
        """What the screen's own keys do to the run under the cursor."""
        items = [self._key(*item) for item in self._usable()]
        return [line(" ", flow(items, size.width - 1, "  " if size.width >= 100 else " "))]

    def _usable(self) -> list[tuple[str, str, str]]:
        """Key, word and action of what can be done now."""
        run = self.chosen
        if run is None:
            return []
        if self.book.comparison is not None:
            return [("esc", "back", "back")]
        items = [("esc", "list", "back")] if self._whole else [("enter", "open", "open")]
        watch = self.book.watch_of(run)
        plots = len(plots_of(run, watch, 0))
        if plots > 1 or (plots and watch is not None):
            items.append(("p", "plot", "plot"))
        if run.state in ENDED:
            items.append(("v", self._compare_word(run), "compare"))
        wanted = {"note", "export", "invalid"} if run.state in ENDED else {"note", "cancel"}
        wanted.add(CLAIMS[1])
        return items + [
            (key, word.lower(), f"keep('{what}')")
            for key, what, word in (*KEEPING, CLAIMS)
            if what in wanted and not (what == "invalid" and run.state == "invalid")
        ]

    def _compare_word(self, run: Run) -> str:
        if not self.book.left:
            return "compare"
        return "compare no more" if self.book.left == run.id else "compare with the marked one"

    def _key(self, key: str, word: str, action: str) -> Line:
        click = f"screen.{action}"
        return line(Span(key, Role.KEY, click), Span(f" {word}", Role.MUTED, click))

    # --- What the keys do -------------------------------------------------------------------

    @on(RowList.CursorMoved)
    def _choose_other(self) -> None:
        self._plot = 0
        self.query_one("#scroll").scroll_home(animate=False)
        self._wanted.set()
        self._draw()

    @on(RowList.Chosen)
    def _clicked(self, event: RowList.Chosen) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Give the run the whole screen."""
        if self.chosen is not None and not self._whole:
            self._whole = True
            self._draw()
            self.query_one("#scroll").focus()

    def action_back(self) -> None:
        """From the comparison, or from the run alone, to the list."""
        if self.book.comparison is not None:
            self.book.comparison = None
        self._whole = False
        self._draw()
        self._listed.focus()

    def action_plot(self) -> None:
        """The next of the run's plots; of one under way, the next measure."""
        run = self.chosen
        watch = self.book.watch_of(run)
        count = len(plots_of(run, watch, 0)) if run is not None else 0
        live = watch is not None and watch.arms and count == 1
        self._plot = (self._plot + 1) % max(1, len(MEASURES) if live else count)
        self._draw()

    def action_compare(self) -> None:
        """Mark the run, or compare it with the marked one."""
        run = self.chosen
        if run is None or self.book.comparison is not None:
            return
        if run.state not in ENDED:
            self.app.say("Compare", "Not now: it has not ended.", "warning")
        elif self.book.left in {"", run.id}:
            self.book.left = "" if self.book.left else run.id
            self._draw()
        else:
            self._compare(run.id)

    @work(group="compare", exclusive=True)
    async def _compare(self, right: str) -> None:
        try:
            await self.book.compare(await self.app.feed.client(), right)
        except ConsoleError as error:
            self.app.say("Compare", error.message, "error")
            return
        self.query_one("#scroll").scroll_home(animate=False)
        self._draw()
        self.query_one("#scroll").focus()

    def action_keep(self, what: str) -> None:
        """Cancel, note, export, mark invalid or conclude, after what must be asked."""
        run = self.chosen
        if self.app.asking or self.book.comparison is not None:
            return
        if run is None and what != CLAIMS[1]:
            return
        self.app.asking = True
        self.app.run_worker(keep(self.app, what, run), group="commands", exit_on_error=False)
