"""What the running profile's file says of speculation, where a command turned it since.

So that what was turned is not taken for an edit of the file, however often the engine starts again.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

from a40console.files import read_json, write_private
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.profile import Profile, Speculation

TURNABLE = ("enabled", "start", "tokens")
"""Settings of speculation that a command turns."""

log = logging.getLogger(__name__)


def note_turned(file: Path, before: Profile) -> None:
    """Note what is written, before it is turned for the first time.

    Args:
        file: Where it is kept.
        before: The profile as it was in force.
    """
    if before.speculation is None or written(file, before.name) is not None:
        return
    try:
        document = {"profile": before.name, "speculation": encode(before.speculation)}
        write_private(file, json.dumps(document))
    except OSError as error:
        log.warning("that speculation was turned could not be noted: %s", error)


def forget_turned(file: Path) -> None:
    """The profile is read anew."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s could not be removed: %s", file, error)


def written(file: Path, profile: str) -> Speculation | None:
    """Speculation as the profile's file said it; None where no command turned it."""
    try:
        document = read_json(file)
        if document["profile"] != profile:
            return None
        return decode(Speculation, document["speculation"])
    except (OSError, ValueError, KeyError, TypeError, DecodeError):
        return None


def with_turned(file: Profile, in_force: Profile, as_written: Speculation | None) -> Profile:
    """The file's profile with what was turned, but for what the file was changed in since."""
    mine, theirs = in_force.speculation, file.speculation
    if as_written is None or mine is None or theirs is None:
        return file
    kept = {
        name: getattr(mine, name)
        for name in TURNABLE
        if getattr(theirs, name) == getattr(as_written, name)
    }
    return replace(file, speculation=replace(theirs, **kept))
