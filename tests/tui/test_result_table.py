"""Tables of results on a terminal: within its width, whole, and in their columns."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from a40console.model.run_result import Column, Table
from a40console.model.run_words import visible
from a40console.tui.ink import Line, Role
from a40console.tui.panels.result_table import broken, table_lines
from tests import make_runs as make


def drawn(table: Table, width: int) -> list[str]:
    return [text_of(line) for line in table_lines(table, width)]


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


NAMES = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=30)
CELLS = st.one_of(NAMES, st.integers(0, 10**9), st.floats(-1e6, 1e6))


@settings(deadline=None)
@given(st.data(), st.integers(40, 120))
def test_nothing_is_wider_than_the_terminal_nor_lost(data: st.DataObject, width: int) -> None:
    count = data.draw(st.integers(1, 9))
    columns = tuple(Column(title=data.draw(NAMES)) for _ in range(count))
    rows = data.draw(st.lists(st.tuples(*[CELLS] * count), min_size=1, max_size=4).map(tuple))
    lines = drawn(Table(title="", columns=columns, rows=rows), width)
    assert all(cell_len(line) <= width for line in lines)
    there = "".join("".join(lines).split())
    for row in rows:
        for cell in row:
            for word in visible(cell).split() if isinstance(cell, str) else ():
                if cell_len(word) <= 14:
                    assert word in there


@given(st.text(st.characters(exclude_categories=["C"]), max_size=60), st.integers(2, 20))
def test_a_broken_text_has_all_its_characters(text: str, width: int) -> None:
    lines = broken(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(cell_len(line) <= width for line in lines)


def test_figures_stand_below_each_other() -> None:
    lines = drawn(make.compaction_result().tables[0], 80)
    block = next(line for line in lines if line.startswith("block"))
    none = next(line for line in lines if line.startswith("none"))
    assert [found.end() for found in re.finditer(r"\S+", block)][1:] == [
        found.end() for found in re.finditer(r"\S+", none)
    ][1:]


def test_what_is_too_wide_goes_on_below_under_the_same_names() -> None:
    lines = drawn(make.compaction_result().tables[0], 50)
    assert sum(line.startswith("per-turn") for line in lines) == 2
    assert any("≈1,204,000" in line for line in lines)


def test_the_winner_stands_out() -> None:
    lines = table_lines(make.compaction_result().tables[0], 80, winner="block")
    strong = [text_of(line) for line in lines if line and line[0].role is Role.STRONG]
    assert len(strong) == 1
    assert strong[0].startswith("block")


def test_without_rows_there_is_no_head() -> None:
    table = Table(title="Counts", columns=(Column(title="arm"),), rows=(), note="All alike.")
    assert drawn(table, 80) == ["Counts", "All alike."]
