"""Whose text is being written to files, as every place that must say so writes it. Pure."""

from __future__ import annotations

from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.model.wording import short_name

CAPTURE = "● CAPTURE"


def captured(snapshot: Snapshot) -> str:
    """The sessions: `7f3a9c52 +1`; empty for none."""
    listed = () if isinstance(snapshot.sessions, Missing) else snapshot.sessions
    names = [short_name(session.session) for session in listed if session.capturing]
    return f"{names[0]} +{len(names) - 1}" if len(names) > 1 else "".join(names)
