"""A run's folder: what a crash, a full disk or a torn line leaves is what can be gone on with."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.tree import ProcessId, ProcFs
from a40console.ledger.ingest import read_folder
from a40console.model.figures import Missing
from a40console.model.run import RunProgress
from a40console.model.run_record import Doubted, Ended, Progressed, Record, Sample
from a40console.model.run_result import Doubt
from a40console.service.run_folder import RunChild, RunFolder, prune, read_records, run_folders
from a40console.service.run_process import RunProcess
from a40console.service.run_records import RecordsError, RunRecords
from a40console.service.run_view import RunView
from tests.service import orders

UNKNOWN = Missing("not known")


def test_what_a_disk_does_not_let_go_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_path: object, **_how: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    folder = RunFolder(tmp_path)
    (tmp_path / "engine-before.json").write_text("{")
    monkeypatch.setattr(Path, "unlink", read_only)
    folder.forget_before()
    folder.forget_kept()
    assert folder.may_have_changed_engine
    assert folder.before() is None


def sample(index: int) -> Sample:
    return Sample(
        arm="1 stream",
        repeat=0,
        index=index,
        warm_up=False,
        due_s=0.0,
        sent_s=0.0,
        ttft_s=0.1,
        total_s=1.0,
        gaps_s=(0.5, 0.4),
        generated_tokens=3,
    )


def progress(done: int) -> Progressed:
    told = RunProgress(
        arm="a", done=done, total=9, text="", elapsed_s=1.0, eta_s=UNKNOWN, usd=UNKNOWN
    )
    return Progressed(progress=told)


ENDED = Ended(at=orders.AT, state="done")
FATAL = Doubt(code="foreign-traffic", text="others used the engine", invalidates=True)
RECORDS: tuple[Record, ...] = (*map(sample, range(5)), progress(3), ENDED)


def folder_at(path: Path, run_id: str = "20261130-174501-sweep-1f3a") -> RunFolder:
    folder = RunFolder(path / run_id)
    folder.write_order(orders.order(run_id))
    return folder


def written(folder: RunFolder, *records: Record) -> None:
    with RunRecords(folder.records_file) as file:
        for record in records:
            file.append(record)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    written(folder, *RECORDS)
    offset, found, _ = read_records(folder.records_file, 0)
    assert found == RECORDS
    assert read_records(folder.records_file, offset) == (offset, (), 0)
    assert folder.order() == orders.order()
    assert folder.path.stat().st_mode & 0o077 == 0
    assert folder.records_file.stat().st_mode & 0o077 == 0


@given(st.integers(min_value=1, max_value=2000), st.integers(min_value=0, max_value=400))
def test_however_it_is_read_in_pieces_nothing_is_lost_or_told_twice(piece: int, torn: int) -> None:
    """A reader follows while the file grows, and a last line that is not whole yet waits."""
    with tempfile.TemporaryDirectory() as folder:
        _read_in_pieces(Path(folder) / "run.jsonl", piece, torn)


def _read_in_pieces(path: Path, piece: int, torn: int) -> None:
    with RunRecords(path) as file:
        for record in RECORDS:
            file.append(record)
    data = path.read_bytes()
    path.write_bytes(data[: max(0, len(data) - torn)])
    found: list[Record] = []
    offset = 0
    for _ in range(len(data)):
        following, records, _ = read_records(path, offset, max(piece, 400))
        found += records
        if following == offset:
            break
        offset = following
    assert tuple(found) == RECORDS[: len(found)]
    path.write_bytes(data)
    _, rest, _ = read_records(path, offset)
    assert (*found, *rest) == RECORDS


def test_a_line_that_the_disk_did_not_take_whole_is_cut_off_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_at(tmp_path)
    with RunRecords(folder.records_file) as file:
        file.append(sample(0))
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", _full_after(os.write, 20))
            with pytest.raises(RecordsError, match="No space left"):
                file.append(sample(1))
        file.append(ENDED)
    assert read_records(folder.records_file, 0)[1] == (sample(0), ENDED)


def _full_after(write: Callable[[int, bytes], int], room: int) -> Callable[[int, bytes], int]:
    """A disk that takes some bytes more and then nothing."""
    left = [room]

    def write_some(fd: int, data: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken, left[0] = left[0], 0
        return write(fd, bytes(data[:taken]))

    return write_some


def test_a_torn_end_of_a_killed_process_is_cut_off_by_the_next_writer(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    written(folder, sample(0))
    with folder.records_file.open("ab") as file:
        file.write(b'{"kind": "sam')
    written(folder, ENDED)
    assert read_records(folder.records_file, 0)[1] == (sample(0), ENDED)


def test_a_damaged_line_costs_itself_alone(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    written(folder, sample(0))
    with folder.records_file.open("ab") as file:
        file.write(b'\xff\x00garbage\n{"kind": "unheard of"}\n')
    written(folder, ENDED)
    assert read_records(folder.records_file, 0)[1:] == ((sample(0), ENDED), 2)


def test_the_view_follows_a_run_from_its_order_to_its_end(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    view = RunView(folder)
    assert view.look(lives=True).state == "queued"
    written(folder, sample(0), progress(4))
    running = view.look(lives=True)
    assert running.state == "running"
    assert isinstance(running.progress, RunProgress)
    assert running.progress.done == 4
    written(folder, Ended(at=orders.AT, state="partial", reason="cancelled by alice"))
    ended = view.look(lives=False)
    assert (ended.state, ended.reason) == ("partial", "cancelled by alice")


@pytest.mark.parametrize(
    "records",
    [
        (),
        (sample(0), progress(4)),
        (sample(0), Doubted(doubt=FATAL), ENDED),
        (Ended(at=orders.AT, state="failed", reason="cancelled, before it started"),),
    ],
    ids=["before it began", "killed", "doubted", "dropped"],
)
def test_the_view_says_of_an_end_what_the_ledger_says(
    tmp_path: Path, records: tuple[Record, ...]
) -> None:
    folder = folder_at(tmp_path)
    view = RunView(folder)
    written(folder, *records)
    with folder.records_file.open("ab") as file:
        file.write(b"garbage\n")
    view.look(lives=True)
    seen = view.look(lives=False)
    assert seen == read_folder(folder.path).run
    assert seen == RunView(folder).look(lives=False)
    if records and isinstance(records[0], Sample):
        assert seen.state == ("invalid" if ENDED in records else "partial"), "it measured"


@pytest.mark.parametrize(
    ("records", "state"),
    [((), "failed"), ((sample(0),), "invalid"), ((sample(0), ENDED), "invalid")],
)
def test_a_damaged_order_is_told_with_what_is_wrong(
    tmp_path: Path, records: tuple[Record, ...], state: str
) -> None:
    folder = folder_at(tmp_path)
    written(folder, *records)
    (folder.path / "order.json").write_bytes(b'{"id": "2026\x00')
    told = RunView(folder).look(lives=False)
    assert (told.id, told.spec.experiment, told.state) == (folder.id, "sweep", state)
    assert "its order is damaged: " in told.reason
    assert "column" in told.reason, "what the parser met"
    (folder.path / "order.json").unlink()
    assert [each.id for each in run_folders(tmp_path)] == [folder.id], "nor is it forgotten"
    assert "No such file" in RunView(folder).look(lives=False).reason


def test_why_it_is_to_end_reaches_the_process_whole(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    assert folder.why_ended() is None
    folder.ask_to_end("cancelled by alice@pod")
    assert folder.why_ended() == "cancelled by alice@pod"
    (folder.path / "cancel").write_bytes(b"")
    assert folder.why_ended() == "cancelled"


def test_a_process_of_before_a_reboot_or_of_another_start_is_nobody(tmp_path: Path) -> None:
    folder = folder_at(tmp_path)
    proc = ProcFs()
    me = proc.read_process(os.getpid())
    assert me is not None
    folder.write_child(RunChild(me.id, proc.boot_id()))
    assert folder.child() == RunChild(me.id, proc.boot_id())
    assert RunProcess(folder).lives()
    folder.write_child(RunChild(ProcessId(me.id.pid, me.id.start_ticks + 1), proc.boot_id()))
    assert not RunProcess(folder).lives()
    folder.write_child(RunChild(me.id, "another boot"))
    assert not RunProcess(folder).lives()


def test_only_folders_that_the_ledger_has_are_pruned(tmp_path: Path) -> None:
    names = [f"2026113{day}-000000-sweep-0000" for day in range(6)]
    for name in names:
        folder_at(tmp_path, name)
    for name in names[:4]:
        RunFolder(tmp_path / name).note_kept()
    prune(tmp_path, kept=2)
    assert [folder.id for folder in run_folders(tmp_path)] == names[2:]
