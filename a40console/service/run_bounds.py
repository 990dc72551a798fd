"""Tells in the journal what the ledger let go for want of room, and what it still has too much."""

from __future__ import annotations

from a40console.ledger.bounds import Deleted
from a40console.operations.roles import Recorder


class BoundsTold:
    """Records it; that the ledger is full of what it may not let go is told once, until it is not.

    Args:
        record: Takes events.
    """

    def __init__(self, record: Recorder) -> None:
        self._record = record
        self._is_full = False

    def __call__(self, deleted: Deleted) -> None:
        """Tell of one time that it was brought within its bounds."""
        if deleted.runs or deleted.thinned:
            text = (
                f"the ledger let {len(deleted.runs)} runs go that other machines have, "
                f"and the single requests of {len(deleted.thinned)} more"
            )
            self._record("ledger.bounded", text)
        is_full = bool(deleted.over_runs or deleted.over_bytes)
        if is_full and not self._is_full:
            text = "the ledger is full of runs that no other machine has"
            told = f"{deleted.over_runs} runs and {deleted.over_bytes} bytes beyond its bounds"
            remedy = "Copy them: a40console runs pull, from the other machine"
            self._record("ledger.full", text, "warn", {"evidence": told, "remedy": remedy})
        self._is_full = is_full
