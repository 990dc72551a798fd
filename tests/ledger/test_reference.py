"""The shipped rows are marked, carry the notes' figures, and none of their slips."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from a40console.ledger.reference import reference_hypotheses, reference_runs
from a40console.ledger.store import Ledger
from a40console.model.figures import Missing, number
from a40console.model.run import Run, RunEnvironment
from a40console.model.run_result import RunResult, Table

RUNS = {run.id: run for run in reference_runs()}


def table(run_id: str, at: int = 0) -> Table:
    result = RUNS[run_id].result
    assert isinstance(result, RunResult)
    return result.tables[at]


def cell(of: Table, name: str, column: str) -> float:
    """The number of the row that begins so, under a column."""
    titles = [each.title for each in of.columns]
    row = next(row for row in of.rows if ", ".join(map(str, row)).startswith(name))
    value = row[titles.index(column)]
    assert not isinstance(value, str)
    plain = number(value)
    assert plain is not None
    return plain


def test_every_row_is_marked_and_none_is_taken_for_a_measurement_of_ours() -> None:
    assert len(RUNS) == len(reference_runs()) > 20
    for run in RUNS.values():
        assert run.reference
        assert isinstance(run.environment, RunEnvironment)
        assert not run.environment.simulated
        assert isinstance(run.environment.host, Missing)
        assert str(run.origin).startswith("field notes")


def test_rows_are_whole() -> None:
    for run in RUNS.values():
        for each in run.result.tables if isinstance(run.result, RunResult) else ():
            for row in each.rows:
                assert len(row) == len(each.columns), (run.id, each.title, row)


@pytest.mark.parametrize(
    "run_id", [name for name, run in RUNS.items() if run.spec.experiment == "sweep"]
)
def test_a_sweeps_figures_agree_with_each_other(run_id: str) -> None:
    run = RUNS[run_id]
    if run.state == "failed":
        assert isinstance(run.result, Missing)
        return
    assert isinstance(run.environment, RunEnvironment)
    price = number(run.environment.usd_per_h)
    assert price is not None
    steps = table(run_id)
    titles = [column.title for column in steps.columns]
    assert [row[0] for row in steps.rows] == [
        int(count) for count in run.settled["streams"].split(",")
    ]
    for row in steps.rows:
        cells = dict(zip(titles, row, strict=True))
        rate = cells.get("start to end", cells.get("off", cells.get("without")))
        assert isinstance(rate, float)
        if "per stream" in cells:
            assert cells["per stream"] == pytest.approx(rate / float(str(row[0])), rel=0.01)
        if "per 1M" in cells:
            dollars = price / 3600 / rate * 1e6
            assert cells["per 1M"] == pytest.approx(dollars, rel=0.01, abs=0.0006)
    rates = [float(str(row[1])) for row in steps.rows]
    assert all(less < more for less, more in pairwise(rates)) or "drafted" in run_id


def test_speculation_at_several_sessions_is_told_as_on_over_off() -> None:
    sessions = table("reference-qwen3-coder-sessions")
    for streams, slower in ((2, 8), (4, 28), (8, 36)):
        off = cell(sessions, f"agent session, {streams}, off", "sustained")
        on = cell(sessions, f"agent session, {streams}, ngram 24", "sustained")
        assert round(100 * (1 - on / off)) == slower
        ratio = cell(sessions, f"agent session, {streams}, ngram 24", "of off")
        assert ratio == pytest.approx(on / off, abs=0.005)
    told = RUNS["reference-qwen3-coder-sessions"].result
    assert isinstance(told, RunResult)
    assert "8, 28 and 36 % slower" in told.headline
    assert {"warm-cache", "ratio-corrected"} == {doubt.code for doubt in told.doubts}


def test_pruning_each_turn_is_35_percent_slower_than_blocks() -> None:
    ways = table("reference-qwen3-coder-compaction")
    pruned, block = cell(ways, "per-turn", "sustained"), cell(ways, "block", "sustained")
    assert round(block / pruned, 2) == 1.54 == cell(ways, "block", "of per-turn")
    told = RUNS["reference-qwen3-coder-compaction"].result
    assert isinstance(told, RunResult)
    assert "35 % slower" in told.verdict.text
    assert round(100 * (1 - pruned / block)) == 35


def test_tokens_a_pass_count_the_verified_one() -> None:
    depths = table("reference-qwen3-coder-depth")
    for depth in (5, 12, 24):
        accepted = cell(depths, f"code edit, {depth},", "accepted/draft")
        assert cell(depths, f"code edit, {depth},", "tok/pass") == pytest.approx(accepted + 1)
        assert accepted / depth == pytest.approx(
            cell(depths, f"code edit, {depth},", "accepted") / 100, abs=0.002
        )


def test_two_variables_at_once_are_told_as_a_doubt() -> None:
    told = {
        run.id: [doubt.code for doubt in run.result.doubts]
        for run in RUNS.values()
        if isinstance(run.result, RunResult)
    }
    for run_id in ("depth", "drafted-sweep"):
        assert "two-variables" in told[f"reference-qwen3-coder-{run_id}"]
    assert "two-variables" in told["reference-kimi-k3-host"]
    assert "estimated-bandwidth" in told["reference-qwen3-coder-sessions-sweep"]


def test_what_was_not_in_force_is_invalid_and_its_conclusion_retracted() -> None:
    run = RUNS["reference-kimi-linear-prefill-uncached"]
    assert run.state == "invalid"
    assert "not in force" in run.reason
    (claim,) = [each for each in reference_hypotheses() if run.id in each.steps[0].runs]
    assert [step.state for step in claim.steps] == ["confirmed", "retracted"]


def test_claims_name_runs_that_are_there() -> None:
    for claim in reference_hypotheses():
        for step in claim.steps:
            assert step.runs
            assert set(step.runs) <= RUNS.keys()


def test_importing_them_twice_adds_nothing(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    first = ledger.import_reference()
    claims = ledger.hypotheses()
    assert {run.id: run for run in first} == RUNS
    assert ledger.import_reference() == first
    assert ledger.hypotheses() == claims
    assert {claim.text for claim in claims} == {each.text for each in reference_hypotheses()}
    retracted = ledger.hypotheses("retracted")
    assert [len(claim.steps) for claim in retracted] == [2]
    assert ledger.not_copied() == ()
    ledger.close()


def test_the_wording_is_plain_english_without_leftovers() -> None:
    def words(run: Run) -> str:
        return repr(run)

    for run in RUNS.values():
        assert not re.search(r"[éèàç]| debit | flux |\bseed\b's", words(run))
