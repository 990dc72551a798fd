"""An application that fits its terminal: its colours, its characters, its size, its link."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import COLOR_SYSTEMS, RenderableType
from rich.segment import Segment
from textual import on
from textual._styles_cache import StylesCache
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.driver import Driver
from textual.events import Resize
from textual.filter import ANSIToTruecolor, LineFilter, Monochrome, NoColor
from textual.screen import Screen

from a40console.model.snapshot import Snapshot
from a40console.tui import choices, clipboard, theming
from a40console.tui.abilities import Abilities
from a40console.tui.alarms import Alarms, sequence
from a40console.tui.filters import line_filters
from a40console.tui.pace import Pace
from a40console.tui.repaint import cells_only
from a40console.tui.screens.small import TooSmallScreen, too_small
from a40console.tui.screens.themes import ThemeDialog
from a40console.tui.terminal import (
    BACKLOG_LIMIT,
    PatientDriver,
    TerminalAnswered,
    driver_of,
    output_backlog,
)
from a40console.tui.toasts import toast

if TYPE_CHECKING:
    from a40console.config import ConsoleSettings

_SYSTEMS = {"truecolor": "truecolor", "256": "256", "16": "standard", "mono": "standard"}


_KEPT_CUTS = 512
"""Rich keeps 16,384 texts that were cut in two, 6 MB; hardly one of a live screen returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where the console finds itself."""

    abilities: Abilities = field(default_factory=Abilities)
    theme_folders: Sequence[Path] = ()
    """The operator's own themes."""

    state: Path | None = None
    """Where choices, copies and crashes are kept; None keeps none."""

    demo: bool = False
    """Whether service and engine end with the screen."""

    remote: str = ""
    """The machine of the service; empty for this one."""

    forbidden: str = ""
    """Who forbade to act from here; empty where nobody did."""

    settings_problems: Sequence[str] = ()
    """What is wrong in the settings file, one line each."""


HERE = Surroundings()


class TerminalApp(App[None]):
    """What the console is on its terminal, whatever it shows."""

    def __init__(
        self,
        look: ConsoleSettings,
        surroundings: Surroundings,
        *,
        clock: Callable[[], float] = time.monotonic,
        driver_class: type[Driver] | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self.animation_level = "none"
        self.abilities = surroundings.abilities
        self.state = surroundings.state
        self.alarms = Alarms(clock)
        self._look = look
        self._pace = Pace(clock)
        self._frame_ends = False
        self._settling = 0
        self._told_slow = False
        self._own_filters = line_filters(self.abilities)
        self.no_color = self.abilities.depth == "mono"
        # Textual reads its colours from the environment of its import; this needs no such order.
        self.console._color_system = COLOR_SYSTEMS[_SYSTEMS[self.abilities.depth]]  # noqa: SLF001
        self.theme_problems = self._dress((theming.shipped(), *surroundings.theme_folders))
        """What is wrong with the operator's themes, one line each."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters, then what this terminal needs; every painted row goes through them.

        Not Textual's for NO_COLOR: it sends greys, which are colours still.
        """
        unwanted: tuple[type[LineFilter], ...] = (Monochrome, NoColor)
        if self.native_ansi_color:  # known from the first row on, before Textual's watcher ran
            unwanted = (*unwanted, ANSIToTruecolor)
        kept = [entry for entry in super().get_line_filters() if not isinstance(entry, unwanted)]
        return [*kept, *self._own_filters]

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own colours, for themes that do not name them."""
        return theming.ink_defaults(self.current_theme)

    def _dress(self, folders: Sequence[Path]) -> list[str]:
        """Put the theme on before any style is computed; answers what went wrong."""
        found = theming.load_themes(folders)
        for theme in found.themes.values():
            self.register_theme(theme)
        self._offered = tuple(theming.fitting(found.themes.values(), self.abilities.depth))
        complaints = list(found.failures.values())
        wanted = choices.remembered_theme(self.state, self._look.theme)
        if wanted not in self.available_themes and wanted != self._look.theme:
            wanted = self._look.theme
        if wanted not in self.available_themes:
            complaints.append(f"there is no theme {wanted!r}")
            wanted = theming.DEFAULT
        self.set_reactive(
            App.theme, theming.worn(wanted, self.available_themes, self.abilities.depth)
        )
        self.stylesheet.set_variables(self.get_css_variables())
        return complaints

    def action_change_theme(self) -> None:
        """Offer the themes; the choice is remembered."""
        if len(self.screen_stack) == 1:
            self.run_worker(self._choose_theme(), group="commands")

    async def _choose_theme(self) -> None:
        chosen = await self.push_screen_wait(ThemeDialog("Theme", self._offered, self.theme))
        if chosen is None:
            return
        self.theme = chosen
        trouble = choices.remember_theme(self.state, self._look.theme, chosen)
        if trouble:
            toast(self, "Theme", trouble, "warning")

    @property
    def about(self) -> str:
        """What the console has to say of itself; empty while all is as usual."""
        parts = []
        if self._pace.every_s is not None:
            parts.append(f"every {max(1, round(self._pace.every_s))} s")
        if self.alarms.muted:
            parts.append("alarms off")
        return ", ".join(parts)

    def on_mount(self) -> None:
        """Have the terminal say whether it answers, before anything is drawn."""
        driver = driver_of(self)
        if isinstance(driver, PatientDriver) and driver.ask():
            self._pace.greeted()

    def may_draw(self, interval_s: float) -> bool:
        """Whether a frame of new figures may be drawn now, and if so, that it will be."""
        if not self._pace.may_draw(jammed=output_backlog(self) > BACKLOG_LIMIT):
            return False
        self._pace.drawn(interval_s)
        self._frame_ends = True
        if self._pace.slow is not self._told_slow:
            self._told_slow = self._pace.slow
            every_s = max(1, round(self._pace.every_s or 0))
            slow = f"Drawing every {every_s} s: the link is slow. Keys are answered as before."
            toast(self, "Link", slow if self._told_slow else "It keeps up again.", "information")
        return True

    def settle(self, seconds: float) -> None:
        """Draw nothing until the layout is found, then everything once.

        A screen that gets its first figures is laid out, drawn, and laid out again as its panels
        grow: three to five whole screens, 90 KB, for which a slow link takes half a minute.
        """
        if not isinstance(driver_of(self), PatientDriver):
            return
        self._settling += 1
        self.set_timer(seconds, self._settled, name="settle")

    def _settled(self) -> None:
        self._settling -= 1
        if not self._settling:
            self.refresh(layout=True)

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Draw what changed, cell by cell; of figures, have the terminal say when it took them."""
        if self._settling or renderable is None:
            return
        super()._display(screen, cells_only(renderable))
        driver = driver_of(self)
        if self._frame_ends and isinstance(driver, PatientDriver) and self._pace.asks:
            self._frame_ends = False
            if driver.ask():
                self._pace.asked()

    def post_display_hook(self) -> None:
        """After a frame: forget its cuts."""
        _forget_cuts()

    @on(TerminalAnswered)
    def _pace_frames(self) -> None:
        self._pace.answered()

    def watch_over(self, snapshot: Snapshot) -> None:
        """Call the operator for what is grave and new, as the settings say."""
        text = self.alarms.observe(snapshot)
        if text and self._look.alarms != "off":
            self.write_to_terminal(sequence(text, self._look.alarms, self.abilities.multiplexer))

    def mute_alarms(self) -> None:
        """Alarms off, or on again."""
        self.alarms.muted = not self.alarms.muted
        said = "Off until this key is pressed again." if self.alarms.muted else "On."
        if self._look.alarms == "off":
            said = "The settings have them off: [console] alarms."
        toast(self, "Alarms", said, "information")

    def write_to_terminal(self, text: str) -> bool:
        """Write a sequence of ours between two frames; answers whether there is a terminal."""
        driver = driver_of(self)
        if driver is None:
            return False
        driver.write(text)
        driver.flush()
        return True

    def pop_screen(self) -> AwaitComplete:
        """Close the dialog in front, and let go of it.

        Textual keeps the widgets of a thousand styles in a cache of all instances (its issue 6665):
        30 MiB of closed dialogs.
        """
        StylesCache.get_inner_outer.cache_clear()
        return super().pop_screen()

    def copy_to_clipboard(self, text: str) -> None:
        """What widgets of Textual copy, by our own ways, and said."""
        self._clipboard = text
        toast(self, "Copy", clipboard.copy(self, text), "information")

    def on_resize(self, event: Resize) -> None:
        """Say so where nothing fits any more, whatever was open; it goes by itself."""
        if not self.screen_stack:
            return
        if too_small(event.size) and not isinstance(self.screen, TooSmallScreen):
            self.push_screen(TooSmallScreen())


def _forget_cuts() -> None:
    cuts = Segment._split_cells  # noqa: SLF001
    if cuts.cache_info().currsize > _KEPT_CUTS:
        cuts.cache_clear()
