"""The history's file: SQLite with one writer, the service; every call may wait for the disk."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from a40console.service.series import LATEST_S, NAMES, is_row
from a40console.service.tally import KEPT_S, Tally

VERSION = 1
BUSY_TIMEOUT_S = 1.0
WAL_LIMIT_BYTES = 1024 * 1024
SERIES_FACT = "series"

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, step_s INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS rows_by_step ON rows (step_s, id);
CREATE TABLE IF NOT EXISTS reasons (code INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tallies (
    step_s INTEGER NOT NULL, at_s INTEGER NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (step_s, at_s)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_PRUNE_ROWS = """
DELETE FROM rows WHERE step_s = ? AND id <= (
    SELECT id FROM rows WHERE step_s = ? ORDER BY id DESC LIMIT 1 OFFSET ?)
"""
_REASONS = "SELECT text FROM reasons ORDER BY code"


class StoreError(Exception):
    """The disk did not take it, or did not give it; the text says why."""


class StoreLostError(StoreError):
    """The file was broken and is moved aside: what it should hold must be written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """All that the file holds."""

    rows: tuple[tuple[int, bytes], ...] = ()
    """Step and packed row, oldest first by resolution."""

    reasons: tuple[str, ...] = ()
    tallies: Mapping[tuple[int, int], Tally] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    lost: str = ""
    """What of it could not be read, and where the file is that has it: this is to be written anew.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is written at once, or not at all."""

    rows: Sequence[tuple[int, bytes]] = ()
    """Step and packed row, oldest first by resolution."""

    reasons: Sequence[str] = ()
    """All of them, by number."""

    tallies: Mapping[tuple[int, int], Tally] = field(default_factory=dict)
    """Step and begin to the tally that replaces what is there."""

    facts: Mapping[str, str] = field(default_factory=dict)
    keep_rows: Mapping[int, int] = field(default_factory=dict)
    """How many rows each step may have."""

    keep_tallies_from_s: Mapping[int, int] = field(default_factory=dict)
    """Begin of the oldest tally of each step that stays."""


class HistoryStore:
    """One SQLite file, opened at its first use and again after trouble; for one thread at a time.

    The write-ahead log makes a batch whole or absent, whenever the process is killed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def load(self) -> Stored:
        """What the file holds; where some of it is damaged, the rest of a file that is put aside.

        Raises:
            StoreError: If it cannot be read.
            StoreLostError: If it was broken.
        """
        stored, unreadable = self._run(_read)
        if not unreadable:
            return stored
        self.close()
        error = self._moved_aside(f"{unreadable} of its entries cannot be read")
        if not isinstance(error, StoreLostError):
            raise error
        return replace(stored, lost=str(error))

    def write(self, batch: Batch) -> None:
        """Write a batch, all of it.

        Raises:
            StoreError: If the disk does not take it; nothing of it is written then.
            StoreLostError: If the file was broken.
        """
        self._run(lambda connection: _write(connection, batch))

    def close(self) -> None:
        """Give the file back."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _run(self, act: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = _open(self._path)
            return act(self._connection)
        except (sqlite3.Error, OSError) as error:
            self.close()
            if _is_broken(error):
                raise self._moved_aside(str(error)) from error
            raise StoreError(f"{self._path}: {error}") from error

    def _moved_aside(self, error: str) -> StoreError:
        """Put the broken file under another name, over the one that lies there from before."""
        aside = self._path.with_name(f"{self._path.name}.broken")
        try:
            for suffix in ("-wal", "-shm"):
                self._path.with_name(f"{self._path.name}{suffix}").unlink(missing_ok=True)
            self._path.replace(aside)
        except OSError as failure:
            return StoreError(f"{self._path} is broken ({error}) and cannot be moved: {failure}")
        return StoreLostError(f"{self._path} was broken ({error}); it is kept as {aside.name}")


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    # Bytes that are no text are an entry that cannot be read, not a file that cannot.
    connection.text_factory = lambda data: data.decode(errors="replace")
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise _BrokenError(str(verdict))
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, VERSION):
        raise _BrokenError(f"its version is {version}, not {VERSION}")
    connection.executescript(f"{_SCHEMA} PRAGMA user_version = {VERSION};")


class _BrokenError(sqlite3.DatabaseError):
    """What SQLite itself does not refuse, but we do."""


def _is_broken(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, _BrokenError) or code in (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
    )


def _read(connection: sqlite3.Connection) -> tuple[Stored, int]:
    """What is there, and how many of its entries are damaged: those are left out."""
    damaged = 0
    listed = dict(connection.execute("SELECT name, value FROM facts"))
    facts = {name: value for name, value in listed.items() if type(name) is type(value) is str}
    damaged += len(listed) - len(facts)
    rows: list[tuple[int, bytes]] = []
    if facts.get(SERIES_FACT) == _series():  # rows of another version have other columns
        for step_s, data in connection.execute("SELECT step_s, data FROM rows ORDER BY id"):
            if type(step_s) is int and is_row(data):
                rows.append((step_s, data))
            else:
                damaged += 1
    reasons = [text for (text,) in connection.execute(_REASONS)]
    # One that is damaged keeps its place: rows name them by number.
    damaged += sum(type(text) is not str for text in reasons)
    tallies: dict[tuple[int, int], Tally] = {}
    for step_s, at_s, data in connection.execute("SELECT step_s, at_s, data FROM tallies"):
        try:
            if step_s not in KEPT_S or type(at_s) is not int or not 0 <= at_s < LATEST_S:
                raise ValueError("no begin of a tally")
            tallies[step_s, at_s] = Tally.parse(data)
        except ValueError:
            damaged += 1
    stored = Stored(
        rows=tuple(rows),
        reasons=tuple(
            text if type(text) is str else f"not readable ({code})"
            for code, text in enumerate(reasons)
        ),
        tallies=tallies,
        facts=facts,
    )
    return stored, damaged


def _write(connection: sqlite3.Connection, batch: Batch) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        _put(connection, batch)
        _prune(connection, batch)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _put(connection: sqlite3.Connection, batch: Batch) -> None:
    facts = {**batch.facts, SERIES_FACT: _series()}
    known = dict(connection.execute("SELECT name, value FROM facts")).get(SERIES_FACT)
    if known not in (None, facts[SERIES_FACT]):
        connection.execute("DELETE FROM rows")
    put = connection.executemany
    put("INSERT INTO rows (step_s, data) VALUES (?, ?)", batch.rows)
    put("INSERT OR REPLACE INTO reasons VALUES (?, ?)", enumerate(batch.reasons))
    put(
        "INSERT OR REPLACE INTO tallies VALUES (?, ?, ?)",
        ((*key, tally.text()) for key, tally in batch.tallies.items()),
    )
    put("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())


def _prune(connection: sqlite3.Connection, batch: Batch) -> None:
    for step_s, keep in batch.keep_rows.items():
        connection.execute(_PRUNE_ROWS, (step_s, step_s, keep))
    for step_s, from_s in batch.keep_tallies_from_s.items():
        connection.execute("DELETE FROM tallies WHERE step_s = ? AND at_s < ?", (step_s, from_s))


def _series() -> str:
    return json.dumps(NAMES)
