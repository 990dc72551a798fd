"""Themes: ours are sound in every terminal, broken ones are reported and never fatal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.palette import Palette
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from a40console.tui.abilities import Depth
from a40console.tui.ink import Role
from a40console.tui.theming import (
    ThemeFileError,
    fitting,
    ink_defaults,
    ink_styles,
    load_themes,
    read_theme,
    shipped,
    worn,
)

SHIPPED = [read_theme(path) for path in sorted(shipped().glob("*.toml"))]
DEEP = [theme for theme in SHIPPED if not theme.ansi]
FEW = [theme for theme in SHIPPED if theme.ansi]
DECORATION = {Role.RULE}
"""Lines that carry no meaning need no reading contrast."""

ALIKE = [{Role.STRONG, Role.TITLE}, {Role.SERIES, Role.SPARK}]
"""Told apart by their place: emphasised text, and one speed as a line or as a spark."""

XTERM = Palette(
    [
        *((0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0)),
        *((0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)),
        *((127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0)),
        *((92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255)),
    ]
)
"""xterm's sixteen colours."""


def name_of(theme: Theme) -> str:
    return theme.name


def variables(theme: Theme) -> dict[str, str]:
    return ink_defaults(theme) | theme.to_color_system().generate() | theme.variables


def as_given(color: Color) -> Color:
    return color


def in_256(color: Color) -> Color:
    """The colour that a terminal of 256 colours shows for it."""
    shown = color.rich_color.downgrade(ColorSystem.EIGHT_BIT)
    return Color.from_rich_color(RichColor.from_triplet(shown.get_truecolor()))


def in_16(color: Color) -> Color:
    assert color.ansi is not None
    return Color(*XTERM[color.ansi])


def test_our_themes_are_found() -> None:
    assert {theme.name for theme in DEEP} == {"midnight", "daylight", "high-contrast"}
    assert [theme.name for theme in FEW] == ["sixteen"]
    assert not next(theme for theme in SHIPPED if theme.name == "daylight").dark


@pytest.mark.parametrize("theme", DEEP, ids=name_of)
def test_surfaces_stay_distinct_in_256_colours(theme: Theme) -> None:
    generated = theme.to_color_system().generate()
    slots = [
        RichColor.parse(generated[name]).downgrade(ColorSystem.EIGHT_BIT).number
        for name in ("background", "surface", "panel")
    ]
    assert len(set(slots)) == 3


@pytest.mark.parametrize("theme", DEEP, ids=name_of)
@pytest.mark.parametrize("surface", ["background", "surface"])
@pytest.mark.parametrize("shown", [as_given, in_256], ids=["truecolor", "256"])
def test_every_text_reads_on_its_background(
    theme: Theme, surface: str, shown: Callable[[Color], Color]
) -> None:
    colours = variables(theme)
    background = shown(Color.parse(colours[surface]))
    least = 7 if theme.name == "high-contrast" else 4.5
    for role in set(Role) - DECORATION:
        assert contrast(shown(ink(colours, role)), background) >= least, role


@pytest.mark.parametrize("theme", FEW, ids=name_of)
def test_every_text_reads_in_the_terminals_own_colours(theme: Theme) -> None:
    colours = variables(theme)
    background = in_16(Color.parse(colours["background"]))
    for role in set(Role) - DECORATION:
        assert contrast(in_16(ink(colours, role)), background) >= 4.5, role


@pytest.mark.parametrize("theme", SHIPPED, ids=name_of)
@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT])
def test_roles_of_different_meaning_look_different(theme: Theme, system: ColorSystem) -> None:
    styles = ink_styles(variables(theme))
    for one, other in combinations(Role, 2):
        if {one, other} not in ALIKE:
            assert look(styles[one], system) != look(styles[other], system), (one, other)


def look(style: Style, system: ColorSystem) -> tuple[object, ...]:
    """What an operator sees of a style in so many colours."""
    assert style.color is not None
    colour = style.color.downgrade(system) if style.color.triplet else style.color
    return (colour.number, colour.triplet, style.bold, style.dim, style.underline)


def test_without_any_colour_what_is_grave_still_stands_out() -> None:
    styles = ink_styles(variables(FEW[0]))
    assert styles[Role.BAD].without_color != styles[Role.TEXT].without_color
    assert styles[Role.BAD].without_color != styles[Role.WARN].without_color
    assert styles[Role.MUTED].dim


def ink(colours: dict[str, str], role: Role) -> Color:
    return Color.parse(colours["foreground" if role is Role.TEXT else f"ink-{role}"])


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
    assert set(ink_styles(variables(BUILTIN_THEMES[name]))) == set(Role)


@pytest.mark.parametrize(
    ("wanted", "depth", "taken"),
    [
        ("daylight", "truecolor", "daylight"),
        ("daylight", "256", "daylight"),
        ("daylight", "16", "sixteen"),
        ("midnight", "mono", "sixteen"),
        ("sixteen", "truecolor", "sixteen"),
        ("noon", "256", "midnight"),
        ("noon", "16", "sixteen"),
    ],
)
def test_a_theme_is_worn_where_the_terminal_has_its_colours(
    wanted: str, depth: Depth, taken: str
) -> None:
    themes = {theme.name: theme for theme in SHIPPED}
    assert worn(wanted, themes, depth) == taken


def test_where_none_of_ours_can_be_read_textuals_serve() -> None:
    assert worn("midnight", BUILTIN_THEMES, "256") == "textual-dark"
    assert worn("midnight", BUILTIN_THEMES, "16") == "ansi-dark"


def test_few_colours_are_offered_their_own_themes_alone() -> None:
    assert list(fitting(SHIPPED, "16")) == FEW
    assert list(fitting(SHIPPED, "256")) == SHIPPED


@pytest.mark.parametrize(
    "content",
    [
        'primary = "no-such-colour"',
        'primary = "#5fafff"\nprimmary = "#000000"',
        "primary =",
        'primary = "#5fafff"\n[variables]\nink-good = "greenish"',
        'dark = true\nvariables = "no table"\nprimary = "#5fafff"',
        "primary = 5",
        'primary = "#5fafff"\nluminosity_spread = "wide"',
        'primary = "#5fafff"\n[variables]\nlink-style = "#ffffff"',
        "dark = true",
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


@pytest.mark.parametrize("text", ['name = ["a"]', f"x = {'[' * 100_000}"])
def test_a_name_that_is_none_and_depth_are_notices(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.toml").write_text(f'primary = "#123456"\n{text}\n')
    assert list(load_themes([tmp_path]).failures) == [tmp_path / "bad.toml"]


def test_a_theme_file_may_have_a_byte_order_mark_and_no_endless_number(tmp_path: Path) -> None:
    text = 'primary = "#88c0d0"\n'
    (tmp_path / "marked.toml").write_text(text, encoding="utf-8-sig")
    (tmp_path / "endless.toml").write_text(text + "luminosity_spread = " + "9" * 5000)
    found = load_themes([tmp_path])
    assert "marked" in found.themes
    assert any("64 bits" in why for why in found.failures.values())
