"""The ledger's SQLite file: how it is opened, and what its troubles are called."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from a40console.errors import RefusedError
from a40console.ledger.migrations import NewerFileError, migrate

BUSY_TIMEOUT_S = 5.0
WAL_LIMIT_BYTES = 4 * 1024 * 1024
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class LedgerError(RefusedError):
    """The disk did not take it, or did not give it; nothing of that call is in the ledger."""


class BrokenFileError(sqlite3.DatabaseError):
    """Its pages are damaged, which SQLite has not yet met."""


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, with this version's tables.

    Raises:
        sqlite3.Error: If it cannot be; see `is_broken`.
        OSError: If its folder cannot be written.
    """
    path.touch(mode=0o600)
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    # Bytes that are no text are a run that cannot be read, not a file that cannot.
    connection.text_factory = lambda data: data.decode(errors="replace")
    try:
        _prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    # Only an empty file takes it; it lets the file shrink when old runs go.
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    # A run that was told as kept must be there after a power cut, too.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    connection.execute("PRAGMA foreign_keys = ON")
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise BrokenFileError(str(verdict))
    migrate(connection)


@contextmanager
def whole(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A transaction: what is done within is written together, or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # A full disk may have ended it already.
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Whatever SQLite or the disk says within, as what an operator should read.

    Raises:
        LedgerError: In place of their errors.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise trouble(path, error) from error


def trouble(path: Path, error: Exception) -> LedgerError:
    """The error for the operator."""
    evidence = f"{path}: {error}"
    if isinstance(error, NewerFileError):
        return LedgerError(
            "The ledger of runs was written by a newer version of the console",
            evidence=evidence,
            remedy="Install that version again, or move the file away to begin another.",
        )
    if is_broken(error):
        return LedgerError(
            "The ledger of runs is damaged",
            evidence=evidence,
            remedy="Restart the service: it keeps the file aside and takes over what can be read.",
        )
    if is_disks(error):
        return LedgerError(
            "The disk did not take it into the ledger of runs",
            evidence=evidence,
            remedy="Free space there. Runs stay in their own folders and are taken in later.",
        )
    return LedgerError("The ledger of runs cannot be used", evidence=evidence)


def is_broken(error: Exception) -> bool:
    """Whether the file itself is damaged."""
    return isinstance(error, BrokenFileError) or _code(error) in _BROKEN


def is_disks(error: Exception) -> bool:
    """Whether the disk is full, or fails."""
    return isinstance(error, OSError) or _code(error) in _FULL


def _code(error: Exception) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def moved_aside(path: Path) -> Path:
    """Give a broken file another name, which none before it has; its log goes with it.

    Raises:
        OSError: If it cannot be moved.
    """
    number = 1
    while (aside := path.with_name(f"{path.name}.broken-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(f"{path.name}{suffix}")
        if beside.exists():
            beside.replace(aside.with_name(f"{aside.name}{suffix}"))
    path.replace(aside)
    return aside


@contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open what may be damaged, without changing its pages."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda data: data.decode(errors="replace")
        yield connection
