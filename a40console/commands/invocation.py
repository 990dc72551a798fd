"""What every command is called with: where things live, how output looks, the shared options."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from a40console.paths import Paths

if TYPE_CHECKING:
    from a40console.config import Settings

ColorMode = Literal["auto", "truecolor", "256", "16", "mono"]
ColorSystem = Literal["auto", "standard", "256", "truecolor"]

F = TypeVar("F", bound=Callable[..., Any])

_SYSTEMS: dict[ColorMode, ColorSystem] = {
    "auto": "auto",
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

    def settings(self) -> Settings:
        """The operator's settings.

        Raises:
            UsageError: If the settings file is broken.
        """
        from a40console.config import load_settings

        return load_settings(self.paths.config_file)

    def color_system(self, *, is_terminal: bool) -> ColorSystem | None:
        """Rich's and Textual's name for the colours to use; None for none.

        A named mode holds whatever the output is; `auto` colours terminals, unless NO_COLOR is set.
        """
        if self.color == "mono":
            return None
        if self.color == "auto" and (not is_terminal or os.environ.get("NO_COLOR")):
            return None
        return _SYSTEMS[self.color]
