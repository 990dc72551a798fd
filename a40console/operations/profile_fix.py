"""Offers the change of a profile that mends its last failed start, and makes it.

The operator's own file is changed in place, with its comments; a shipped profile is copied into the
operator's folder, where the copy stands for it.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from a40console.engines.chat_template import read_chat_template
from a40console.engines.parser_contract import ParserFault, parser_faults
from a40console.engines.remedies import ProfileFix, Setting
from a40console.errors import RefusedError
from a40console.files import replace_text, write_private
from a40console.model.fix import FixOffer
from a40console.model.profile import Profile
from a40console.operations import record
from a40console.operations.failure_note import FailureNote, failure_of, note_mended, stall_note
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.paths import Paths, make_private
from a40console.profiles.edit import NotEditableError, toml_value, with_setting
from a40console.profiles.loader import (
    SHIPPED,
    ProfileSet,
    load_profiles,
    parse_profile,
    source_text,
)


@dataclass(frozen=True, slots=True)
class _Edit:
    """An offer with the text that would be written."""

    offer: FixOffer
    text: str


def offer_fix(paths: Paths, status: EngineStatus) -> FixOffer:
    """The change that mends the last failed start, or a start that stands still now.

    Raises:
        RefusedError: If nothing is known to mend it; it says what to do in its place.
    """
    return _edit(paths, status).offer


def apply_fix(paths: Paths, status: EngineStatus, offer_id: str = "") -> FixOffer:
    """Make the change that is offered now, atomically; a new file is this user's alone.

    Args:
        paths: Where profiles and starts lie.
        status: The engine's.
        offer_id: The offer that was shown; empty takes the present one.

    Raises:
        RefusedError: If there is none, if it is another by now, or the file cannot be written.
    """
    edit = _edit(paths, status)
    offer, file = edit.offer, Path(edit.offer.file)
    if offer_id and offer_id != offer.id:
        raise RefusedError(
            "What would be changed is no longer what was shown",
            evidence=offer.change,
            remedy="Look at it again: a40console profiles fix",
        )
    try:
        if offer.new_file:
            make_private(paths.profiles)
            write_private(file, edit.text)
        else:
            replace_text(file, edit.text)
    except OSError as error:
        raise RefusedError(
            f"{file} cannot be written",
            evidence=str(error),
            remedy=f"Set it yourself: {offer.key} = {offer.after}",
        ) from error
    note_mended(paths.engine_runs / offer.start, f"The profile is changed ({offer.change}).")
    return offer


def _edit(paths: Paths, status: EngineStatus) -> _Edit:
    profiles, last = load_profiles(paths.profiles), None
    for run, note in _failures(paths, status, profiles.profiles):
        last = last or note
        profile = profiles.profiles.get(run.profile.name)
        fix = note.fix
        if fix is not None and profile is not None and value_at(profile, fix.key) == fix.before:
            return _made(profiles, paths, run, note, fix)
    if last is None:
        raise RefusedError("No start has failed of late", remedy="There is nothing to mend.")
    raise RefusedError(
        f"No change of the profile is certain to mend it: {last.cause}",
        evidence=last.evidence,
        remedy=last.remedy,
    )


def _failures(
    paths: Paths, status: EngineStatus, files: Mapping[str, Profile]
) -> Iterator[tuple[RunRecord, FailureNote]]:
    """The starts that failed, the newest first, unless they are over.

    They are where the same settings have served since; or others of that profile, and its file no
    longer is what failed. What a roll-back put back does not end the failure that it followed.
    """
    served: list[Profile] = []
    for run in record.kept(paths.engine_runs):
        folder, asked = run.folder(paths.engine_runs), run.profile
        note = failure_of(folder) or _stalled(run, status)
        since = [profile for profile in served if profile.name == asked.name]
        over = asked in since or (bool(since) and files.get(asked.name) != asked)
        if note is not None and not over:
            yield run, note
        if record.has_served(folder):
            served.append(asked)
    if status.living and status.run is not None:
        for fault in unfit_parsers(status.run, os.environ):
            yield status.run, _note_of(fault)


def unfit_parsers(run: RunRecord, environment: Mapping[str, str]) -> tuple[ParserFault, ...]:
    """The parsers of a vLLM's start that do not read what its model's chat template writes."""
    if run.profile.kind != "vllm" or run.profile.is_cpp:
        return ()
    template = read_chat_template(run.profile, environment)
    return () if template is None else parser_faults(run.profile, template)


def _note_of(fault: ParserFault) -> FailureNote:
    return FailureNote(
        code=fault.code,
        kind="parser",
        cause=fault.cause,
        evidence=fault.evidence,
        remedy=fault.remedy,
        fix=fault.fix,
    )


def _stalled(run: RunRecord, status: EngineStatus) -> FailureNote | None:
    """What a start stands still at that is under way, told as a failure."""
    stall = status.stall
    if stall is None or status.run is None or status.run.id != run.id:
        return None
    return stall_note(stall, run.profile)


def _made(
    profiles: ProfileSet, paths: Paths, run: RunRecord, note: FailureNote, fix: ProfileFix
) -> _Edit:
    name = run.profile.name
    origin = profiles.origins[name]
    shipped = origin == SHIPPED
    file = paths.profiles / f"{name}.toml" if shipped else Path(origin).resolve()
    if shipped and file.exists():
        raise RefusedError(
            f"{file} is there already, and is not this profile",
            evidence=profiles.failures.get(file, "it names another profile"),
            remedy=f"Mend or remove it, or set it yourself: {fix.key} = {fix.after}",
        )
    if not shipped and _protected(file):
        raise RefusedError(
            f"The file of {name} is write-protected",
            evidence=str(file),
            remedy=f"Allow it (chmod u+w), or set it yourself: {fix.key} = {_in_toml(fix.after)}",
        )
    try:
        old = source_text(origin, name)
        new = with_setting(old, fix.key, fix.after)
        parse_profile(new, Path(file).stem)
    except (OSError, ValueError) as error:
        kind = "cannot be changed by a program" if isinstance(error, NotEditableError) else "fails"
        raise RefusedError(
            f"The profile {name} {kind}", evidence=str(error), remedy=f"{note.remedy} ({fix.why})"
        ) from error
    digest = hashlib.sha256(f"{file}\0{new}".encode()).hexdigest()[:12]
    offer = FixOffer(
        id=digest,
        profile=name,
        start=run.id,
        code=note.code,
        cause=note.cause,
        evidence=note.evidence,
        key=fix.key,
        before=_in_toml(fix.before),
        after=_in_toml(fix.after),
        why=fix.why,
        file=str(file),
        new_file=shipped,
        diff=_diff(old, new),
    )
    return _Edit(offer, new)


def _protected(file: Path) -> bool:
    """Whether its mode lets nobody write it, which binds us as root too, or not us."""
    try:
        return not file.stat().st_mode & 0o222 or not os.access(file, os.W_OK)
    except OSError:
        return False


def value_at(profile: Profile, key: str) -> Setting | None:
    """What a profile sets a dotted key to; None where it does not."""
    table, _, name = key.rpartition(".")
    if table == "environment":
        return profile.environment.get(name)
    place = getattr(profile, table) if table else profile
    value: Setting | None = getattr(place, name, None)
    return value


def _in_toml(value: Setting | None) -> str | None:
    return None if value is None else toml_value(value)


def _diff(old: str, new: str) -> tuple[str, ...]:
    """The lines that change alone: what stands around them may be secret."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return tuple(line for line in lines if line[:3] not in ("---", "+++") and line[:2] != "@@")
