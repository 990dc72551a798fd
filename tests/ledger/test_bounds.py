"""The ledger stays within its bounds and never lets go of what is nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.ledger.bounds import Bounds, Deleted
from a40console.ledger.store import Ledger
from a40console.model.run import Run
from tests import make_runs

ROOM = 10**9


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger.open(tmp_path / "ledger.sqlite")
    yield opened
    opened.close()


def run_of(number: int) -> Run:
    return make_runs.run(
        id=f"run-{number:03d}", asked_at=f"2026-11-30T10:{number // 60:02d}:{number % 60:02d}Z"
    )


def filled(ledger: Ledger, count: int, *, copied: int = 0, repeats: int = 4) -> list[str]:
    """So many runs, the oldest of which another machine has."""
    runs = [run_of(number) for number in range(count)]
    for number, run in enumerate(runs):
        samples = make_runs.samples(run, repeats=repeats)
        ledger._update(run, samples, make_runs.arm_ends(run))
        if number < copied:
            ledger.mark_copied(run.id, "laptop")
    return [run.id for run in runs]


def test_within_its_bounds_nothing_goes(ledger: Ledger) -> None:
    filled(ledger, 5, copied=5)
    assert ledger.delete_old(Bounds(runs=5, file_bytes=ROOM)) == Deleted()
    assert len(ledger.runs()) == 5


def test_the_oldest_that_another_machine_has_go_first(ledger: Ledger) -> None:
    ids = filled(ledger, 8, copied=6)
    told = ledger.delete_old(Bounds(runs=5, file_bytes=ROOM))
    assert told == Deleted(runs=tuple(ids[:3]))
    assert {run.id for run in ledger.runs()} == set(ids[3:])
    assert ledger.samples(ids[3]) == make_runs.samples(run_of(3), repeats=4)


def test_what_is_nowhere_else_stays_and_the_excess_is_told(ledger: Ledger) -> None:
    ids = filled(ledger, 8, copied=2)
    ledger.note(ids[1], "this came after the copy", "2026-11-30T20:00:00Z")
    told = ledger.delete_old(Bounds(runs=3, file_bytes=ROOM))
    assert told == Deleted(runs=(ids[0],), over_runs=4)
    assert ledger.not_copied() == tuple(reversed(ids[1:]))


def test_too_many_bytes_take_single_requests_but_no_result(ledger: Ledger, tmp_path: Path) -> None:
    ids = filled(ledger, 6, repeats=12)
    pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
    page_bytes = ledger._connection.execute("PRAGMA page_size").fetchone()[0]
    told = ledger.delete_old(Bounds(file_bytes=pages * page_bytes * 3 // 4))
    assert told.runs == ()
    assert 0 < len(told.thinned) < 6
    assert told.thinned == tuple(ids[: len(told.thinned)])
    assert told.over_bytes == 0
    for number, run_id in enumerate(ids):
        assert ledger.run(run_id).result == run_of(number).result
        assert ledger.arm_ends(run_id) == make_runs.arm_ends(run_of(number))
        assert bool(ledger.samples(run_id)) is (run_id not in told.thinned)
    ledger.close()
    assert (
        tmp_path / "ledger.sqlite"
    ).stat().st_size <= pages * page_bytes * 3 // 4 + 8 * page_bytes


def test_what_cannot_be_met_is_told(ledger: Ledger) -> None:
    filled(ledger, 3)
    told = ledger.delete_old(Bounds(file_bytes=4096))
    assert len(told.thinned) == 3
    assert told.over_bytes > 0
    assert len(ledger.runs()) == 3


def test_a_run_that_has_not_ended_is_never_let_go(ledger: Ledger) -> None:
    ledger.add(make_runs.running())
    ledger.add(make_runs.reference())
    told = ledger.delete_old(Bounds(runs=0, file_bytes=ROOM))
    assert told == Deleted(runs=(make_runs.reference().id,), over_runs=1)


def test_a_run_pulled_from_a_pod_that_is_gone_stays(ledger: Ledger) -> None:
    pulled = replace(run_of(1), origin="root@pod")
    ledger.add(pulled)
    assert ledger.delete_old(Bounds(runs=0, file_bytes=ROOM)) == Deleted(over_runs=1)
