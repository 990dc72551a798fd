"""Runs that leave one ledger for another, and meet again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from a40console.errors import RefusedError, UsageError
from a40console.ledger.store import Ledger
from a40console.model.figures import Missing
from a40console.model.run import Note, RunEnvironment
from tests import make_runs

AT, LATER = "2026-11-30T18:00:00.000Z", "2026-11-30T19:00:00.000Z"
RUN = make_runs.run()


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger.open(tmp_path / "pod.sqlite")
    opened._update(RUN, make_runs.samples(RUN), make_runs.arm_ends(RUN))
    yield opened
    opened.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger.open(tmp_path / "home.sqlite")
    yield opened
    opened.close()


def sent(document: Any) -> Any:
    """As it comes out of a file."""
    return json.loads(json.dumps(document, allow_nan=False))


def test_a_run_is_whole_where_it_arrives(pod: Ledger, home: Ledger) -> None:
    told = home.import_run(sent(pod.document(RUN.id)))
    assert isinstance(RUN.environment, RunEnvironment)
    assert told == replace(RUN, origin=RUN.environment.host)
    assert home.samples(RUN.id) == pod.samples(RUN.id) == make_runs.samples(RUN)
    assert home.arm_ends(RUN.id) == make_runs.arm_ends(RUN)
    assert home.import_run(sent(pod.document(RUN.id))) == told
    assert home.not_copied() == (), "it is the pod that has to see that it is copied"


def test_where_it_comes_from_is_told_and_kept(pod: Ledger, home: Ledger) -> None:
    assert home.import_run(sent(pod.document(RUN.id)), origin="root@pod").origin == "root@pod"
    third = sent(home.document(RUN.id))
    assert pod.import_run(third, origin="laptop").origin == Missing("this machine")
    nowhere = replace(make_runs.failed(), environment=Missing("it has not started"))
    pod.add(nowhere)
    assert home.import_run(sent(pod.document(nowhere.id))).origin == "another machine"


def test_marks_travel_along(pod: Ledger, home: Ledger) -> None:
    for run in (make_runs.simulated(), make_runs.reference(), make_runs.invalid()):
        pod.add(run)
        told = home.import_run(sent(pod.document(run.id)))
        assert (told.state, told.reason, told.reference) == (run.state, run.reason, run.reference)
        assert isinstance(told.environment, RunEnvironment)
        assert isinstance(run.environment, RunEnvironment)
        assert told.environment.simulated == run.environment.simulated


def test_what_was_written_on_both_sides_is_on_both_after_a_round(pod: Ledger, home: Ledger) -> None:
    home.import_run(sent(pod.document(RUN.id)))
    home.note(RUN.id, "read at home", AT)
    pod.note(RUN.id, "read on the pod", LATER)
    pod.invalidate(RUN.id, "the fan had stopped")
    home.import_run(sent(pod.document(RUN.id)))
    told = pod.import_run(sent(home.document(RUN.id)))
    for run in (told, home.run(RUN.id)):
        assert run.notes == (
            Note(at=AT, text="read at home"),
            Note(at=LATER, text="read on the pod"),
        )
        assert (run.state, run.reason) == ("invalid", "the fan had stopped")
        assert run.result == RUN.result


def test_claims_travel_with_the_runs_that_spoke_on_them(pod: Ledger, home: Ledger) -> None:
    claim = pod.hypothesis_add("blocks beat pruning", AT)
    pod.hypothesis_conclude(claim.id, "confirmed", LATER, runs=[RUN.id], why="1.47 ×")
    pod.hypothesis_add("depth 24 is best", AT)
    home.hypothesis_add("something else first", AT)
    for _ in range(2):
        home.import_run(sent(pod.document(RUN.id)))
    told = {each.text: each for each in home.hypotheses()}
    assert told.keys() == {"blocks beat pruning", "depth 24 is best", "something else first"}
    assert told["blocks beat pruning"].state == "confirmed"
    assert [step.state for step in told["blocks beat pruning"].steps] == ["open", "confirmed"]
    assert told["blocks beat pruning"].runs == (RUN.id,)


def test_another_run_of_that_id_is_refused_and_nothing_changes(pod: Ledger, home: Ledger) -> None:
    home.add(replace(RUN, asked_at="2026-11-29T00:00:00Z"))
    with pytest.raises(RefusedError, match="Another run of the id"):
        home.import_run(sent(pod.document(RUN.id)))
    assert home.samples(RUN.id) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "something"}, "no run's document"),
        ({"version": 2}, "Another version"),
        ({"run": {"id": "x"}}, "cannot be read"),
        ({"samples": [{"kind": "sample"}]}, "cannot be read"),
        ({"revision": "1"}, "cannot be read"),
    ],
)
def test_what_is_no_document_is_refused(
    pod: Ledger, home: Ledger, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        home.import_run(sent(pod.document(RUN.id)) | change)
    assert home.runs() == ()


@pytest.mark.parametrize("name", ["../../etc", "", ".hidden", "a/b", "x" * 200, "a\x1b[2Jb"])
def test_an_id_that_could_name_another_folder_is_refused(
    pod: Ledger, home: Ledger, name: str
) -> None:
    document = sent(pod.document(RUN.id))
    document["run"]["id"] = name
    with pytest.raises(UsageError, match="an id that is none"):
        home.import_run(document)


def test_a_run_that_one_side_cannot_read_spoils_no_copy(pod: Ledger, home: Ledger) -> None:
    home.import_run(sent(pod.document(RUN.id)))
    pod._connection.execute("UPDATE runs SET head = '{}'")
    told = home.import_run(sent(pod.document(RUN.id)))
    assert (told.state, told.result) == (RUN.state, RUN.result)
    assert pod.import_run(sent(home.document(RUN.id))).result == RUN.result


def test_only_what_has_ended_leaves(pod: Ledger, home: Ledger) -> None:
    running = make_runs.running()
    pod.add(running)
    with pytest.raises(RefusedError, match="not ended"):
        pod.document(running.id)
    document = sent(pod.document(RUN.id))
    document["run"]["state"] = "running"
    with pytest.raises(UsageError, match="had not ended"):
        home.import_run(document)
    with pytest.raises(UsageError, match="no run's document"):
        home.import_run([])
