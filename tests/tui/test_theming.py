"""Themes: ours are sound in every terminal, broken ones are reported and never fatal."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from a40console.tui.ink import Role
from a40console.tui.theming import (
    ThemeFileError,
    ink_defaults,
    ink_styles,
    load_themes,
    read_theme,
    shipped,
)

THEMES = sorted(shipped().glob("*.toml"))
DECORATION = {Role.RULE}
"""Lines that carry no meaning need no reading contrast."""


def test_our_themes_are_found() -> None:
    assert [path.stem for path in THEMES] == ["midnight"]


@pytest.mark.parametrize("path", THEMES, ids=lambda path: path.stem)
def test_surfaces_stay_distinct_in_256_colours(path: Path) -> None:
    generated = read_theme(path).to_color_system().generate()
    slots = [
        RichColor.parse(generated[name]).downgrade(ColorSystem.EIGHT_BIT).number
        for name in ("background", "surface", "panel")
    ]
    assert len(set(slots)) == 3


@pytest.mark.parametrize("path", THEMES, ids=lambda path: path.stem)
@pytest.mark.parametrize("surface", ["background", "surface"])
def test_every_text_reads_on_its_background(path: Path, surface: str) -> None:
    theme = read_theme(path)
    generated = theme.to_color_system().generate() | theme.variables
    background = Color.parse(generated[surface])
    for role in set(Role) - DECORATION:
        name = "foreground" if role is Role.TEXT else f"ink-{role}"
        assert contrast(Color.parse(generated[name]), background) >= 4.5, role


def contrast(one: Color, other: Color) -> float:
    """WCAG's contrast ratio."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: Color) -> float:
    parts = [channel / 255 for channel in color.rgb]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", sorted(BUILTIN_THEMES))
def test_textuals_own_themes_get_our_roles_too(name: str) -> None:
    theme = BUILTIN_THEMES[name]
    variables = theme.to_color_system().generate() | theme.variables | ink_defaults(theme)
    assert set(ink_styles(variables)) == set(Role)


@pytest.mark.parametrize(
    "content",
    [
        'primary = "no-such-colour"',
        'primary = "#5fafff"\nprimmary = "#000000"',
        "primary =",
        'primary = "#5fafff"\n[variables]\nink-good = "greenish"',
        'dark = true\nvariables = "no table"\nprimary = "#5fafff"',
        "primary = 5",
    ],
)
def test_a_broken_theme_is_reported_with_its_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.toml").write_text(content)
    (tmp_path / "good.toml").write_text('primary = "#5fafff"')
    found = load_themes([tmp_path, tmp_path / "absent"])
    assert list(found.themes) == ["good"]
    assert list(found.failures) == [tmp_path / "bad.toml"]
    assert "bad.toml" in found.failures[tmp_path / "bad.toml"]


def test_a_theme_of_the_operators_replaces_ours_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "midnight.toml").write_text('primary = "#123456"')
    found = load_themes([shipped(), tmp_path])
    assert found.themes["midnight"].primary == "#123456"


def test_an_unreadable_file_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ThemeFileError, match=r"none\.toml"):
        read_theme(tmp_path / "none.toml")
