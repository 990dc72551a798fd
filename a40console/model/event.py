"""What happened, when and to whom: the service's journal, and what commands answer with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["info", "warn", "error"]

SEVERITIES: tuple[Severity, ...] = ("info", "warn", "error")
"""The gravest last."""

NOTE_KIND = "note.added"
"""Of the entries that the operator writes."""

NOTE_LIMIT = 200
"""Characters that the journal takes of a note."""

_MARKED = ("engine.", "note.", "service.started")


def gravity(severity: Severity) -> int:
    """The greater, the graver."""
    return SEVERITIES.index(severity)


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the journal; ids grow by one and survive a restart of the service."""

    id: int
    at: str
    """ISO 8601, UTC."""

    kind: str
    """What happened, past tense: `engine.started`, `counters.reset`."""

    text: str
    """One line for the operator."""

    severity: Severity = "info"
    data: dict[str, str] = field(default_factory=dict)
    """Evidence, by name."""

    @property
    def marked(self) -> bool:
        """Whether it belongs on the time axis: it may explain a change of speed."""
        return self.severity != "info" or self.kind.startswith(_MARKED)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong or worth knowing, with its evidence and what mends it."""

    code: str
    """Stable, for scripts: `engine-hung`."""

    severity: Severity
    title: str
    evidence: str
    since: str
    remedy: str
    command: str | None = None
    """Id of the command that applies the remedy."""
