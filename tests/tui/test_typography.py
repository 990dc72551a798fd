"""Nothing is cut that need not be, nothing is said twice, and no figure loses a digit."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from textual.geometry import Size

from a40console.tui.ink import width_of
from a40console.tui.panels import caches, compact, frame, gpus, machine, slots, trends
from a40console.tui.panels.findings import first_finding
from a40console.tui.panels.recent_events import happened
from a40console.tui.panels.resting import resting
from a40console.tui.panels.slot_columns import layout
from a40console.tui.panels.verdict import verdict
from tests import make_snapshot as make
from tests.draw_screens import BREADTH, STATES
from tests.tui.drawing import read, table, text

SIZES = [(60, 20), (80, 24), (120, 40), (200, 50)]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("state", ["serving", "many", "sparse", *BREADTH])
def test_no_figure_of_the_table_is_cut(state: str, width: int) -> None:
    """A name may lose letters; a figure that loses a digit is another figure."""
    reading = read((STATES | BREADTH)[state]())
    form = layout(width)
    named = {"session", "client", "model", "phase", "finish", "method"}
    for row in slots.rows(reading):
        drawn = text([slots.draw(row, form, reading)])
        at = 0
        for column in form.columns:
            at += len(column.gap)
            shown = drawn[at : at + column.width]
            at += column.width
            assert column.name in named or "…" not in shown, drawn


@pytest.mark.parametrize("width", [40, 50, 60, 70, 79])
def test_a_table_for_less_than_80_columns_leaves_columns_out(width: int) -> None:
    drawn = table(read(make.snapshot()), width)
    assert max(map(width_of, drawn)) <= width - 1
    assert "tok/s" in text(drawn[:1])
    assert re.search(r"7f3a +decode +31k .*413", text(drawn[1:2]))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("state", ["serving", "failed", "orphaned", "hung"])
def test_the_first_finding_is_not_followed_by_a_scrap_of_its_evidence(
    state: str, size: tuple[int, int]
) -> None:
    snapshot = STATES[state]()
    said = text(first_finding(read(snapshot), Size(*size)))
    for finding in snapshot.findings:
        shown = said.partition(finding.title)[2]
        scrap = re.match(r" *(\S.*)…", shown)
        assert scrap is None or len(scrap[1]) >= 16, said


def test_a_finding_gives_up_its_code_before_its_words() -> None:
    wide, narrow = (text(first_finding(read(make.hung()), Size(w, 1))) for w in (120, 70))
    assert "✖ engine-hung  The engine hangs: no token for 43 s" in wide
    assert "✖ The engine hangs: no token for 43 s" in narrow


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_what_stands_in_place_of_the_table_is_in_whole_words(width: int) -> None:
    for state in ("failed", "orphaned"):
        said = text(resting(read(STATES[state]()), width))
        assert "…" not in said
        assert not re.search(r"\dT\d\d:", said), "an instant that is not in local time"


@pytest.mark.parametrize(("state", "word"), [("four-gpus", "(3)"), ("wide-figures", "power cap")])
def test_what_throttles_a_gpu_is_never_what_gives_way(state: str, word: str) -> None:
    last = text(compact.compact(read(BREADTH[state]()), Size(80, 7))).split("\n")[-1]
    assert "▲" in last
    assert word in last


@pytest.mark.parametrize("number", [2, 4, 8])
def test_a_gpu_that_slows_down_says_why_in_half_a_screen(number: int) -> None:
    said = text(gpus.gpus(read(make.snapshot(gpus=make.several_gpus(number))), Size(60, 10)))
    assert f"{number} × A40" in said
    assert "…" not in said
    assert ("▲ thermal slowdown" in said) is (number > 3)


def test_an_event_takes_a_second_line_rather_than_lose_words() -> None:
    said = text(happened(read(make.snapshot()), Size(60, 8)))
    assert "…" not in said
    assert "cannot run here" in " ".join(said.split())
    assert "…" in text(happened(read(make.snapshot()), Size(60, 1)))


def test_instruments_of_half_a_screen_keep_disk_and_what_fits() -> None:
    reading = read(make.snapshot())
    said = text([*machine.machine(reading, Size(60, 2)), *caches.caches(reading, Size(60, 2))])
    for words in ("21.3/50 GiB", "disk 61 GiB free", "shm 0.2/23 GiB", "≈7 more requests fit"):
        assert words in said


def test_a_figure_over_time_is_drawn_once() -> None:
    reading = read(make.snapshot())
    there = text(trends.trends(reading, Size(58, 4)))
    apart = text(trends.trends(reading, Size(58, 4), {"gpu_utilization_ratio"}))
    assert "GPU use" in there
    assert "GPU use" not in apart
    assert len(apart.split("\n")) == 4
    drawn = trends.chosen(reading, Size(58, 4), "gpu_utilization_ratio", "cpu_used_vcpu")
    assert drawn == "gpu_utilization_ratio"
    assert trends.chosen(reading, Size(58, 2), "gpu_utilization_ratio") is None


def test_every_heading_sets_its_detail_apart_from_its_name() -> None:
    assert text([frame.heading("Paid", "per hour", 40)]).startswith("─ Paid  per hour ─")


def test_the_news_outlives_the_clock_where_both_do_not_fit() -> None:
    reading = read(make.snapshot())
    for columns, told in ((80, " live ─ 3 new [u] "), (70, " 3 new [u] ")):
        drawn = frame.clock("view.overview", reading, screen_width=columns, follows_time=True)
        assert text([drawn]) == told


def test_the_reasons_say_how_to_get_back() -> None:
    [hints] = frame.hints(read(make.snapshot()), Size(80, 1), "limit.why")
    assert text([hints]).startswith(" esc back ")


def test_a_simulated_engine_keeps_its_name_in_80_columns() -> None:
    first = text(verdict(read(replace(make.snapshot(), simulated=True)), Size(80, 3))).split("\n")[
        0
    ]
    assert first.startswith(" ● SERVING SIMULATED ")
    assert first.endswith("qwen3-coder-30b")
