"""Two ledgers that exchange a run end up with the same, in whatever order they do."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from a40console.ledger.merging import imported, invalid, is_same, updated
from a40console.model.run import ENDED, Run
from tests import make_runs

DONE = make_runs.run()
RUNNING = replace(
    make_runs.running(), id=DONE.id, spec=DONE.spec, asked_at=DONE.asked_at, settled=DONE.settled
)
states = st.sampled_from([RUNNING, DONE, invalid(DONE, "the fan had stopped")])


@given(ours=states, theirs=states)
def test_what_either_knows_of_the_end_both_know_after_a_round(ours: Run, theirs: Run) -> None:
    here = imported(ours, theirs)
    there = imported(theirs, here)
    if here.state in ENDED:
        assert there == here
    assert (here.state == "invalid") == ("invalid" in (ours.state, theirs.state))
    assert imported(here, there) == here


@given(told=st.lists(states, min_size=1, max_size=6))
def test_no_telling_makes_an_end_undone(told: list[Run]) -> None:
    known = told[0]
    for each in told[1:]:
        before, known = known, updated(known, each)
        assert known.state in ENDED or before.state not in ENDED
        assert before.state != "invalid" or (known.state, known.reason) == (
            "invalid",
            before.reason,
        )


def test_one_id_does_not_make_two_runs_one() -> None:
    assert is_same(DONE, replace(DONE, notes=(), state="invalid"))
    assert not is_same(DONE, replace(DONE, asked_at="2026-11-01T00:00:00Z"))
    assert not is_same(DONE, replace(DONE, reference=True))
