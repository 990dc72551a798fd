"""The page of a request that ended before this console was opened: all that the service knows."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace

import pytest

from a40console.model.figures import Missing
from a40console.model.snapshot import RecentRequest
from a40console.tui.keymap import resolve
from a40console.tui.panels.slot_cells import finished
from a40console.tui.panels.slot_columns import layout
from a40console.tui.panels.slot_detail import request_detail
from a40console.tui.panels.slot_notes import row_notes
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from tests import make_snapshot as make


def page(done: RecentRequest) -> str:
    snapshot, past = make.snapshot(slots=(), recent=(done,)), Past()
    past.observe(snapshot)
    reading = Reading(
        snapshot=snapshot, link=Link("live"), age_s=0.0, unread=0, past=past, keymap=resolve({})
    )
    lines = request_detail(reading, done.request_id, 80)
    return "\n".join("".join(span.text for span in entry) for entry in lines)


def test_who_asked_which_model_and_how_long_each_phase_took() -> None:
    done = make.recent(queue_s=0.5, prefill_s=2.25, decode_s=1.61)
    words = " ".join(page(done).split())
    assert "client claude-code" in words
    assert "model qwen3-coder-30b" in words
    assert "phases queue 0.50 s → prefill 2.25 s → decode 1.61 s" in words


def test_phases_that_nobody_told_are_a_dash() -> None:
    untold = Missing("only our plugin in vLLM tells when a request was begun")
    words = " ".join(page(make.recent(queue_s=untold, prefill_s=untold)).split())
    assert "phases – this console never saw it run" in words
    assert "client claude-code" in words


def test_a_request_that_was_never_sent_only_waited() -> None:
    never = Missing("it was never sent to the engine")
    words = " ".join(page(make.recent(queue_s=12.0, prefill_s=never, decode_s=never)).split())
    assert "phases queue 12.0 s" in words
    assert "prefill" not in words


UNTOLD = Missing("not told")


@pytest.mark.parametrize("told", [True, False], ids=["told", "untold"])
@pytest.mark.parametrize("width", [60, 80, 100, 120, 165, 200, 240])
def test_a_row_of_a_request_that_this_console_never_saw_has_no_blank_cell(
    width: int, told: bool
) -> None:
    done = make.recent()
    if not told:
        optional = [entry.name for entry in fields(done) if entry.default is not MISSING]
        always = ("session", "finish_reason", "generated_tokens", "tokens_per_s", "ttft_s")
        done = make.recent(**dict.fromkeys([*optional, *always], UNTOLD))
    form = layout(width)
    row = "".join(span.text for span in finished(done, form, None))
    at = 0
    for column in form.columns:
        at += len(column.gap)
        assert row[at : at + column.width].strip(), column.name
        at += column.width


def test_its_row_has_the_figures_that_a_live_row_has() -> None:
    row = "".join(span.text for span in finished(make.recent(), layout(200), None))
    assert "claude-code" in row
    assert "20,480   96 %       0    640   8,192" in row
    assert row.split()[-2:] == ["engine", "tool_use"]


def test_the_dashes_of_its_row_have_their_reasons() -> None:
    why = Missing("the engine did not tell")
    said = row_notes(make.recent(cached_tokens=why, reread_tokens=why))
    assert "reused, re-read –: the engine did not tell" in said


def test_its_page_says_when_it_came_what_it_read_and_how_it_was_counted() -> None:
    words = " ".join(page(make.recent()).split())
    assert "came at 14:07:22" in words
    assert "context 20,480 tokens reused 19,660 (96 %) re-read 0" in words
    assert "generated 640 of at most 8,192" in words
    assert "counted by the engine itself, pass by pass: exact" in words
    assert "–" not in words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.004, "<0.01 s"), (0.04, "0.04 s"), (2.25, "2.25 s"), (31.0, "31.0 s"), (63.0, "1 m 3 s")],
)
def test_phases_side_by_side_have_one_unit(seconds: float, said: str) -> None:
    words = " ".join(page(make.recent(queue_s=seconds, age_s=70.0)).split())
    assert f"queue {said} → prefill 0.27 s → decode 1.61 s, 1 m 10 s in all" in words


@pytest.mark.parametrize("width", [20, 40, 80])
def test_the_charts_of_a_request_share_one_time_axis_that_says_its_times(width: int) -> None:
    past, slot = Past(), make.four_slots()[0]
    for age_s in range(60, -1, -1):
        snapshot = make.snapshot(slots=(replace(slot, age_s=70.0 - age_s),))
        past.observe(replace(snapshot, at=make.at(age_s)))
    reading = Reading(
        snapshot=snapshot, link=Link("live"), age_s=0.0, unread=0, past=past, keymap=resolve({})
    )
    drawn = request_detail(reading, slot.request_id, width)
    lines = ["".join(span.text for span in entry) for entry in drawn]
    chart, axis = lines[-2], lines[-1]
    assert chart.startswith("tok/pass")
    assert "1 m" in axis
    if width >= 40:
        assert axis.split()[0] == "14:06:31"
        assert axis.endswith("14:07:31")
        assert len(axis) == len(chart)
