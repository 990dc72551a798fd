"""The ledger as the service asks it: in its own thread, within its bounds, and told."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from a40console.errors import UsageError
from a40console.ledger.bounds import Bounds, Deleted
from a40console.ledger.store import Ledger
from a40console.model.event import Event, Severity
from a40console.service.run_bounds import BoundsTold
from a40console.service.run_ledger import RunLedger
from tests import make_runs


async def test_what_was_lost_is_told_where_events_are_written(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    file.write_text("no database at all\n" * 400)
    told: list[tuple[str, int]] = []
    ledger = RunLedger(file, lambda lost: told.append((lost, threading.get_ident())))
    assert await ledger.ask(lambda opened: opened.runs()) == ()
    where = await ledger.ask(lambda opened: threading.get_ident())
    await ledger.close()
    ((lost, thread),) = told
    assert "broken-1" in lost
    assert thread == threading.get_ident() != where


@pytest.mark.parametrize("gone", ["ledger.sqlite", "ledger.sqlite*"])
async def test_a_file_that_is_removed_while_it_is_open_is_there_again_whole(
    tmp_path: Path, gone: str
) -> None:
    told: list[str] = []
    file = tmp_path / "ledger.sqlite"
    ledger = RunLedger(file, told.append)
    before, after = make_runs.run(id="run-1"), make_runs.run(id="run-2")
    await ledger.ask(lambda opened: opened.add(before))
    for part in tmp_path.glob(gone):
        part.unlink()
    await ledger.ask(lambda opened: opened.add(after))
    await ledger.close()
    assert file.stat().st_mode & 0o077 == 0
    assert "removed while it was open" in told[-1]
    with closing(Ledger.open(file)) as again:
        assert {run.id for run in again.runs()} == {"run-1", "run-2"}


async def test_a_file_that_is_put_in_its_place_is_used_from_then_on(tmp_path: Path) -> None:
    file, other = tmp_path / "ledger.sqlite", tmp_path / "other.sqlite"
    with closing(Ledger.open(other)) as kept:
        kept.add(make_runs.run(id="run-2"))
    told: list[str] = []
    ledger = RunLedger(file, told.append)
    await ledger.ask(lambda opened: opened.add(make_runs.run(id="run-1")))
    other.replace(file)
    assert [run.id for run in await ledger.ask(lambda opened: opened.runs())] == ["run-2"]
    await ledger.close()
    assert "replaced" in told[-1]


async def test_runs_that_come_in_make_others_go_and_that_is_told(tmp_path: Path) -> None:
    told: list[Deleted] = []
    ledger = RunLedger(
        tmp_path / "ledger.sqlite", bounded=told.append, bounds=Bounds(runs=2, file_bytes=10**9)
    )
    ids = ("run-1", "run-2", "run-3")
    for run_id in ids:
        run = make_runs.run(id=run_id)
        assert await ledger.take(lambda opened, run=run: opened.add(run)) == run  # type: ignore[misc]
        await ledger.ask(lambda opened, name=run_id: opened.mark_copied(name, "laptop"))  # type: ignore[misc]
    assert [deleted.runs for deleted in told] == [(), (), ("run-1",)]
    assert {run.id for run in await ledger.ask(lambda opened: opened.runs())} == {"run-2", "run-3"}
    with pytest.raises(UsageError):
        await ledger.take(lambda opened: opened.run("run-1"))
    await ledger.close()


def test_a_ledger_that_stays_full_is_told_once() -> None:
    kinds: list[str] = []

    def record(
        kind: str, text: str, severity: Severity = "info", data: Mapping[str, str] | None = None
    ) -> Event:
        kinds.append(kind)
        return Event(id=1, at="", kind=kind, text=text, severity=severity, data=dict(data or {}))

    tell = BoundsTold(record)
    tell(Deleted())
    assert kinds == []
    full = Deleted(thinned=("a",), over_bytes=10)
    for deleted in (full, full, Deleted(over_runs=1)):
        tell(deleted)
    assert kinds == ["ledger.bounded", "ledger.full", "ledger.bounded"]
    tell(Deleted())
    tell(full)
    assert kinds[3:] == ["ledger.bounded", "ledger.full"]
