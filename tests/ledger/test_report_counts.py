"""What client and server counted of a run's arms, and where they differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.ledger.report_counts import count_tables
from a40console.model.figures import Missing
from a40console.model.run_words import rows_text
from tests import make_runs as make


def test_counts_that_differ_are_told_with_by_how_much() -> None:
    run = make.run()
    ends = list(make.arm_ends(run))
    ends[0] = replace(ends[0], server={**ends[0].server, "generated_tokens": 3072 * 2})
    both, _ = count_tables(ends, make.samples(run), differing=True)
    assert rows_text(both) == [["none", "generated tokens", "9,216", "12,288", "33.33"]]
    assert "19 counts are the same" in both.note
    assert len(count_tables(ends, ())[0].rows) == 20


def test_what_one_side_did_not_count_says_so() -> None:
    ends = [replace(end, server={}) for end in make.arm_ends(make.sweep())]
    both, conditions = count_tables(ends, (), differing=True)
    assert [row[3] for row in both.rows] == [Missing("not counted")] * 12
    assert conditions.rows[0][4] == Missing("its single requests are not at hand")


def test_conditions_are_those_of_the_worst_repeat() -> None:
    run = make.sweep()
    ends = list(make.arm_ends(run))
    ends[1] = replace(ends[1], client={**ends[1].client, "loop_lag_p99_s": 0.041})
    row = count_tables(ends, make.samples(run))[1].rows[0]
    assert row[6] == pytest.approx(41.0)
    assert row[4:6] == (1, 3)


def test_without_arms_there_is_nothing_to_count() -> None:
    assert count_tables((), make.samples(make.run())) == ()
