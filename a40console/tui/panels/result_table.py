"""A result's tables as lines: no name is cut, no column left out. Pure.

Heads are broken at blanks first, then words in cells; what is wider still goes on below, with the
first column again.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

from a40console.model.run_result import Table
from a40console.model.run_words import absences, head, is_words, rows_text, visible
from a40console.tui.ink import Line, Role, Span, line, wrap

_GAP = 2
_LEAST_WORDS = 16
"""Cells that a column of words keeps at least, where its words are no shorter."""

_MOST_HEAD_LINES = 4


def table_lines(table: Table, width: int, *, winner: str = "", reasons: bool = True) -> list[Line]:
    """The table under its title, its note and what is missing below it.

    Args:
        table: What is shown.
        width: Cells of the terminal.
        winner: The name in the first column of the row that stands out.
        reasons: Whether it is said why cells are missing.
    """
    rows = [[visible(text) for text in row] for row in rows_text(table)]
    columns = [
        _Column(visible(head(column)), [row[at] for row in rows], words=is_words(table, at))
        for at, column in enumerate(table.columns)
    ]
    lines = wrap(visible(table.title), width, Role.TITLE)
    for number, part in enumerate(_parts(columns, width) if rows else ()):
        lines += [()] if number else []
        lines += _part(part, width, winner)
    lines += wrap(table.note, width, Role.MUTED)
    for reason in absences(table) if reasons else ():
        lines += wrap(reason, width, Role.MUTED, indent=2)
    return lines


def broken(text: str, width: int) -> list[str]:
    """A text in lines of at most that many cells: at blanks, a longer word wherever it must be."""
    lines: list[str] = []
    current = ""
    for word in text.split():
        if current and cell_len(current) + 1 + cell_len(word) <= width:
            current = f"{current} {word}"
            continue
        lines += [current] if current else []
        *full, current = chop_cells(word, width) or [word]
        lines += full
    return [*lines, current] if current or not lines else lines


class _Column:
    """One column with its texts, and how narrow it can be."""

    def __init__(self, name: str, cells: Sequence[str], *, words: bool) -> None:
        self.name = name
        self.cells = cells
        self.words = words
        self.widest = max(map(cell_len, cells), default=0)
        longest = max((cell_len(word) for word in name.split()), default=0)
        self.least = max(min(self.widest, _LEAST_WORDS) if words else self.widest, longest)

    def wanted(self, head_lines: int) -> int:
        """Cells with which no cell is broken, and the head takes at most so many lines."""
        width = self.least
        while len(broken(self.name, width)) > head_lines and width < cell_len(self.name):
            width += 1
        return max(width, self.widest)


def _parts(columns: Sequence[_Column], width: int) -> list[list[_Column]]:
    """The columns in parts that fit, each led by the first one."""
    if not columns:
        return []
    first, parts = columns[0], [[columns[0]]]
    for column in columns[1:]:
        used = sum(each.least + _GAP for each in parts[-1])
        if used + column.least > width and len(parts[-1]) > 1:
            parts.append([first])
        parts[-1].append(column)
    return parts


def _part(columns: Sequence[_Column], width: int, winner: str) -> list[Line]:
    widths = _widths(columns, width)
    lines = _row([column.name for column in columns], columns, widths, Role.MUTED, at_bottom=True)
    for at in range(len(columns[0].cells)):
        cells = [column.cells[at] for column in columns]
        role = Role.STRONG if winner and cells[0] == winner else Role.TEXT
        lines += _row(cells, columns, widths, role)
    return lines


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """What each column gets: heads as flat as there is room for, then cells unbroken."""
    room = width - _GAP * (len(columns) - 1)
    for head_lines in range(1, _MOST_HEAD_LINES + 1):
        wanted = [column.wanted(head_lines) for column in columns]
        if sum(wanted) <= room:
            return wanted
    given = [column.least for column in columns]
    while sum(given) > room and max(given) > 1:
        given[given.index(max(given))] -= 1
    spare = room - sum(given)
    for at, column in enumerate(columns):
        more = max(0, min(spare, column.widest - given[at]))
        spare -= more
        given[at] += more
    return given


def _row(
    cells: Sequence[str],
    columns: Sequence[_Column],
    widths: Sequence[int],
    role: Role,
    *,
    at_bottom: bool = False,
) -> list[Line]:
    """One row in as many lines as its longest cell takes."""
    texts = [broken(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, texts))
    lines = []
    for number in range(height):
        pieces = []
        for text, column, width in zip(texts, columns, widths, strict=True):
            at = number - (height - len(text)) if at_bottom else number
            piece = text[at] if 0 <= at < len(text) else ""
            blank = " " * (width - cell_len(piece))
            pieces.append(piece + blank if column.words else blank + piece)
        lines.append(line(Span((" " * _GAP).join(pieces).rstrip(), role)))
    return lines
