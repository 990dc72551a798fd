"""Sends the cells that changed and no others: a chart that moves on stays mostly the same."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import get_character_cell_size
from rich.console import Console, RenderableType
from rich.control import Control
from textual._compositor import ChopsUpdate

from a40console.tui.ink import Line, Role

_GAP = 8
"""So many unchanged cells are cheaper sent than stepped over.

A step costs the cursor's move and the colours once more, some 50 bytes; a cell takes three at most.
"""

Cell = tuple[str, Role | None, str]
"""Character, role and action."""

_BLANK: Cell = (" ", None, "")
"""What lies behind the end of a row."""


def changed_spans(old: Line, new: Line, width: int) -> list[tuple[int, int]]:
    """The parts in which two rows differ: each the first cell, and the one after the last.

    Plain text is taken whole, so that nobody who reads along sees half a number.

    Args:
        old: The row as it was.
        new: The row as it is.
        width: Cells that a row takes on the screen.
    """
    if _wide(old) or _wide(new):
        return [(0, width)]
    parts: list[tuple[int, int]] = []
    for first, last in _differing(old, new, width):
        if parts and first - parts[-1][1] <= _GAP:
            parts[-1] = parts[-1][0], max(last, parts[-1][1])
        else:
            parts.append((first, last))
    return parts


def _wide(row: Line) -> bool:
    """Whether a character takes two cells, or none."""
    return any(
        not span.text.isascii() and any(get_character_cell_size(c) != 1 for c in set(span.text))
        for span in row
    )


def _differing(old: Line, new: Line, width: int) -> Iterator[tuple[int, int]]:
    before, after = _cells(old, width), _cells(new, width)
    at = 0
    for span in new:
        end = min(width, at + len(span.text))
        if span.text.isascii():
            if before[at:end] != after[at:end]:
                yield at, end
        else:
            yield from ((x, x + 1) for x in range(at, end) if before[x] != after[x])
        at = end
    if before[at:] != after[at:]:
        yield at, width


def _cells(row: Line, width: int) -> list[Cell]:
    cells: list[Cell] = [(c, span.role, span.action) for span in row for c in span.text]
    return cells[:width] + [_BLANK] * (width - len(cells))


class CellsUpdate(ChopsUpdate):
    """An update that begins at the first changed cell; Textual's begins where its widget does."""

    def render_segments(self, console: Console) -> str:
        """The update as the terminal takes it."""
        sent: list[str] = []
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= last or end <= first:
                    continue
                begin = max(x, first)
                sent.append(Control.move_to(begin, y).segment.text)
                sent.append(strip.crop(begin - x, min(end, last) - x).render(console))
        return "".join(sent)


def cells_only(update: RenderableType | None) -> RenderableType | None:
    """The update without what stayed the same; anything else as it is."""
    if type(update) is ChopsUpdate:
        return CellsUpdate(update.chops, update.spans, update.chop_ends)
    return update
