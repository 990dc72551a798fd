"""The ledger's tables, as the steps that lead from one version of the file to the next.

A step that has been in a release is never changed: files were written by it. A new version is a
new step at the end.
"""

from __future__ import annotations

_RUNS = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    asked_at TEXT NOT NULL,
    experiment TEXT NOT NULL,
    state TEXT NOT NULL,
    reference INTEGER NOT NULL,
    away INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    head TEXT NOT NULL,
    detail BLOB NOT NULL
);
CREATE INDEX runs_by_time ON runs (asked_at, id);
CREATE TABLE records (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    part INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (run_id, kind, part)
) WITHOUT ROWID;
CREATE TABLE notes (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    at TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run_id, at, text)
) WITHOUT ROWID;
CREATE TABLE copies (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    machine TEXT NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (run_id, machine)
) WITHOUT ROWID;
"""

_HYPOTHESES = """
CREATE TABLE hypotheses (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL UNIQUE
);
CREATE TABLE hypothesis_steps (
    number INTEGER NOT NULL REFERENCES hypotheses (number) ON DELETE CASCADE,
    at TEXT NOT NULL,
    state TEXT NOT NULL,
    why TEXT NOT NULL,
    runs TEXT NOT NULL,
    UNIQUE (number, at, state)
);
"""

STEPS: tuple[str, ...] = (_RUNS, _HYPOTHESES)
"""From version n to n + 1, beginning with an empty file, which is version 0."""
