"""Only cells that changed are sent, and the terminal shows what the console drew all the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual._compositor import ChopsUpdate
from textual.app import App
from textual.geometry import Size

from a40console.tui.ink import Line, Role, Span, line
from a40console.tui.messages import SnapshotArrived
from a40console.tui.repaint import CellsUpdate, changed_spans
from tests import make_snapshot as make
from tests.tui.driving import running, until
from tests.tui.fake_service import FakeService

WIDTH = 24
TEXT = st.text(alphabet="ab7 ▁▇█·é漢", max_size=9)
ROWS = st.lists(
    st.builds(Span, TEXT, st.sampled_from([Role.TEXT, Role.RULE]), st.sampled_from(["", "help"])),
    max_size=4,
).map(tuple)

_STEP = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[[\d;]*m|([^\x1b\n]+)|\n")


def cells(row: Line) -> list[tuple[str, Role | None, str]]:
    """Character by character; the second cell of a wide one is empty."""
    drawn = [
        (part, span.role, span.action)
        for span in row
        for c in span.text
        for part in (c, *[""] * (cell_len(c) - 1))
    ]
    return [*drawn, *[(" ", None, "")] * WIDTH][:WIDTH]


@given(ROWS, ROWS)
def test_what_is_not_sent_stayed_the_same(old: Line, new: Line) -> None:
    shown, wanted = cells(old), cells(new)
    spans = changed_spans(old, new, WIDTH)
    for first, last in spans:
        assert 0 <= first < last <= WIDTH
        shown[first:last] = wanted[first:last]
    assert shown == wanted
    assert spans == sorted(spans)


def test_a_chart_that_moves_on_sends_its_edge_alone() -> None:
    before = line(Span("GPU  ", Role.LABEL), Span("   ████████████▇   ", Role.SERIES))
    after = line(Span("GPU  ", Role.LABEL), Span("  ████████████▇    ", Role.SERIES))
    assert changed_spans(before, after, 24) == [(7, 8), (19, 21)]


def test_a_time_of_day_is_sent_whole() -> None:
    before = line(Span("▇▇▇", Role.SPARK), Span(" 21:24:15 "))
    after = line(Span("▇▇▇", Role.SPARK), Span(" 21:24:16 "))
    assert changed_spans(before, after, 13) == [(3, 13)]


class Terminal:
    """Text on a grid, as the sequences of updates leave it."""

    def __init__(self, size: Size) -> None:
        self.rows = [[" "] * size.width for _ in range(size.height)]

    def take(self, sent: str) -> None:
        x = y = 0
        for step in _STEP.finditer(sent):
            row, column, text = step.groups()
            if row:
                x, y = int(column) - 1, int(row) - 1
            for c in text or "":
                self.rows[y][x] = c
                x += 1


async def test_after_many_frames_the_terminal_shows_what_was_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[int] = []
    async with running(FakeService(), size=(120, 40)) as (app, pilot):
        terminal = Terminal(app.size)

        def display(shown: App[None], screen: Any, drawn: Any) -> None:
            if drawn is not None:
                assert not isinstance(drawn, ChopsUpdate) or isinstance(drawn, CellsUpdate)
                terminal.take(drawn.render_segments(app.console))
                sent.append(1)

        monkeypatch.setattr(App, "_display", display)
        app.refresh(layout=True)
        app.screen.refresh(layout=True)
        await pilot.pause()
        moving = make.moving(6, start_s=make.NOW.timestamp())
        for step in range(40):
            app.post_message(SnapshotArrived(next(moving)))
            await pilot.pause(0.002)
            if step in (10, 20):
                await pilot.press("question_mark" if step == 10 else "escape")
        await pilot.pause()
        wanted = [strip.text for strip in app.screen._compositor.render_strips()]
    assert len(sent) > 20
    assert ["".join(row) for row in terminal.rows] == wanted


@pytest.mark.parametrize("key", ["question_mark", "e", "n", "enter", "X", "w"])
async def test_behind_a_dialog_what_changed_is_sent_and_no_more(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    sent: list[str] = []
    async with running(FakeService(), size=(120, 40)) as (app, pilot):

        def display(shown: App[None], screen: Any, drawn: Any) -> None:
            if drawn is not None:
                sent.append(drawn.render_segments(app.console))

        moving = make.moving(6, start_s=make.NOW.timestamp())
        app.post_message(SnapshotArrived(next(moving)))
        await pilot.pause()
        await pilot.press(key)
        await pilot.pause(0.3)
        monkeypatch.setattr(App, "_display", display)
        app.screen.refresh()
        await pilot.pause(0.1)
        whole = max(map(len, sent))
        sent.clear()
        for _ in range(10):
            app.post_message(SnapshotArrived(next(moving)))
            await pilot.pause(0.02)
        assert sent
        assert sum(map(len, sent)) < 10 * whole / 4


async def test_a_frame_forgets_the_texts_that_were_cut_for_those_before() -> None:
    cuts = Segment._split_cells
    async with running(FakeService(), size=(80, 24)) as (app, pilot):
        for number in range(3000):
            cuts(Segment(f"once {number}"), 2)
        assert cuts.cache_info().currsize >= 3000
        app.refresh()
        await until(pilot, lambda: cuts.cache_info().currsize <= 1000)
