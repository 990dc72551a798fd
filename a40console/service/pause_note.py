"""That admission is paused, kept for the next service: a pause outlives the one that made it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from a40console.files import write_private

LONGEST = 300

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PauseNote:
    """One line in a file; no file where admission is not paused."""

    path: Path

    def write(self, why: str) -> str:
        """Keep it; why that could not be done, empty where it was."""
        try:
            write_private(self.path, why)
        except OSError as error:
            log.warning("that admission is paused could not be kept: %s", error)
            return error.strerror or str(error)
        return ""

    def clear(self) -> None:
        """Admission is not paused any more."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("that admission is resumed could not be kept: %s", error)

    def read(self) -> str | None:
        """Why admission is paused; None where it is not."""
        try:
            return self.path.read_text(encoding="utf-8")[:LONGEST].strip() or None
        except (OSError, UnicodeDecodeError):
            return None
