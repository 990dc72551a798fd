"""Claims, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from a40console.errors import RefusedError, UsageError
from a40console.ledger.store import Ledger
from tests import make_runs

FIRST, SECOND, THIRD = (f"2026-11-30T1{hour}:00:00.000Z" for hour in (1, 2, 3))
RUN, INVALID = make_runs.run(), make_runs.invalid()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger.open(tmp_path / "ledger.sqlite")
    for run in (RUN, INVALID, make_runs.failed()):
        opened.add(run)
    yield opened
    opened.close()


def test_a_claim_keeps_everything_that_was_said_of_it(ledger: Ledger) -> None:
    claim = ledger.hypothesis_add("  blocks beat\npruning ", FIRST)
    assert (claim.text, claim.state, claim.at) == ("blocks beat pruning", "open", FIRST)
    ledger.hypothesis_conclude(claim.id, "confirmed", SECOND, runs=[RUN.id], why="1.47 ×")
    told = ledger.hypothesis_conclude(claim.id, "retracted", THIRD, runs=[], why="cold cache")
    assert (told.state, told.at, told.runs, told.why) == ("retracted", THIRD, (), "cold cache")
    assert [(step.state, step.runs) for step in told.steps] == [
        ("open", ()),
        ("confirmed", (RUN.id,)),
        ("retracted", ()),
    ]
    assert ledger.hypotheses("open") == ()
    assert ledger.hypotheses("retracted") == ledger.hypotheses() == (told,)


def test_the_same_claim_is_one(ledger: Ledger) -> None:
    claim = ledger.hypothesis_add("depth 24 is best", FIRST)
    assert ledger.hypothesis_add("depth 24 is best", SECOND) == claim
    ledger.hypothesis_conclude(claim.id, "refuted", SECOND, runs=["20261130-0945"], why="")
    assert ledger.hypothesis_add("depth 24 is best", THIRD).state == "refuted"
    (told,) = ledger.hypotheses()
    assert told.runs == (RUN.id,), "the beginning of an id will do"


def test_the_last_spoken_on_comes_first(ledger: Ledger) -> None:
    first = ledger.hypothesis_add("one", FIRST)
    ledger.hypothesis_add("two", SECOND)
    assert [each.text for each in ledger.hypotheses()] == ["two", "one"]
    ledger.hypothesis_conclude(first.id, "retracted", THIRD, runs=[], why="a slip")
    assert [each.text for each in ledger.hypotheses()] == ["one", "two"]


def test_what_is_said_at_one_instant_keeps_its_order(ledger: Ledger) -> None:
    claim = ledger.hypothesis_add("one", FIRST)
    told = ledger.hypothesis_conclude(claim.id, "confirmed", FIRST, runs=[RUN.id], why="")
    assert told.state == "confirmed"


@pytest.mark.parametrize("state", ["confirmed", "refuted"])
def test_nothing_is_concluded_from_no_run_or_one_that_does_not_stand(
    ledger: Ledger, state: str
) -> None:
    claim = ledger.hypothesis_add("one", FIRST)
    conclude = ledger.hypothesis_conclude
    with pytest.raises(RefusedError, match="none is named"):
        conclude(claim.id, state, SECOND, runs=[], why="")  # type: ignore[arg-type]
    for run in (INVALID, make_runs.failed()):
        with pytest.raises(RefusedError, match=f"is {run.state}"):
            conclude(claim.id, state, SECOND, runs=[run.id], why="")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no run"):
        conclude(claim.id, state, SECOND, runs=["2099"], why="")  # type: ignore[arg-type]
    assert ledger.hypotheses() == (claim,)


def test_a_conclusion_makes_its_run_leave_again(ledger: Ledger) -> None:
    ledger.mark_copied(RUN.id, "laptop")
    claim = ledger.hypothesis_add("one", FIRST)
    assert RUN.id not in ledger.not_copied()
    ledger.hypothesis_conclude(claim.id, "confirmed", SECOND, runs=[RUN.id], why="")
    assert RUN.id in ledger.not_copied()


def test_what_is_no_claim_is_refused(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="empty"):
        ledger.hypothesis_add(" ", FIRST)
    with pytest.raises(UsageError, match="longer"):
        ledger.hypothesis_add("x" * 2001, FIRST)
    with pytest.raises(UsageError, match="no hypothesis 7"):
        ledger.hypothesis_conclude(7, "open", FIRST, runs=[], why="")
