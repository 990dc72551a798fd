"""The console application: modes, theme, keys, and the flow of readings to the screen in front."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.markup import escape
from textual import on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen

from a40console.model.command import BY_ID
from a40console.tui import keymap, theming
from a40console.tui.actions import perform
from a40console.tui.blank import blank_snapshot
from a40console.tui.crash import report_crash
from a40console.tui.feed import ClientFactory, Feed
from a40console.tui.messages import EventsArrived, ServiceFound, ServiceLost, SnapshotArrived
from a40console.tui.palette import system_commands
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.screens.overview import OverviewScreen
from a40console.tui.terminal import (
    BACKLOG_LIMIT,
    PatientDriver,
    Watchdog,
    leave_on_signals,
    output_backlog,
    repaint_if_torn,
)

if TYPE_CHECKING:
    from a40console.config import Settings
    from a40console.paths import Paths
    from a40console.service.client import ServiceClient


SWITCH_DELAY_S = 0.015


def _engine_screen() -> Screen[None]:
    from a40console.tui.screens.engine import EngineScreen

    return EngineScreen()


def _logs_screen() -> Screen[None]:
    from a40console.tui.screens.logs import LogsScreen

    return LogsScreen()


class ConsoleApp(App[None]):
    """Shows what the service says and passes on what the operator wants."""

    TITLE = "a40console"
    CSS_PATH = "app.tcss"
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
    }
    DEFAULT_MODE = "overview"
    BINDINGS: ClassVar[list[BindingType]] = [
        *keymap.bindings(),
        Binding("ctrl+q", "quit", "Leave at once", show=False, priority=True),
        Binding("ctrl+c", "command('console.quit')", "Leave", show=False, system=True),
    ]

    def __init__(
        self,
        client_factory: ClientFactory,
        settings: Settings,
        *,
        theme_folders: Sequence[Path] = (),
        clock: Callable[[], float] = time.monotonic,
        driver_class: type[Driver] | None = None,
        watchdog: Watchdog | None = None,
        crash_log: Path | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self.animation_level = "none"
        self.feed = Feed(client_factory, self.post_message)
        self.keys = keymap.resolve(settings.keys)
        self._clock = clock
        self._watchdog = watchdog
        self._crash_log = crash_log
        self._snapshot = blank_snapshot("no snapshot yet")
        self._arrived_s = clock()
        self._link = Link("connecting")
        self.past = Past()
        self._seen_event: int | None = None
        self.asking = False
        """Whether a command has yet to ask the operator what it must."""

        self._complaints = self._dress(
            settings.console.theme, (theming.shipped(), *theme_folders)
        ) + list(self.keys.problems)

    @property
    def reading(self) -> Reading:
        """What the screen in front is shown."""
        last = self._snapshot.events_last_id
        return Reading(
            snapshot=self._snapshot,
            link=self._link,
            age_s=self._clock() - self._arrived_s,
            unread=max(0, last - self._seen_event) if self._seen_event is not None else 0,
            past=self.past,
            keymap=self.keys,
        )

    def delay_update(self, delay: float = SWITCH_DELAY_S) -> None:
        """Mask a change of view for less time than Textual does: a key is answered in 50 ms."""
        super().delay_update(min(delay, SWITCH_DELAY_S))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own colours, for themes that do not name them."""
        return theming.ink_defaults(self.current_theme)

    def _dress(self, wanted: str, folders: Sequence[Path]) -> list[str]:
        """Put the theme on before any style is computed; answers what went wrong."""
        found = theming.load_themes(folders)
        for theme in found.themes.values():
            self.register_theme(theme)
        complaints = list(found.failures.values())
        if wanted not in self.available_themes:
            complaints.append(f"there is no theme {wanted!r}")
            wanted = "midnight" if "midnight" in found.themes else theming.FALLBACK
        self.set_reactive(App.theme, wanted)
        self.stylesheet.set_variables(self.get_css_variables())
        return complaints

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
        if self.reading.stale:
            self.show_reading()

    def show_reading(self) -> None:
        """Draw the present reading on the mode's screen, unless the terminal does not keep up."""
        if output_backlog(self) > BACKLOG_LIMIT:
            return
        front = self.screen_stack[0] if self.screen_stack else None
        if isinstance(front, MonitorScreen):
            front.show(self.reading)

    @on(SnapshotArrived)
    def _take_snapshot(self, message: SnapshotArrived) -> None:
        self._snapshot = message.snapshot
        self._arrived_s = self._clock()
        self._link = Link("live")
        self.past.observe(message.snapshot)
        self.show_reading()

    @on(ServiceFound)
    def _take_past(self, message: ServiceFound) -> None:
        if self._seen_event is None:
            self._seen_event = message.hello.events_last_id
        self.past.recall(message.history)
        self.past.mark(message.events)

    @on(EventsArrived)
    def _take_events(self, message: EventsArrived) -> None:
        self.past.mark(message.events)

    @on(ServiceLost)
    def _take_loss(self, message: ServiceLost) -> None:
        self._link = Link("lost", message.trouble)
        self.show_reading()

    def mark_events_read(self) -> None:
        """The operator has seen the journal up to now."""
        self._seen_event = self._snapshot.events_last_id
        self.show_reading()

    def say(self, title: str, message: str, severity: str = "information") -> None:
        """A toast; text from elsewhere is never read as markup."""
        timeout = 5 if severity == "information" else 15
        self.notify(message, title=title, severity=severity, timeout=timeout, markup=False)  # type: ignore[arg-type]

    def action_command(self, command_id: str) -> None:
        """Perform a command of the table, whether by key, button, click or palette."""
        noun, _, verb = command_id.partition(".")
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
        lines = report_crash(self._exception, self._crash_log)
        self.panic(*(escape(entry) for entry in lines))


def run_console(paths: Paths, settings: Settings, *, mouse: bool = True) -> int:
    """Run the console on this terminal; its exit code, 128 + n after signal n.

    Without `mouse` the terminal keeps its own selection, and mouse moves send nothing over SSH.
    """

    def client() -> ServiceClient:
        from a40console.service.client import ServiceClient

        return ServiceClient(paths.control_socket)

    watchdog = Watchdog()
    app = ConsoleApp(
        client,
        settings,
        theme_folders=(paths.themes,),
        driver_class=PatientDriver,
        watchdog=watchdog,
        crash_log=paths.state / "console.log",
    )
    app.run(mouse=mouse)
    code = app.return_code or 0
    # Textual's input thread may outlive the application on a terminal that is gone.
    watchdog.leaving(code)
    return code
