"""Themes are TOML files: ours ship with the console, the operator's lie beside their settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from a40console.model.toml_text import parse_toml
from a40console.tui.abilities import Depth
from a40console.tui.ink import Role

DEFAULT = "midnight"
SIXTEEN = "sixteen"
"""The theme of the terminal's own colours."""

FALLBACK = "textual-dark"
"""Textual's own theme, for the day when not even ours can be read."""

FALLBACK_SIXTEEN = "ansi-dark"

_FEW: frozenset[Depth] = frozenset({"16", "mono"})

_PLAIN = {"name", "dark", "luminosity_spread", "text_alpha", "variables", "ansi"}
_COLOURS = frozenset(f.name for f in fields(Theme)) - _PLAIN


class ThemeFileError(Exception):
    """A theme file that cannot be used, and why."""


@dataclass(frozen=True, slots=True)
class ThemeSet:
    """What the folders hold."""

    themes: dict[str, Theme] = field(default_factory=dict)
    failures: dict[Path, str] = field(default_factory=dict)


def shipped() -> Path:
    """The folder of our own themes: in the wheel, or beside the package in a checkout."""
    package = Path(str(files("a40console")))
    packaged = package / "themes"
    return packaged if packaged.is_dir() else package.parent / "themes"


def read_theme(path: Path) -> Theme:
    """Read one theme file.

    Raises:
        ThemeFileError: If it is not valid TOML or names an unknown key or colour.
    """
    try:
        data = _document(path)
        for key in data.keys() & _COLOURS:
            Color.parse(data[key])
        for name, colour in data.get("variables", {}).items():
            if name.endswith("style"):
                raise ValueError(f"{name} is no colour")
            Color.parse(colour)
        theme = Theme(**{"name": path.stem, **data})
        theme.to_color_system().generate()
    except (OSError, ValueError, ColorParseError, TypeError, AttributeError) as error:
        raise ThemeFileError(f"{path.name}: {error}") from error
    if theme.ansi:
        theme.variables = _ansi_variables(theme)
    return theme


def _document(path: Path) -> dict[str, Any]:
    if path.exists() and not path.is_file():
        raise ValueError("not a regular file")
    data = parse_toml(path.read_text(encoding="utf-8"))
    if not isinstance(data.get("name", ""), str):
        raise TypeError("name must be a text")
    return data


def _ansi_variables(theme: Theme) -> dict[str, str]:
    """All variables of a theme in the terminal's own colours.

    Textual's style sheet wants some that its own themes of the kind bring along, and draws others
    in the terminal's default, which may be the colour of the theme's background.
    """
    generated = theme.to_color_system().generate()
    grounds = {True: generated["background"], False: generated["foreground"]}
    return {
        **BUILTIN_THEMES["ansi-dark"].variables,
        **{
            name: grounds["background" in name or "corner" in name]
            for name, value in generated.items()
            if value.startswith("ansi_default")
        },
        **theme.variables,
    }


def load_themes(folders: Iterable[Path]) -> ThemeSet:
    """Read every theme in the folders; a later one replaces an earlier namesake."""
    found = ThemeSet()
    for folder in folders:
        for path in sorted(folder.glob("*.toml")):
            try:
                theme = read_theme(path)
            except ThemeFileError as error:
                found.failures[path] = str(error)
            else:
                found.themes[theme.name] = theme
    return found


def fitting(themes: Iterable[Theme], depth: Depth) -> Iterable[Theme]:
    """The themes that a terminal of this depth can show: with few colours only its own."""
    return (theme for theme in themes if theme.ansi or depth not in _FEW)


def worn(wanted: str, themes: Mapping[str, Theme], depth: Depth) -> str:
    """The wanted theme, or what must take its place: it is not there, or has too many colours."""
    few = depth in _FEW
    substitutes = (SIXTEEN, FALLBACK_SIXTEEN) if few else (DEFAULT, FALLBACK)
    for name in (wanted, *substitutes):
        if name in themes and (themes[name].ansi or not few):
            return name
    return FALLBACK


_BOLD = frozenset({Role.STRONG, Role.TITLE, Role.KEY, Role.BAD})
_FAINT = frozenset({Role.MUTED, Role.RULE})
_UNDERLINED = frozenset({Role.BAD})


def ink_styles(variables: Mapping[str, str]) -> Mapping[Role, Style]:
    """How each role looks in the theme with these variables.

    Where colours are few, or none, the gravest is underlined and the least is dim as well.

    Own resolution rather than component classes: those are matched against the whole style sheet
    for every role of every widget, which was three quarters of a screen switch.
    """
    return _styles(tuple(variables[_variable(role)] for role in Role))


@lru_cache(8)
def _styles(colours: tuple[str, ...]) -> Mapping[Role, Style]:
    few = any(colour.startswith("ansi_") for colour in colours)
    return {
        role: Style(
            color=Color.parse(colour).rich_color,
            bold=role in _BOLD or None,
            dim=(few and role in _FAINT) or None,
            underline=(few and role in _UNDERLINED) or None,
        )
        for role, colour in zip(Role, colours, strict=True)
    }


def _variable(role: Role) -> str:
    return "foreground" if role is Role.TEXT else f"ink-{role}"


def ink_defaults(theme: Theme) -> dict[str, str]:
    """Colours of the ink roles for a theme that does not name them itself."""
    generated = theme.to_color_system().generate()
    foreground = generated["foreground"]
    return {
        "ink-strong": foreground,
        "ink-muted": _faint(generated, 0.6),
        "ink-label": theme.secondary or theme.primary,
        "ink-title": theme.primary,
        "ink-rule": _faint(generated, 0.3),
        "ink-key": theme.accent or theme.primary,
        "ink-series": theme.primary,
        "ink-spark": theme.primary,
        "ink-second": theme.secondary or theme.primary,
        "ink-good": theme.success or theme.primary,
        "ink-warn": theme.warning or theme.primary,
        "ink-bad": theme.error or theme.primary,
    }


def _faint(generated: dict[str, str], share: float) -> str:
    """The foreground mixed into the background."""
    background, foreground = (
        Color.parse(generated["background"]),
        Color.parse(generated["foreground"]),
    )
    return background.blend(foreground, share).hex6
