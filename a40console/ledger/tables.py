"""Runs in the ledger's tables: what is read, and written within a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from a40console.ledger import rows
from a40console.model.run import ENDED, Note, Run
from a40console.model.run_record import ArmEnd, Sample

Connection = sqlite3.Connection

ENDED_STATES = ", ".join(f"'{state}'" for state in sorted(ENDED))
"""For an SQL `IN`."""

_COLUMNS = "id, asked_at, experiment, state, reference, away, head"
_PUT = """
INSERT INTO runs (id, asked_at, experiment, state, reference, away, head, detail, revision)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)
ON CONFLICT (id) DO UPDATE SET asked_at = excluded.asked_at, experiment = excluded.experiment,
    state = excluded.state, reference = excluded.reference, away = excluded.away,
    head = excluded.head, detail = excluded.detail, revision = revision + 1
"""
_NEWEST = f"""
SELECT {_COLUMNS}, x'' FROM runs
WHERE (? = '' OR experiment = ?) AND (? = '' OR state = ?)
ORDER BY asked_at DESC, id DESC LIMIT ?
"""  # noqa: S608 - of constants
_ONE = f"SELECT {_COLUMNS}, detail FROM runs WHERE id = ?"  # noqa: S608 - of constants
_BEGINS = "SELECT id FROM runs WHERE substr(id, 1, length(?)) = ? ORDER BY id LIMIT 4"
CURRENT = """
SELECT 1 FROM copies WHERE copies.run_id = runs.id AND copies.revision = runs.revision
"""
"""Whether another machine has a run as it is now."""

_NOT_COPIED = f"""
SELECT id FROM runs
WHERE state IN ({ENDED_STATES}) AND NOT reference AND NOT away AND NOT EXISTS ({CURRENT})
ORDER BY asked_at DESC, id DESC
"""  # noqa: S608 - of constants
_COPIES = """
SELECT machine FROM copies JOIN runs ON id = run_id AND runs.revision = copies.revision
WHERE run_id = ? ORDER BY machine
"""
_MARK = """
INSERT INTO copies (run_id, machine, revision) VALUES (?, ?, ?)
ON CONFLICT (run_id, machine) DO UPDATE SET revision = max(revision, excluded.revision)
"""
_KINDS: dict[type, str] = {Sample: "sample", ArmEnd: "arm"}


def ids_beginning(connection: Connection, name: str) -> list[str]:
    """The one run of that id, or the first few whose ids begin so."""
    if connection.execute("SELECT 1 FROM runs WHERE id = ?", (name,)).fetchone():
        return [name]
    return [run_id for (run_id,) in connection.execute(_BEGINS, (name, name))] if name else []


def newest(connection: Connection, limit: int, experiment: str, state: str) -> tuple[Run, ...]:
    """Runs without tables, plots and excerpts, newest first."""
    arguments = (experiment, experiment, state, state, limit)
    found = connection.execute(_NEWEST, arguments).fetchall()
    return tuple(_with_others(connection, rows.run_of(_row(values))) for values in found)


def one(connection: Connection, run_id: str) -> Run | None:
    """A run, whole; None where there is none of that id."""
    values = connection.execute(_ONE, (run_id,)).fetchone()
    if values is None:
        return None
    row = _row(values)
    return _with_others(connection, rows.with_detail(rows.run_of(row), row.detail))


def put(connection: Connection, run: Run) -> None:
    """Write a run and its notes; what is written already is not written again."""
    row = rows.row_of(run)
    known = connection.execute(_ONE, (run.id,)).fetchone()
    if known is None or _row(known) != row:
        values = (row.id, row.asked_at, row.experiment, row.state, row.reference, row.away)
        connection.execute(_PUT, (*values, row.head, row.detail))
    for note in run.notes:
        put_note(connection, run.id, note)


def put_note(connection: Connection, run_id: str, note: Note) -> None:
    """Add a note; one that is there already is not added again."""
    added = connection.execute(
        "INSERT OR IGNORE INTO notes (run_id, at, text) VALUES (?, ?, ?)",
        (run_id, note.at, _writable(note.text)),
    ).rowcount
    if added:
        touch(connection, run_id)


def touch(connection: Connection, run_id: str) -> None:
    """Note that a run has changed: copies of it are no longer as it is."""
    connection.execute("UPDATE runs SET revision = revision + 1 WHERE id = ?", (run_id,))


def put_records(
    connection: Connection, run_id: str, samples: Sequence[Sample], arm_ends: Sequence[ArmEnd]
) -> None:
    """Replace a run's records, where there are any to replace them with."""
    for kind, records in ((Sample, samples), (ArmEnd, arm_ends)):
        if not records:
            continue
        name = _KINDS[kind]
        connection.execute("DELETE FROM records WHERE run_id = ? AND kind = ?", (run_id, name))
        connection.executemany(
            "INSERT INTO records (run_id, kind, part, data) VALUES (?, ?, ?, ?)",
            ((run_id, name, part, data) for part, data in enumerate(rows.parts_of(records))),
        )


def samples(connection: Connection, run_id: str) -> tuple[Sample, ...]:
    """Every request of a run."""
    return tuple(rows.records_of(Sample, _parts(connection, run_id, Sample)))


def arm_ends(connection: Connection, run_id: str) -> tuple[ArmEnd, ...]:
    """Every repeat of every arm of a run."""
    return tuple(rows.records_of(ArmEnd, _parts(connection, run_id, ArmEnd)))


def revision(connection: Connection, run_id: str) -> int:
    """How often a run has changed."""
    (number,) = connection.execute("SELECT revision FROM runs WHERE id = ?", (run_id,)).fetchone()
    return int(number)


def mark_copied(connection: Connection, run_id: str, machine: str, at_revision: int) -> None:
    """Note which machine has a run, and as of when."""
    connection.execute(_MARK, (run_id, _writable(machine), at_revision))


def not_copied(connection: Connection) -> tuple[str, ...]:
    """Ids of the runs measured here that no other machine has as they are, newest first."""
    return tuple(run_id for (run_id,) in connection.execute(_NOT_COPIED))


def _parts(connection: Connection, run_id: str, kind: type) -> list[bytes]:
    found = connection.execute(
        "SELECT data FROM records WHERE run_id = ? AND kind = ? ORDER BY part",
        (run_id, _KINDS[kind]),
    )
    return [data for (data,) in found]


def _with_others(connection: Connection, run: Run) -> Run:
    notes = connection.execute(
        "SELECT at, text FROM notes WHERE run_id = ? ORDER BY at, text", (run.id,)
    )
    return replace(
        run,
        notes=tuple(Note(at=at, text=text) for at, text in notes),
        copied_to=tuple(machine for (machine,) in connection.execute(_COPIES, (run.id,))),
    )


def _row(values: Sequence[object]) -> rows.Row:
    run_id, asked_at, experiment, state, reference, away, head, detail = values
    return rows.Row(
        id=str(run_id),
        asked_at=str(asked_at),
        experiment=str(experiment),
        state=str(state),
        reference=bool(reference),
        away=bool(away),
        head=str(head),
        detail=detail if isinstance(detail, bytes) else rows.NO_DETAIL,
    )


def _writable(text: str) -> str:
    """A text that SQLite takes: half a character, which JSON may hold, is none."""
    return text.encode(errors="replace").decode()
