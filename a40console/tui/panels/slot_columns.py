"""The columns of the table of requests, for each width of the screen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Side = Literal["left", "right"]

CURSOR = 2
"""Cells before the first column."""

_NORMAL = 119
_WIDE = 164
_WIDEST = 196
_LONGEST_SPARK = 40
_SPARED = ("pair", "reread", "ttft", "reused", "generated", "age", "context")
"""What a terminal of less than 80 columns leaves out, the first first."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table."""

    name: str
    title: str
    width: int
    side: Side = "right"
    gap: str = " "
    keeps_end: bool = False
    """Whether a text that is too long loses its middle: names may differ in their last letters."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns for one width of the screen."""

    columns: tuple[Column, ...]
    short: bool
    """Whether counts are written in at most four characters."""

    @property
    def width(self) -> int:
        """Cells that a row takes."""
        return self.end_of(self.columns[-1].name)

    def width_of(self, name: str) -> int:
        """Cells of the named column; none where this width of the screen leaves it out."""
        return next((column.width for column in self.columns if column.name == name), 0)

    def end_of(self, name: str) -> int:
        """Where the named column ends, in cells from the left."""
        x = CURSOR
        for column in self.columns:
            x += len(column.gap) + column.width
            if column.name == name:
                break
        return x


def _narrow(width: int) -> tuple[Column, ...]:
    columns = [
        Column("session", "session", 13, "left", gap="", keeps_end=True),
        Column("phase", "phase", 8, "left"),
        Column("context", "ctx", 5),
        Column("reused", "reused", 6),
        Column("reread", "re-rd", 5),
        Column("generated", "gen", 6),
        Column("speed", "tok/s", 5),
        Column("pair", "pass/s×tok", 11),
        Column("ttft", "TTFT", 5),
        Column("age", "age", 4),
    ]
    if width >= 92:
        columns.insert(8, Column("spark", "last 60 s", 12, "left"))
    return tuple(columns)


def _tiny(width: int) -> tuple[Column, ...]:
    """The narrow columns without those that say the least, until the others fit."""
    columns = _narrow(width)
    for name in _SPARED:
        if Layout(columns, short=True).width <= width - 1:
            break
        columns = tuple(column for column in columns if column.name != name)
    return columns


def _normal(width: int) -> tuple[Column, ...]:
    room = max(0, width - _NORMAL)
    return (
        Column("session", "session", 13 + min(room // 3, 12), "left", gap="", keeps_end=True),
        Column("client", "client", 13 + min(room // 6, 8), "left"),
        Column("phase", "phase", 8, "left"),
        Column("context", "context", 7),
        Column("reused", "reused", 6),
        Column("reread", "re-read", 7),
        Column("generated", "gen", 6),
        Column("speed", "tok/s", 6),
        Column("pair", "pass/s × tok/pass", 17, gap=" = "),
        Column("spark", "last 60 s", 10, "left"),
        Column("ttft", "TTFT s", 6),
        Column("age", "age", 4),
    )


def _wide(width: int) -> tuple[Column, ...]:
    room = max(0, width - _WIDE)
    columns = [
        Column("session", "session", 13 + min(room // 4, 12), "left", gap="", keeps_end=True),
        Column("client", "client", 11 + min(room // 5, 8), "left"),
        Column("phase", "phase", 8, "left"),
        Column("queue", "queue s", 7),
        Column("context", "context", 8),
        Column("reused", "reused", 6),
        Column("reread", "re-read", 7),
        Column("generated", "gen", 6),
        Column("limit", "of max", 7),
        Column("speed", "tok/s", 6),
        Column("pair", "pass/s × tok/pass", 17, gap=" = "),
        Column("spark", "last 60 s", 12, "left"),
        Column("ttft", "TTFT s", 6),
        Column("age", "age", 5),
        Column("method", "method", 11, "left", gap="  "),
        Column("finish", "ended", 10, "left"),
    ]
    if width >= _WIDEST:
        columns.insert(2, Column("model", "model", 15, "left"))
    return tuple(columns)


def layout(width: int) -> Layout:
    """The columns that fit the width."""
    columns = _tiny(width) if width < _NORMAL else _normal(width)
    if width >= _WIDE:
        columns = _wide(width)
    spare = width - 1 - Layout(columns, short=False).width
    grown = tuple(
        replace(column, width=min(_LONGEST_SPARK, column.width + max(0, spare)))
        if column.name == "spark"
        else column
        for column in columns
    )
    return Layout(grown, short=width < _NORMAL)
