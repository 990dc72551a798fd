"""What stands beside a run's results: its facts, and what client and server counted."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from a40console.ledger.report_counts import count_tables
from a40console.ledger.report_facts import environment_facts, run_facts, span, title, usd_text
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.run import RunEnvironment, RunSpec, RunTarget
from a40console.model.run_words import rows_text
from tests import make_runs as make


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (0, "$0.00"),
        (0.44, "$0.44"),
        (0.0778, "$0.0778"),
        (0.5, "$0.50"),
        (0.00001, "<$0.0001"),
        (0.99999, "$1.00"),
        (1234.5, "$1,234.50"),
        (Estimated(0.748), "≈$0.748"),
        (Missing("no price"), "– no price"),
    ],
)
def test_dollars(figure: Figure, said: str) -> None:
    assert usd_text(figure) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(59.4, "59 s"), (60, "1 m 0 s"), (3599.6, "1 h 0 m"), (6159, "1 h 42 m")]
)
def test_spans(seconds: float, said: str) -> None:
    assert span(seconds) == said


def test_how_it_was_asked() -> None:
    target = RunTarget(kind="url", url="http://x:1", model="tiny", dialect="anthropic")
    spec = RunSpec(
        experiment="sweep", target=target, max_usd=Decimal("2.5"), max_minutes=30.0, note="cold"
    )
    facts = dict(run_facts(make.run(spec=spec, origin="pod-1"), make.arm_ends(make.run())))
    assert facts["target"] == "http://x:1, anthropic dialect, model tiny"
    assert facts["limits"] == "$2.50, 30 minutes"
    assert facts["asked with the note"] == "cold"
    assert facts["from"] == "pod-1"
    assert facts["measured cost"].startswith("$0.0")
    assert facts["turns"] == "120"


def test_a_small_limit_is_no_limit_of_nothing() -> None:
    spec = RunSpec(experiment="sweep", max_usd=Decimal("0.0005"))
    assert dict(run_facts(make.run(spec=spec)))["limits"] == "$0.0005"


def test_a_reference_row_was_asked_of_nobody() -> None:
    facts = dict(run_facts(make.reference()))
    assert "target" not in facts
    assert "seed" not in facts
    assert facts["took"] == "– not written down"
    assert title(make.reference()) == "sweep · 2026-11-15 00:00 UTC"


def test_times_that_cannot_be_read() -> None:
    facts = dict(run_facts(make.run(started_at="yesterday")))
    assert facts["started"] == "yesterday"
    assert facts["took"] == "– its times cannot be read"


def test_where_it_was_made() -> None:
    two = make.environment(gpu_count=2, simulated=True, vcpu_quota=Missing("no quota"))
    facts = dict(environment_facts(two))
    assert facts["GPU"] == "2 × NVIDIA A40"
    assert facts["engine"] == "vllm 0.32.0, SIMULATED"
    assert facts["vCPU quota"] == "– no quota"
    assert facts["price"] == "$0.44/h"
    assert "argv asked" not in dict(environment_facts(make.environment(argv=())))


def test_everything_of_the_environment_is_told() -> None:
    whole = make.environment()
    said = " ".join(value for _, value in environment_facts(whole))
    for name in RunEnvironment.__dataclass_fields__:
        value = getattr(whole, name)
        if isinstance(value, str):
            assert value in said, name
    for item in (*whole.argv, *whole.effective.values()):
        assert item in said


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
