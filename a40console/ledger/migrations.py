"""Brings a ledger's file to this version's tables, step by step, each step whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from a40console.ledger.schema import STEPS


class NewerFileError(sqlite3.DatabaseError):
    """A newer version of the console wrote the file; it is left as it is."""


def migrate(connection: sqlite3.Connection, steps: Sequence[str] = STEPS) -> int:
    """Take the steps that the file has not had.

    Returns:
        The version that it was before; 0 where it was empty.

    Raises:
        NewerFileError: If it had more steps than there are.
        sqlite3.Error: If the disk does not take a step; the file is then as the last one left it.
    """
    (before,) = connection.execute("PRAGMA user_version").fetchone()
    if before > len(steps):
        raise NewerFileError(f"its version is {before}, this console knows {len(steps)}")
    for version in range(before, len(steps)):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {steps[version]} PRAGMA user_version = {version + 1}; COMMIT;"
            )
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return int(before)
