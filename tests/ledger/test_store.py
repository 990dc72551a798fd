"""What is written down of runs is there again: after a restart, a kill, a full disk, damage."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.errors import RefusedError, UsageError
from a40console.ledger.database import LedgerError
from a40console.ledger.store import Ledger
from a40console.model.figures import Missing
from a40console.model.run import Note
from a40console.model.run_result import RunResult
from tests import make_runs

AT = "2026-11-30T18:00:00.000Z"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(file: Path) -> Iterator[Ledger]:
    opened = Ledger.open(file)
    yield opened
    opened.close()


def test_a_run_is_whole_again_in_the_next_process(file: Path) -> None:
    ledger = Ledger.open(file)
    written = [ledger.add(run) for run in make_runs.several()]
    del ledger  # as by a kill: it is never closed
    again = Ledger.open(file)
    for run, told in zip(make_runs.several(), written, strict=True):
        assert again.run(run.id) == told == replace(run, copied_to=())
    again.close()


def test_the_file_is_nobody_elses_to_read(ledger: Ledger, file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_list_has_verdicts_and_leaves_tables_to_the_single_run(ledger: Ledger) -> None:
    for run in make_runs.several():
        ledger.add(run)
    listed = ledger.runs()
    assert [run.id for run in listed] == [
        run.id for run in sorted(make_runs.several(), key=lambda run: run.asked_at, reverse=True)
    ]
    for run in listed:
        if isinstance(run.result, RunResult):
            whole = ledger.run(run.id).result
            assert isinstance(whole, RunResult)
            assert run.result == replace(whole, tables=(), plots=(), excerpts=())
    assert {run.spec.experiment for run in ledger.runs(experiment="sweep")} == {"sweep"}
    assert [run.id for run in ledger.runs(state="invalid")] == [make_runs.invalid().id]
    assert len(ledger.runs(2)) == 2


def test_the_beginning_of_an_id_will_do_where_it_is_one_runs(ledger: Ledger) -> None:
    first, second = make_runs.compaction(), make_runs.partial()
    ledger.add(first)
    ledger.add(second)
    assert ledger.run("20261130-09").id == first.id
    with pytest.raises(UsageError, match="More than one"):
        ledger.run("20261130")
    with pytest.raises(UsageError, match="no run"):
        ledger.run("2027")
    with pytest.raises(UsageError, match="no run"):
        ledger.run("")
    ledger.add(replace(first, id=first.id + "-longer"))
    assert ledger.run(first.id).id == first.id, "a whole id is not the beginning of another"


def test_what_has_ended_does_not_run_again(ledger: Ledger) -> None:
    running, done = make_runs.running(), make_runs.run(id=make_runs.running().id)
    ledger.add(running)
    assert not ledger.has(running.id)
    ledger.add(done)
    assert ledger.add(running).state == "done"
    assert ledger.has(done.id)


def test_an_invalid_run_stays_invalid_with_its_figures(ledger: Ledger) -> None:
    run = make_runs.run()
    ledger.add(run)
    told = ledger.invalidate(run.id, "a neighbour ran\n a benchmark")
    assert (told.state, told.reason) == ("invalid", "a neighbour ran a benchmark")
    assert told.result == run.result
    assert ledger.add(run).state == "invalid"
    with pytest.raises(UsageError, match="empty"):
        ledger.invalidate(run.id, "  ")
    ledger.add(make_runs.running())
    with pytest.raises(RefusedError, match="not ended"):
        ledger.invalidate(make_runs.running().id, "why not")


def test_notes_add_up_and_one_line_is_there_once(ledger: Ledger) -> None:
    run = make_runs.regimes()
    ledger.add(run)
    ledger.note(run.id, "the fan was loud", AT)
    told = ledger.note(run.id, "the fan was loud", AT)
    assert told.notes == (*run.notes, Note(at=AT, text="the fan was loud"))
    assert ledger.add(run).notes == told.notes
    assert ledger.runs()[0].notes == told.notes
    with pytest.raises(UsageError, match="longer"):
        ledger.note(run.id, "x" * 2001, AT)
    half = ledger.note(run.id, "half a character: \ud83d", AT)
    assert any("half a character: ?" in note.text for note in half.notes)


def test_what_left_and_then_changed_has_not_left(ledger: Ledger) -> None:
    run = make_runs.run()
    for each in (run, make_runs.running(), make_runs.reference(), make_runs.failed()):
        ledger.add(each)
    assert ledger.not_copied() == (run.id, make_runs.failed().id)
    ledger.mark_copied(run.id, "laptop")
    assert ledger.not_copied() == (make_runs.failed().id,)
    assert ledger.run(run.id).copied_to == ("laptop",)
    before = ledger.document(run.id)["revision"]
    ledger.note(run.id, "and one more thing", AT)
    assert ledger.not_copied() == (run.id, make_runs.failed().id)
    assert ledger.run(run.id).copied_to == ()
    ledger.mark_copied(run.id, "laptop", revision=before)
    assert run.id in ledger.not_copied(), "what was copied is older than the note"
    ledger.mark_copied(run.id, "laptop")
    ledger.add(run)
    assert ledger.not_copied() == (make_runs.failed().id,), "nothing new was added"
    told = {each.id: each.copied for each in ledger.leaving("laptop")}
    assert told == {run.id: True, make_runs.failed().id: False}
    ledger.mark_copied(run.id, "laptop", revision=99)
    ledger.note(run.id, "later", AT)
    assert run.id in ledger.not_copied(), "nobody has more of a run than there was"
    assert not any(each.copied for each in ledger.leaving("laptop"))


def test_a_full_disk_is_told_and_takes_nothing_that_was_there(ledger: Ledger) -> None:
    kept = ledger.add(make_runs.run())
    pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]
    ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
    more = [make_runs.run(id=f"run-{number}") for number in range(10)]
    with pytest.raises(LedgerError, match="disk did not take") as caught:
        [ledger.add(run) for run in more]
    assert "full" in caught.value.evidence
    assert "Free space" in caught.value.remedy
    assert ledger.run(kept.id) == kept
    ledger._connection.execute("PRAGMA max_page_count = 1000000")
    for run in more:
        ledger.add(run)
    assert len(ledger.runs()) == 11


_WRITER = """
import sys
from pathlib import Path
from a40console.ledger.store import Ledger
from tests import make_runs
ledger = Ledger.open(Path(sys.argv[1]))
for number in range(10_000):
    ledger.add(make_runs.run(id=f"run-{number:05d}"))
    print(number, flush=True)
"""


def test_what_was_told_as_kept_is_there_after_a_kill(file: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(file)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == 10:
                writer.send_signal(signal.SIGKILL)
                break
    ledger = Ledger.open(file)
    assert not ledger.lost
    kept = {run.id for run in ledger.runs(10_000)}
    assert kept >= {f"run-{number:05d}" for number in range(11)}
    for run_id in kept:
        assert ledger.run(run_id).result == make_runs.run().result
    ledger.close()


def test_a_damaged_file_is_kept_aside_and_read_as_far_as_it_can(file: Path) -> None:
    ledger = Ledger.open(file)
    ledger._connection.execute("PRAGMA synchronous = OFF")
    for number in range(40):
        ledger.add(make_runs.run(id=f"run-{number:03d}"))
    ledger.hypothesis_add("blocks are cheaper", AT)
    ledger.close()
    data = bytearray(file.read_bytes())
    page_bytes = int.from_bytes(data[16:18], "big")
    middle = len(data) // page_bytes // 2
    for page in range(middle, middle + 3):
        data[page * page_bytes : (page + 1) * page_bytes] = os.urandom(page_bytes)
    file.write_bytes(data)
    again = Ledger.open(file)
    assert "ledger.sqlite.broken-1" in again.lost
    assert (file.parent / "ledger.sqlite.broken-1").stat().st_size == len(data)
    kept = again.runs(1000)
    assert 15 < len(kept) < 40, "most of it can still be read"
    assert f"could be read: {len(kept)};" in again.lost
    again.add(make_runs.sweep())
    again.close()
    after = Ledger.open(file)
    assert not after.lost
    assert len(after.runs(1000)) == len(kept) + 1
    after.close()


def test_what_is_no_database_at_all_does_not_stop_the_ledger(file: Path) -> None:
    file.write_text("this was a note to myself\n" * 400)
    ledger = Ledger.open(file)
    assert "broken-1" in ledger.lost
    ledger.add(make_runs.run())
    file_two = file.with_name("other.sqlite")
    file_two.mkdir()
    with pytest.raises(LedgerError):
        Ledger.open(file_two)
    ledger.close()


def test_a_row_that_cannot_be_read_is_told_and_hides_no_other(ledger: Ledger) -> None:
    run, other = make_runs.run(), make_runs.sweep()
    ledger.add(run)
    ledger.add(other)
    ledger._connection.execute("UPDATE runs SET head = '{\"id\": 1}' WHERE id = ?", (run.id,))
    listed = {each.id: each for each in ledger.runs()}
    assert listed[run.id].state == "invalid"
    assert "cannot be read" in listed[run.id].reason
    assert listed[other.id].state == "done"
    assert ledger.invalidate(run.id, "no matter").reason == listed[run.id].reason
    assert ledger.add(run) == replace(run, copied_to=()), "who has it whole may write it anew"
    ledger._connection.execute("UPDATE runs SET detail = x'00' WHERE id = ?", (other.id,))
    told = ledger.run(other.id).result
    assert isinstance(told, RunResult)
    assert "cannot be read" in told.headline


def test_a_second_writer_waits_its_turn(ledger: Ledger, file: Path) -> None:
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        reader = ledger.runs()
        other.execute("ROLLBACK")
    assert reader == ()
    other.close()
    assert ledger.add(make_runs.run()).origin == Missing("this machine")
