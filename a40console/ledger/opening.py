"""Opens the ledger's file, or what can be saved of it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from a40console.ledger import database, hypotheses, tables

_PARTS = ("", "-wal", "-shm")


def opened(path: Path) -> tuple[sqlite3.Connection, str]:
    """The file with this version's tables, and what was lost of a broken one.

    Raises:
        sqlite3.Error: If it cannot be opened.
        OSError: If the disk does not give it, or a broken one cannot be moved.
    """
    try:
        return database.connect(path), ""
    except sqlite3.Error as error:
        if not database.is_broken(error):
            raise
        reason = str(error)
    rebuilt = path.with_name(f"{path.name}.rebuilt")
    saved, lost = _rebuild(path, rebuilt)
    aside = database.moved_aside(path)
    rebuilt.replace(path)
    return database.connect(path), (
        f"{path.name} was damaged ({reason}); it is kept as {aside.name}. "
        f"Runs that could be read: {saved}; that could not: {'unknown' if lost is None else lost}."
    )


class Place:
    """Which file lies under a name now, to know it from another that is put there later."""

    def __init__(self, path: Path) -> None:
        """With the name of an open file; raises OSError."""
        self._path = path
        self._log = path.with_name(f"{path.name}{_PARTS[1]}")
        self._was = path.stat()
        self._log_was = self._log.stat() if self._log.exists() else None

    @property
    def is_held(self) -> bool:
        """Whether it is still the same file."""
        return _is(self._path, self._was)

    def remove_log(self) -> None:
        """Take away the log of the file that was there: it would be read into the other one."""
        if self._log_was is not None and _is(self._log, self._log_was):
            self._log.unlink(missing_ok=True)


def _is(path: Path, was: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), was)
    except OSError:
        return False


def put_back(connection: sqlite3.Connection, path: Path) -> None:
    """Write what an open file holds to its name again, from which somebody took it, and close it.

    Raises:
        sqlite3.Error: If the disk does not take it; the file stays open.
        OSError: Likewise.
    """
    fresh = path.with_name(f"{path.name}.rebuilt")
    for suffix in _PARTS:
        fresh.with_name(f"{fresh.name}{suffix}").unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    connection.execute("VACUUM INTO ?", (str(fresh),))
    connection.close()
    for suffix in _PARTS[1:]:  # a log that is of the lost file would be read into the new one
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
    fresh.replace(path)


def _rebuild(broken: Path, rebuilt: Path) -> tuple[int, int | None]:
    """Write a new file of what can be read of a broken one; it is whole on the disk on return.

    Returns:
        How many runs could be read, and how many not; None where not even that is known.
    """
    for suffix in _PARTS:
        rebuilt.with_name(f"{rebuilt.name}{suffix}").unlink(missing_ok=True)
    with closing(database.connect(rebuilt)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        counts = _take_over_all(broken, connection)
    with rebuilt.open("rb") as file:
        os.fsync(file.fileno())
    return counts


def _take_over_all(broken: Path, connection: sqlite3.Connection) -> tuple[int, int | None]:
    """Copy run by run."""
    saved = 0
    with database.read_only(broken) as source:
        try:
            ids = [run_id for (run_id,) in source.execute("SELECT id FROM runs ORDER BY id")]
        except sqlite3.Error as error:
            if database.is_disks(error):
                raise
            return 0, None
        for run_id in ids:
            with _only_damage():
                _take_over(source, connection, run_id)
                saved += 1
        with _only_damage(), database.whole(connection):
            for claim in hypotheses.listed(source):
                hypotheses.put(connection, claim.text, claim.steps)
    return saved, len(ids) - saved


def _take_over(source: sqlite3.Connection, connection: sqlite3.Connection, run_id: str) -> None:
    """Copy one run with what is readable of its records.

    Raises:
        sqlite3.Error: If its row is damaged, or the disk takes no more.
    """
    run = tables.one(source, run_id)
    if run is None:
        raise database.BrokenFileError(f"{run_id} has no row")
    with database.whole(connection):
        tables.put(connection, run)
        for machine in run.copied_to:
            tables.mark_copied(connection, run_id, machine, tables.revision(connection, run_id))
    with _only_damage(), database.whole(connection):
        samples, ends = tables.samples(source, run_id), tables.arm_ends(source, run_id)
        tables.put_records(connection, run_id, samples, ends)


@contextmanager
def _only_damage() -> Iterator[None]:
    """Pass over what is damaged within; a disk that is full is no damage."""
    try:
        yield
    except sqlite3.Error as error:
        if database.is_disks(error):
            raise
