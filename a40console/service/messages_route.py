"""Tells the operator by which route the Messages API is served, and what that was chosen by."""

from __future__ import annotations

from a40console.gateway.dialect import Dialect
from a40console.service.journal import Journal


def note_route(journal: Journal, found: Dialect) -> None:
    """One event for each run of an engine, as this service found it."""
    journal.record(
        "engine.messages",
        f"the Messages API is served: {found.says()}",
        data={"evidence": " ".join(found.evidence)},
    )
