"""What every painted row goes through where the terminal has no colours or only ASCII."""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from a40console.tui.abilities import Abilities
from a40console.tui.glyphs import to_ascii


class InAscii(LineFilter):
    """Puts an ASCII character of the same width in the place of every other."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The row in ASCII; here and not in the panels, so that nothing of it is forgotten."""
        return [Segment(to_ascii(text), style, control) for text, style, control in segments]


class Colourless(LineFilter):
    """Leaves bold, dim, underlined and reversed text, and sends no colour at all."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The row without any colour, not even the sequence for the terminal's own."""
        return [
            Segment(text, style and _without_colour(style), control)
            for text, style, control in segments
        ]


@lru_cache(1024)
def _without_colour(style: Style) -> Style:
    return style.without_color


def line_filters(abilities: Abilities) -> list[LineFilter]:
    """The filters for a terminal, in their order."""
    filters: list[LineFilter] = []
    if abilities.ascii:
        filters.append(InAscii())
    if abilities.depth == "mono":
        filters.append(Colourless())
    return filters
