"""Instants as journals, snapshots and records write them: ISO 8601, UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_utc(unix_s: float) -> str:
    """A Unix time with milliseconds: `2026-11-29T14:07:31.250Z`."""
    at = datetime.fromtimestamp(unix_s, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unix_s(at: str) -> float | None:
    """The Unix time of a text; None where it is no instant."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return None
