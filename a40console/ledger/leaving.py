"""Which runs another machine may copy, and which it has already."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from a40console.model.run import ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingRun:
    """A run that has ended, as whoever copies it sees it."""

    id: str
    revision: int
    """Of its document."""

    copied: bool
    """Whether that machine has it in this revision."""


def leaving_of(connection: sqlite3.Connection, machine: str) -> tuple[LeavingRun, ...]:
    """Every run that has ended but for reference rows, which are shipped; oldest first."""
    rows = connection.execute(
        "SELECT id, revision, state, EXISTS (SELECT 1 FROM copies WHERE run_id = runs.id"
        " AND machine = ? AND copies.revision = runs.revision)"
        " FROM runs WHERE NOT reference ORDER BY asked_at, id",
        (machine,),
    )
    return tuple(
        LeavingRun(id=run_id, revision=revision, copied=bool(copied))
        for run_id, revision, state, copied in rows
        if state in ENDED
    )
