"""What every command is called with: where things live, how output looks, the shared options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from a40console.commands.output import note
from a40console.paths import Paths

if TYPE_CHECKING:
    from a40console.config import Settings, SettingsProblem
    from a40console.tui.abilities import Abilities, Depth

ColorMode = Literal["auto", "truecolor", "256", "16", "mono"]
ColorSystem = Literal["standard", "256", "truecolor"]

F = TypeVar("F", bound=Callable[..., Any])

_SYSTEMS: dict[Depth, ColorSystem] = {
    "truecolor": "truecolor",
    "256": "256",
    "16": "standard",
}

json_option: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for scripts."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call of the console: its paths and the options that stand before the command."""

    paths: Paths
    color: ColorMode = "auto"
    mouse: bool = True
    ascii: bool | None = None
    """Draw with ASCII alone, or with more; None for what the terminal is found to take."""

    plain: bool = False
    """Sentences instead of a screen."""

    def settings(self) -> Settings:
        """The operator's settings.

        Raises:
            UsageError: If the settings file is broken.
        """
        from a40console.config import load_settings

        return load_settings(self.paths.config_file)

    def lenient_settings(self) -> tuple[Settings, tuple[SettingsProblem, ...]]:
        """The operator's settings for what only shows, and what is wrong: it stops nothing."""
        from a40console.config import lenient_settings

        return lenient_settings(self.paths.config_file)

    def noted_settings(self) -> Settings:
        """The operator's settings for what only shows; what is wrong is told beside the output."""
        settings, problems = self.lenient_settings()
        for problem in problems:
            note(f"Settings: {problem}")
        return settings

    def abilities(self, glyphs: str = "auto") -> Abilities:
        """What the terminal can show, by the options, else by its own word.

        Args:
            glyphs: The operator's setting, which an option overrules.
        """
        from a40console.tui.abilities import as_started, examine

        named = {None: glyphs, True: "ascii", False: "unicode"}[self.ascii]
        return examine(as_started(), color=self.color, glyphs=named)

    def draws_ascii(self, *, is_terminal: bool) -> bool:
        """Whether output keeps to ASCII: as asked, else where a terminal takes no more."""
        if self.ascii is not None or not is_terminal:
            return bool(self.ascii)
        return self.abilities().ascii

    def color_system(self, *, is_terminal: bool) -> ColorSystem | None:
        """Rich's name for the colours to use; None for none.

        A named mode holds whatever the output is; `auto` colours terminals, unless NO_COLOR is set.
        """
        if self.color == "auto" and not is_terminal:
            return None
        return _SYSTEMS.get(self.abilities().depth)
