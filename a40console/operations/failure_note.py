"""What a start failed of, kept in its run folder: for whoever asks later what would mend it."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path

from a40console.engines.diagnosis import Diagnosis
from a40console.engines.readiness import Stall
from a40console.engines.remedies import ProfileFix, fix_for
from a40console.files import read_json, write_private
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.profile import Profile

NOTE_FILE = "diagnosis.json"
FIX_COMMAND = "profile.fix"
"""The command that makes a note's fix."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureNote:
    """The diagnosis of one start's end."""

    code: str
    kind: str
    cause: str
    evidence: str
    remedy: str
    fix: ProfileFix | None = None


def note_failure(folder: Path, found: Diagnosis) -> None:
    """Keep a diagnosis; a full disk costs no more than the note."""
    keep_note(
        folder,
        FailureNote(
            code=found.code,
            kind=found.kind,
            cause=found.cause,
            evidence=found.evidence,
            remedy=found.remedy,
            fix=found.fix,
        ),
    )


def note_mended(folder: Path, done: str) -> None:
    """The fix of a start was made: from now on the remedy is to start it again."""
    if (note := failure_of(folder)) is not None:
        keep_note(folder, replace(note, remedy=f"{done} Start it again.", fix=None))


def stall_note(stall: Stall, profile: Profile) -> FailureNote:
    """What a start stands still at, told as a failure."""
    return FailureNote(
        code=stall.code,
        kind="stalled",
        cause=stall.cause,
        evidence=stall.evidence,
        remedy=stall.remedy,
        fix=fix_for(stall.code, {}, profile),
    )


def keep_note(folder: Path, note: FailureNote) -> None:
    """Write a note down; a full disk costs no more than it."""
    try:
        write_private(folder / NOTE_FILE, json.dumps(encode(note)))
    except OSError as error:
        log.warning("the diagnosis could not be noted: %s", error)


def failure_of(folder: Path) -> FailureNote | None:
    """The diagnosis of a run folder; None where none was made, or it cannot be read."""
    try:
        return decode(FailureNote, read_json(folder / NOTE_FILE))
    except (OSError, ValueError, DecodeError):
        return None
