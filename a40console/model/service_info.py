"""The service that made a snapshot, and whether it may be told to act."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.model.figures import Missing, Text

NOBODY_FORBIDS = Missing("commands that act are allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceInfo:
    """The service that made the snapshot."""

    version: str
    pid: int
    uptime_s: float
    home: str
    read_only: bool
    forbidden: Text = NOBODY_FORBIDS
    """Who forbids commands that act."""
