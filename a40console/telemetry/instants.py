"""Instants as the snapshot writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_utc(unix_s: float) -> str:
    """ISO 8601, UTC, milliseconds."""
    at = datetime.fromtimestamp(unix_s, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
