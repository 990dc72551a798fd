"""Files of every earlier version become this one's, whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from a40console.ledger.database import LedgerError
from a40console.ledger.migrations import NewerFileError, migrate
from a40console.ledger.schema import STEPS
from a40console.ledger.store import Ledger
from tests import make_runs

VERSIONS = Path(__file__).parent / "versions"


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        yield opened


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables(connection: sqlite3.Connection) -> set[str]:
    return {
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not name.startswith("sqlite_")
    }


def shape(connection: sqlite3.Connection) -> list[str]:
    return sorted(
        text for (text,) in connection.execute("SELECT sql FROM sqlite_master") if text is not None
    )


def test_there_is_a_file_of_every_earlier_version() -> None:
    written = {file.stem for file in VERSIONS.glob("*.sql")}
    assert written == {str(number) for number in range(1, len(STEPS))}


@pytest.mark.parametrize("number", range(1, len(STEPS)))
def test_a_file_of_an_earlier_version_keeps_its_runs(number: int, tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(file)) as old:
        old.executescript((VERSIONS / f"{number}.sql").read_text())
        assert version(old) == number
    ledger = Ledger.open(file)
    run = make_runs.run(id="20261130-094501-compaction-1f3a")
    kept = ledger.run(run.id)
    assert (kept.spec, kept.state, kept.result) == (run.spec, run.state, run.result)
    assert [note.text for note in kept.notes] == ["kept since version 1"]
    assert kept.copied_to == ("laptop",)
    assert ledger.samples(run.id) == make_runs.samples(run)[:3]
    assert ledger.hypothesis_add("a claim", "2026-11-30T18:00:00Z").id == 1
    ledger.close()
    with (
        closing(sqlite3.connect(file)) as migrated,
        closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh,
    ):
        migrate(fresh)
        assert shape(migrated) == shape(fresh), "a file that grew is as one that is new"


def test_each_step_is_taken_once(connection: sqlite3.Connection) -> None:
    assert migrate(connection) == 0
    assert version(connection) == len(STEPS)
    assert migrate(connection) == len(STEPS)
    steps = (*STEPS, "ALTER TABLE runs ADD COLUMN colour TEXT;")
    assert migrate(connection, steps) == len(STEPS)
    assert version(connection) == len(steps)


def test_a_step_that_fails_leaves_the_file_as_it_was(connection: sqlite3.Connection) -> None:
    migrate(connection)
    before = tables(connection)
    steps = (*STEPS, "CREATE TABLE more (id INTEGER);", "DROP TABLE runs; NOT SQL AT ALL;")
    with pytest.raises(sqlite3.Error):
        migrate(connection, steps)
    assert version(connection) == len(STEPS) + 1, "the step before it stands"
    assert tables(connection) == before | {"more"}
    assert not connection.in_transaction


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    Ledger.open(file).close()
    with closing(sqlite3.connect(file)) as newer:
        newer.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
        newer.commit()
        with pytest.raises(NewerFileError):
            migrate(newer)
    with pytest.raises(LedgerError, match="newer version"):
        Ledger.open(file)
    assert not list(tmp_path.glob("*broken*"))
