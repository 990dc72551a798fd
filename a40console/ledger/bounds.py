"""How much the ledger may hold, and what goes first."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from a40console.ledger.tables import CURRENT, ENDED_STATES

Connection = sqlite3.Connection

_ELSEWHERE = f"(reference OR EXISTS ({CURRENT}))"
_OLDEST_ELSEWHERE = f"""
SELECT id FROM runs WHERE state IN ({ENDED_STATES}) AND {_ELSEWHERE} ORDER BY asked_at, id LIMIT 1
"""  # noqa: S608 - of constants
_OLDEST_THICK = f"""
SELECT id FROM runs WHERE state IN ({ENDED_STATES})
    AND EXISTS (SELECT 1 FROM records WHERE run_id = id AND kind = 'sample')
ORDER BY asked_at, id LIMIT 1
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the file may hold."""

    runs: int = 5000
    file_bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What was let go, and what is still too much."""

    runs: tuple[str, ...] = ()
    """Ids of runs that are gone: their folders may go, too."""

    thinned: tuple[str, ...] = ()
    """Ids of runs that lost their single requests."""

    over_runs: int = 0
    """Runs beyond the bound, which no other machine has."""

    over_bytes: int = 0
    """Bytes beyond the bound."""


def delete_old(connection: Connection, bounds: Bounds) -> Deleted:
    """Let go of what is beyond the bounds; see `Ledger.delete_old`."""
    runs: list[str] = []
    thinned: list[str] = []
    while _over_runs(connection, bounds) or _over_bytes(connection, bounds):
        found = connection.execute(_OLDEST_ELSEWHERE).fetchone()
        if found is None:
            break
        connection.execute("DELETE FROM runs WHERE id = ?", found)
        runs.append(found[0])
    while _over_bytes(connection, bounds):
        found = connection.execute(_OLDEST_THICK).fetchone()
        if found is None:
            break
        connection.execute("DELETE FROM records WHERE run_id = ? AND kind = 'sample'", found)
        thinned.append(found[0])
    return Deleted(
        runs=tuple(runs),
        thinned=tuple(thinned),
        over_runs=_over_runs(connection, bounds),
        over_bytes=_over_bytes(connection, bounds),
    )


def shrink(connection: Connection) -> None:
    """Give the room of what was deleted back to the disk."""
    # A script is run to its end; a single statement would give back one page.
    connection.executescript("PRAGMA incremental_vacuum;")


def _over_runs(connection: Connection, bounds: Bounds) -> int:
    (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    return max(0, int(count) - bounds.runs)


def _over_bytes(connection: Connection, bounds: Bounds) -> int:
    """Of the pages that hold something: free ones go with `shrink`."""
    values = [
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    ]
    pages, free, page_bytes = values
    return max(0, (pages - free) * page_bytes - bounds.file_bytes)
