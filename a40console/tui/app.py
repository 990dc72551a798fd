"""The console application: modes, theme, keys, and the flow of readings to the screen in front."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from rich.markup import escape
from textual import on
from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Event, Key, MouseDown
from textual.screen import Screen

from a40console.model.command import BY_ID
from a40console.model.control import Digest
from a40console.tui import dialogs, keymap
from a40console.tui.abilities import Abilities, as_started, examine
from a40console.tui.absence import Absence
from a40console.tui.actions import perform
from a40console.tui.blank import blank_snapshot
from a40console.tui.crash import report_crash
from a40console.tui.demo_home import is_demo
from a40console.tui.feed import ClientFactory, Feed
from a40console.tui.messages import (
    EventsArrived,
    HistoryArrived,
    ServiceFound,
    ServiceLost,
    SnapshotArrived,
)
from a40console.tui.palette import system_commands
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.screens.overview import OverviewScreen
from a40console.tui.terminal import PatientDriver, Watchdog, leave_on_signals, repaint_if_torn
from a40console.tui.terminal_app import HERE, Surroundings, TerminalApp
from a40console.tui.time_control import TimeControl
from a40console.tui.toasts import Severity, toast

if TYPE_CHECKING:
    from a40console.config import Settings, SettingsProblem
    from a40console.paths import Paths
    from a40console.service.client import ServiceClient


SETTLE_S = 0.08
"""A screen that is new has its layout by then."""

SWITCH_DELAY_S = 0.015


def _engine_screen() -> Screen[None]:
    from a40console.tui.screens.engine import EngineScreen

    return EngineScreen()


def _logs_screen() -> Screen[None]:
    from a40console.tui.screens.logs import LogsScreen

    return LogsScreen()


def _events_screen() -> Screen[None]:
    from a40console.tui.screens.events import EventsScreen

    return EventsScreen()


def _cost_screen() -> Screen[None]:
    from a40console.tui.screens.cost import CostScreen

    return CostScreen()


def _sessions_screen() -> Screen[None]:
    from a40console.tui.screens.sessions import SessionsScreen

    return SessionsScreen()


def _runs_screen() -> Screen[None]:
    from a40console.tui.screens.runs import RunsScreen

    return RunsScreen()


def _why_screen() -> Screen[None]:
    from a40console.tui.screens.explain import ExplainScreen

    return ExplainScreen()


class ConsoleApp(TerminalApp):
    """Shows what the service says and passes on what the operator wants."""

    TITLE = "a40console"
    CSS_PATH = ["app.tcss", "terminal.tcss"]
    HORIZONTAL_BREAKPOINTS = [
        (0, "-narrow"),
        (100, "-normal"),
        (160, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [
        (0, "-tiny"),
        (18, "-short"),
        (32, "-normal-height"),
        (46, "-tall"),
    ]
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {
        "overview": OverviewScreen,
        "engine": _engine_screen,
        "logs": _logs_screen,
        "events": _events_screen,
        "cost": _cost_screen,
        "sessions": _sessions_screen,
        "runs": _runs_screen,
        "why": _why_screen,
    }
    DEFAULT_MODE = "overview"
    BINDINGS: ClassVar[list[BindingType]] = [
        *keymap.bindings(),
        Binding("ctrl+q", "quit", "Leave at once", show=False, priority=True),
        Binding("ctrl+c", "command('console.quit')", "Leave", show=False, system=True),
        Binding("comma", "command('time.back')", "Back in time", show=False),
        Binding("full_stop", "command('time.forward')", "Forward in time", show=False),
        Binding("end", "command('time.now')", "Now", show=False),
    ]

    def __init__(
        self,
        client_factory: ClientFactory,
        settings: Settings,
        *,
        surroundings: Surroundings = HERE,
        clock: Callable[[], float] = time.monotonic,
        driver_class: type[Driver] | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        super().__init__(settings.console, surroundings, clock=clock, driver_class=driver_class)
        self._remote = surroundings.remote
        self._forbidden = surroundings.forbidden
        self.demo = surroundings.demo
        """Whether service and engine end with the screen."""

        self.feed = Feed(client_factory, self.post_message)
        self.chosen_profile = settings.profile or ""
        self.keys = keymap.resolve(settings.keys)
        self._clock = clock
        self._watchdog = watchdog
        self._snapshot = blank_snapshot("no snapshot yet")
        self._arrived_s = clock()
        self._link = Link("connecting")
        self.past = Past()
        self.time_control = TimeControl(self, clock)
        self.absence = Absence(self, clock)
        self.asking = False
        """Whether a command has yet to ask the operator what it must."""

        wrong = surroundings.settings_problems
        self._complaints = [*wrong, *self.theme_problems, *self.keys.problems]

    @property
    def reading(self) -> Reading:
        """What the screen in front is shown."""
        return Reading(
            snapshot=self._snapshot,
            link=self._link,
            age_s=self._clock() - self._arrived_s,
            unread=self.absence.unread(self._snapshot.events_last_id),
            past=self.past,
            keymap=self.keys,
            view=self.time_control.view,
            about=self.about,
            remote=self._remote,
            forbidden=self._forbidden,
        )

    @property
    def drawn(self) -> Reading:
        """What the screens draw: the reading, or the one at which the picture was frozen."""
        return self.time_control.drawn(self.reading)

    def look_at(self, at_s: float) -> None:
        """Show the overview as it was shortly after an instant, a Unix time."""
        self.time_control.look_at(at_s)
        self.switch_mode("overview")
        self.show_reading()

    def delay_update(self, delay: float = SWITCH_DELAY_S) -> None:
        """Mask a change of view for less time than Textual does: a key is answered in 50 ms."""
        super().delay_update(min(delay, SWITCH_DELAY_S))

    def on_mount(self) -> None:
        """Take the operator's keys, and start to follow the service after the first paint."""
        if self._watchdog is not None:
            self._watchdog.start(self.leave)
            leave_on_signals(self.leave)
        self.set_keymap(dict(self.keys.moved))
        for command_id, key in self.keys.moved.items():
            if not BY_ID[command_id].key:
                self.bind(key, f"command('{command_id}')", show=False)
        self.set_interval(1.0, self._beat, name="beat")
        self.settle(SETTLE_S)
        self.call_after_refresh(self._follow)
        if self._complaints:
            self.say("Settings", "\n".join(self._complaints), "warning")

    def leave(self, code: int) -> None:
        """End with this exit code, the terminal restored; the watchdog sees that it happens."""
        if self._watchdog is not None:
            self._watchdog.leaving(code)
        self.exit(return_code=code)

    def _follow(self) -> None:
        self.run_worker(self.feed.follow(), name="feed", group="feed", exclusive=True)

    async def on_unmount(self) -> None:
        """Give the connection back."""
        self.workers.cancel_group(self, "feed")
        await self.feed.close()

    def _beat(self) -> None:
        """Once a second: the loop lives; figures that no longer come grow old on the screen."""
        if self._watchdog is not None:
            self._watchdog.beat()
        repaint_if_torn(self)
        if self.reading.stale or self.time_control.paused:
            self._show_figures()

    def _show_figures(self) -> None:
        """Draw what came by itself, as often as the link takes it; keys do not wait for that."""
        if self.may_draw(self._snapshot.interval_s):
            self.show_reading()

    def show_reading(self) -> None:
        """Draw the present reading on the mode's screen."""
        front = self.screen_stack[0] if self.screen_stack else None
        if isinstance(front, MonitorScreen) and front.is_mounted:
            front.show(self.drawn)
        self.time_control.fetch()

    @on(SnapshotArrived)
    def _take_snapshot(self, message: SnapshotArrived) -> None:
        if self._link.state == "connecting":
            self.settle(SETTLE_S)
        self._snapshot = message.snapshot
        self._arrived_s = self._clock()
        self._link = Link("live")
        self.past.observe(message.snapshot)
        self.watch_over(message.snapshot)
        self._show_figures()

    @on(ServiceFound)
    def _take_past(self, message: ServiceFound) -> None:
        self.absence.found(message.hello, message.read)
        self.past.recall(message.history)
        self.past.mark(message.events)

    @on(HistoryArrived)
    def _take_history(self, message: HistoryArrived) -> None:
        self.past.recall(message.points)

    @on(EventsArrived)
    def _take_events(self, message: EventsArrived) -> None:
        self.past.mark(message.events)

    @on(ServiceLost)
    def _take_loss(self, message: ServiceLost) -> None:
        self._link = Link("lost", message.trouble)
        self.absence.lost(self._snapshot.events_last_id)
        self._show_figures()

    def mark_events_read(self) -> None:
        """The operator has seen the journal up to now."""
        if self.reading.unread:
            self.absence.mark_read(self._snapshot.events_last_id)
            self.show_reading()

    async def on_event(self, event: Event) -> None:
        """Notice that somebody is here."""
        if isinstance(event, Key | MouseDown):
            self.absence.touched(self._snapshot.events_last_id)
        await super().on_event(event)

    def show_digest(self, digest: Digest) -> None:
        """Tell what happened meanwhile, unless the operator is being asked something."""
        if not self.asking and len(self.screen_stack) == 1:
            dialogs.show_digest(self, "While you were away", digest)

    def say(self, title: str, message: str, severity: Severity = "information") -> None:
        """A toast; text from elsewhere is never read as markup."""
        toast(self, title, message, severity)

    def action_command(self, command_id: str) -> None:
        """Perform a command of the table, whether by key, button, click or palette."""
        noun, _, verb = command_id.partition(".")
        if self.time_control.perform(command_id):
            return
        if noun == "view":
            self.switch_mode(verb)
            return
        if self.asking or len(self.screen_stack) > 1:
            return  # one question at a time: a key pressed twice must not stack dialogs
        self.asking = True
        self.run_worker(perform(self, BY_ID[command_id]), group="commands", exit_on_error=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the palette offers: the table, and the theme."""
        return system_commands(self)

    def _fatal_error(self) -> None:
        """A bug of ours: a few lines for the operator, the traceback for the log."""
        log = self.state / "console.log" if self.state else None
        lines = report_crash(self._exception, log)
        self.panic(*(escape(entry) for entry in lines))


def run_console(
    paths: Paths,
    settings: Settings,
    problems: Iterable[SettingsProblem] = (),
    *,
    mouse: bool = True,
    abilities: Abilities | None = None,
) -> int:
    """Run the console on this terminal; its exit code, 128 + n after signal n.

    Without `mouse` the terminal keeps its own selection, and mouse moves send nothing over SSH.
    Without `abilities` the terminal is examined here.
    """

    def client() -> ServiceClient:
        from a40console.service.client import console_client

        return console_client(paths)

    watchdog = Watchdog()
    app = ConsoleApp(
        client,
        settings,
        surroundings=Surroundings(
            abilities=abilities or examine(as_started(), glyphs=settings.console.glyphs),
            theme_folders=(paths.themes,),
            state=paths.state,
            demo=is_demo(paths),
            remote=paths.remote,
            forbidden=paths.forbidden,
            settings_problems=tuple(map(str, problems)),
        ),
        driver_class=PatientDriver,
        watchdog=watchdog,
    )
    # What is here now stays: collections that pass over it are shorter, and garbage goes sooner.
    gc.freeze()
    app.run(mouse=mouse)
    code = app.return_code or 0
    # Textual's input thread may outlive the application on a terminal that is gone.
    watchdog.leaving(code)
    return code
