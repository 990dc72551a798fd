"""How a line of the engine's output is painted: gutter, stamp, message, what is searched for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style

from a40console.model.log_line import Level, LogLine, split_stamp
from a40console.tui.ink import Role
from a40console.tui.log_buffer import is_own

GUTTER = 4
"""Cursor, level, whether it can be explained, and a blank."""

_GLYPHS = {Level.ERROR: "✖", Level.WARN: "▲"}
_ROLES = {
    Level.ERROR: Role.BAD,
    Level.WARN: Role.WARN,
    Level.INFO: Role.TEXT,
    Level.DEBUG: Role.MUTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What the gutter says of a row besides its level."""

    here: bool
    """Whether the cursor is on it."""

    selected: bool
    explained: bool
    first: bool
    """Whether the line begins in this row."""


class LogInk:
    """Paints in the colours of one theme."""

    def __init__(self, ground: Style, inks: Mapping[Role, Style]) -> None:
        self._styles = {role: ground + ink for role, ink in inks.items()}

    def gutter(self, line: LogLine, mark: Mark) -> list[Segment]:
        """Cursor or selection, level, explained or not."""
        place = "▸" if mark.here else ("│" if mark.selected else " ")
        glyph = "" if is_own(line) else _GLYPHS.get(line.level, "")
        if glyph and (line.continues or not mark.first):
            glyph = "│"
        return [
            Segment(place, self._styles[Role.KEY]),
            Segment(glyph or " ", self._styles[_ROLES[line.level]]),
            Segment("* " if mark.explained else "  ", self._styles[Role.KEY]),
        ]

    def body(self, stamp: str, message: str, line: LogLine, needle: str) -> list[Segment]:
        """The line's text: its stamp stands back, its level shows, the needle is marked."""
        if is_own(line):
            return [Segment(stamp + message, self._styles[Role.MUTED])]
        role = _ROLES[line.level]
        if line.continues and line.level is Level.ERROR and _is_frame(line.text):
            role = Role.TEXT  # of a traceback's lines, what was raised stands out
        parts = ((stamp, Role.MUTED), (message, role))
        return [
            piece
            for words, ink in parts
            if words
            for piece in self._marked(words, self._styles[ink], needle)
        ]

    def _marked(self, text: str, style: Style, needle: str) -> Iterator[Segment]:
        folded = text.casefold()
        if not needle or len(folded) != len(text):
            yield Segment(text, style)
            return
        place = 0
        while (found := folded.find(needle, place)) >= 0:
            yield Segment(text[place:found], style)
            place = found + len(needle)
            yield Segment(text[found:place], self._styles[Role.KEY] + Style(reverse=True))
        yield Segment(text[place:], style)


def _is_frame(text: str) -> bool:
    """Whether a line of a traceback only says where it happened."""
    return split_stamp(text)[1][:1].isspace()
