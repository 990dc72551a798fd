"""A canvas of braille dots, two a cell across and four down: lines in several roles. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.tui.ink import Line, Role, Span, line

_EMPTY = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
ACROSS, DOWN = 2, 4
"""Dots of a cell."""


class Canvas:
    """Dots by cell; a cell has the role of what was drawn in it last."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._dots = [[0] * columns for _ in range(rows)]
        self._roles = [[Role.TEXT] * columns for _ in range(rows)]
        self._letters: dict[tuple[int, int], str] = {}

    @property
    def width(self) -> int:
        """Dots across."""
        return self.columns * ACROSS

    @property
    def height(self) -> int:
        """Dots down."""
        return self.rows * DOWN

    def dot(self, x: int, y: int, role: Role) -> None:
        """One dot, counted from the upper left; outside of the canvas nothing happens."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            return
        column, row = x // ACROSS, y // DOWN
        self._dots[row][column] |= _DOTS[y % DOWN][x % ACROSS]
        self._roles[row][column] = role

    def stroke(self, start: tuple[int, int], end: tuple[int, int], role: Role) -> None:
        """The dots between two dots, both included."""
        (x, y), (to_x, to_y) = start, end
        steps = max(abs(to_x - x), abs(to_y - y), 1)
        for step in range(steps + 1):
            share = step / steps
            self.dot(round(x + (to_x - x) * share), round(y + (to_y - y) * share), role)

    def letter(self, x: int, y: int, text: str, role: Role) -> None:
        """A letter in the place of a dot's cell, unless another stands there."""
        row = max(0, min(self.rows - 1, y // DOWN))
        column = max(0, min(self.columns - 1, x // ACROSS))
        if (row, column) not in self._letters:
            self._letters[row, column] = text
            self._roles[row][column] = role

    def lines(self) -> Sequence[Line]:
        """What was drawn, row by row."""
        return [
            line(
                *(
                    Span(self._cell(row, column), self._roles[row][column])
                    for column in range(self.columns)
                )
            )
            for row in range(self.rows)
        ]

    def _cell(self, row: int, column: int) -> str:
        dots = self._dots[row][column]
        return self._letters.get((row, column)) or (chr(_EMPTY + dots) if dots else " ")
