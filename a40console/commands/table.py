"""Tables of names: a name is never cut, whatever the width, so that no two look the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a40console.commands.invocation import Invocation
from a40console.commands.output import echo_text, print_rich, terminal_width, visible

if TYPE_CHECKING:
    from rich.table import Table

_GAP = 3
"""Cells between two columns: a blank on each side of the box's own."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    breaks: bool = False
    """Whether its cells may be broken, at blanks alone; else they are shown whole."""

    spare: bool = False
    """Whether it is left out where there is no room for it."""


def bare_table() -> Table:
    """A table without columns yet, with no more than a rule below its head."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)


def print_table(
    invocation: Invocation, columns: Sequence[Column], rows: Iterable[Sequence[str]]
) -> None:
    """Print rows as a table, or where not even that fits, each as lines of its own.

    Cells are text from disks and files: what could not be seen in it is printed as escapes.
    """
    cells = [tuple(visible(cell) for cell in row) for row in rows]
    for count in _counts(columns):
        widths = _widths(columns[:count], cells, terminal_width())
        if widths is not None:
            _print(invocation, columns[:count], widths, cells)
            return
    for row in cells:
        echo_text(invocation, row[0])
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                echo_text(invocation, f"    {column.name}: {cell}")


def _counts(columns: Sequence[Column]) -> list[int]:
    """How many columns to try: all, then without the last ones that are spare."""
    fewest = len(columns)
    while columns[fewest - 1].spare:
        fewest -= 1
    return list(range(len(columns), fewest - 1, -1))


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int
) -> list[int] | None:
    """Cells for each column, None where they do not fit; what is over goes to those that break."""
    from rich.cells import cell_len

    whole, least = [], []
    for index, column in enumerate(columns):
        texts = [column.name, *(row[index] for row in rows)]
        whole.append(max(map(cell_len, texts)))
        words = [word for text in texts for word in text.split()]
        least.append(max(map(cell_len, words), default=0) if column.breaks else whole[-1])
    spare = width - sum(least) - _GAP * (len(columns) - 1)
    if spare < 0:
        return None
    given = []
    for most, fewest in zip(whole, least, strict=True):
        more = min(spare, most - fewest)
        spare -= more
        given.append(fewest + more)
    return given


def _print(
    invocation: Invocation,
    columns: Sequence[Column],
    widths: Sequence[int],
    rows: Iterable[Sequence[str]],
) -> None:
    table = bare_table()
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column.name, width=width, overflow="fold")
    for row in rows:
        table.add_row(*row[: len(columns)])
    print_rich(invocation, table)
