"""A change of what serves that is not over, noted for a service that comes after this one."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

from a40console.files import read_json, write_private
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.profile import Profile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unended:
    """What was asked for, by whom, and what served before it."""

    what: str
    """In words: `switch to b`."""

    who: str
    after: str
    """The profile that is to serve."""

    before: Profile | None = None
    """None where nothing served."""

    rung: int = 0
    """On which it did."""

    run: str = ""
    """Of what served before; whichever start is later belongs to the change."""

    stopping: bool = False
    """Whether that was told to end."""

    def told(self, after: str, result: str) -> dict[str, str]:
        """What an event says of its end."""
        before = self.before.name if self.before else "nothing"
        return {"who": self.who, "before": before, "after": after, "result": result}


def remember(file: Path, change: Unended) -> None:
    """Note it; a full disk costs the note, not the change."""
    try:
        write_private(file, json.dumps(encode(change)))
    except OSError as error:
        log.warning("what is changed could not be noted: %s", error)


def unended(file: Path) -> Unended | None:
    """The change that the service before us did not live to end."""
    try:
        return decode(Unended, read_json(file))
    except (OSError, ValueError, DecodeError):
        return None
