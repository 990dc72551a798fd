"""How one log line moves a start on: a phase, and the words that show how far it is. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ORDER = ("starting", "download", "load", "compile", "capture", "canary", "ready")
"""Phases of a start as they follow each other; an engine may skip some."""


@dataclass(frozen=True, slots=True)
class PhaseRule:
    """A line's pattern, the phase it belongs to, and the words for the operator."""

    phase: str
    pattern: str
    words: str = ""
    """Filled from the pattern's groups: `weights {}`."""

    regex: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", re.compile(self.pattern))

    def read(self, line: str) -> str | None:
        """The words for this line, empty where it only marks the phase; None: another line."""
        match = self.regex.search(line)
        return None if match is None else self.words.format(*match.groups())
