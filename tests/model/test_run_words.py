"""The words of runs: figures that never become a 0, marks, and why cells are missing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Estimated, Missing
from a40console.model.run_result import Column, Interval, Table, Verdict
from a40console.model.run_words import (
    absences,
    figure_text,
    head,
    headline,
    interval_text,
    marks,
    rows_text,
    verdict_text,
    visible,
)
from tests import make_runs as make


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 6))
def test_only_nothing_is_written_as_nothing(value: float, digits: int) -> None:
    text = figure_text(value, digits)
    assert (set(text) <= set("-0.,")) == (value == 0)
    assert figure_text(Estimated(value), digits) == f"≈{text}"


def test_figures() -> None:
    assert figure_text(1234, 2) == "1,234"
    assert figure_text(1234.5, 2) == "1,234.50"
    assert figure_text(0.004, 1) == "<0.1"
    assert figure_text(-0.004, 1) == ">-0.1"
    assert figure_text(Missing("no GPU"), 1) == "–"
    assert figure_text(float("nan"), 1) == "–"


def test_a_columns_unit_is_named_once() -> None:
    assert head(Column(title="wall", unit="s")) == "wall s"
    assert head(Column(title="worst turn", unit="s")) == "worst turn s"
    assert head(Column(title="$/1M output", unit="$")) == "$/1M output"
    assert head(Column(title="tok/s sustained", unit="tok/s")) == "tok/s sustained"
    assert head(Column(title="streams")) == "streams"


def test_rows_that_do_not_fit_the_columns() -> None:
    columns = (Column(title="a"), Column(title="b", digits=2))
    table = Table(title="", columns=columns, rows=(("x",), ("y", 1.0, 2.0)))
    assert rows_text(table) == [["x", ""], ["y", "1.00"]]


def test_why_cells_are_missing_is_said_once_a_reason() -> None:
    gone = Missing("no GPU")
    columns = (Column(title="arm"), Column(title="clock"), Column(title="throttled"))
    rows = (("none", gone, 1.0), ("block", gone, gone), ("per-turn", gone, Missing("untold")))
    told = absences(Table(title="", columns=columns, rows=rows))
    assert told == ("– clock; throttled (block): no GPU", "– throttled (per-turn): untold")


def test_marks() -> None:
    assert marks(make.run()) == ()
    assert marks(make.simulated(state="partial")) == ("SIMULATED", "PARTIAL")
    assert marks(make.reference()) == ("REFERENCE",)
    assert marks(make.invalid()) == ("INVALID",)
    assert marks(make.queued()) == ()


def test_one_line_of_a_run() -> None:
    assert headline(make.run()) == "block 360 s for 120 turns, per-turn 528 s"
    assert headline(make.running()) == "34 %, per-turn, turn 34 of 120"
    assert headline(make.queued()) == "waits until no client is active"
    assert headline(make.failed()) == "the engine ended in arm 1: CUDA out of memory"


def test_an_invalid_run_tells_its_reason_and_no_figure() -> None:
    assert headline(make.invalid()) == "the client was saturated"
    assert headline(make.invalid(reason="")) == "it is not to be believed"


def test_an_interval_says_what_it_rests_on() -> None:
    ratio = Interval(value=1.468, low=1.41, high=1.52, confidence=0.95, repeats=3)
    assert interval_text(ratio) == "1.47 × [1.41, 1.52], 95 %, 3 repeats"
    assert interval_text(replace(ratio, repeats=1)).endswith("1 repeat")
    assert interval_text(Missing("one repeat")) == "– one repeat"


def test_a_verdict_is_not_named_twice() -> None:
    none = Verdict(kind="none", text="No verdict: one repeat.")
    assert verdict_text(none) == ("No verdict", "one repeat.")
    assert verdict_text(replace(none, text="One repeat.")) == ("No verdict", "One repeat.")


def test_what_could_not_be_seen_stands_as_escapes() -> None:
    assert visible("a\x1b[31m\u202eb") == "a\\x1b[31m\\u202eb"
