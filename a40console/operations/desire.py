"""What the operator asked to run, remembered for a service that comes back without an engine."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

from a40console.files import read_json, write_private
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.profile import Profile

log = logging.getLogger(__name__)


def remember(file: Path, profile: Profile) -> None:
    """Note the profile; a full disk costs the note, not the start."""
    try:
        write_private(file, json.dumps(encode(profile)))
    except OSError as error:
        log.warning("what is desired could not be noted: %s", error)


def forget(file: Path) -> None:
    """The operator wants no engine."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("%s could not be removed: %s", file, error)


def turned_since(started: Profile | None, file: Path) -> Profile | None:
    """The profile that an engine was started with, with what was turned of it while it ran."""
    wanted = desired(file)
    if wanted is None or started is None:
        return started
    same = replace(started, speculation=wanted.speculation) == wanted
    return wanted if same else started


def desired(file: Path) -> Profile | None:
    """The profile that was asked for last and never stopped."""
    try:
        return decode(Profile, read_json(file))
    except (OSError, ValueError, DecodeError):
        return None
