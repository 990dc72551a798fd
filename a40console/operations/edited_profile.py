"""The profile of the running engine as its file is now, and what is taken over of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

from a40console.errors import RefusedError, UsageError
from a40console.model.profile import Profile
from a40console.model.profile_change import ProfileChange, ProfileDiff
from a40console.operations import desire, record
from a40console.operations.hot_apply import changes, digest, taken_over
from a40console.operations.record import RunRecord
from a40console.operations.status import EngineStatus
from a40console.operations.turned import with_turned, written
from a40console.paths import Paths
from a40console.profiles.loader import load_profiles

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """A profile as it is read now."""

    profile: Profile
    origin: str


def read_profile(paths: Paths, name: str) -> ProfileFile:
    """The profile of that name by its file.

    Raises:
        RefusedError: If its file is wrong, though a shipped one of that name would do.
        UsageError: If there is none of that name.
    """
    found = load_profiles(paths.profiles)
    for path, why in found.failures.items():
        if path.stem == name:
            raise RefusedError(
                f"The file of {name} is wrong: nothing of it is taken over",
                evidence=why,
                remedy=f"Mend it; what is wrong: a40console profiles check {path}",
            )
    return ProfileFile(found.find(name), found.origins.get(name, ""))


def running_changes(paths: Paths, status: EngineStatus, file: Profile) -> tuple[ProfileChange, ...]:
    """What a profile says otherwise than what runs; what a command turned is no edit.

    Raises:
        RefusedError: If nothing runs.
    """
    run, in_force = _running(status)
    wanted = with_turns(paths, status, file)
    return changes(run.asked or run.profile, in_force, wanted, placed=status.rung > 0)


def with_turns(paths: Paths, status: EngineStatus, file: Profile) -> Profile:
    """The file's profile with what a command turned of speculation.

    Raises:
        RefusedError: If nothing runs.
    """
    run, in_force = _running(status)
    if file.name != in_force.name:
        return file
    started = replace(in_force, speculation=(run.asked or run.profile).speculation)
    return with_turned(file, started, written(paths.turned, file.name))


def diff_of(paths: Paths, status: EngineStatus, name: str = "") -> ProfileDiff:
    """A profile's file against what runs; of the running profile where none is named.

    Raises:
        RefusedError: If nothing runs, or the file is wrong.
        UsageError: If there is no such profile.
    """
    _, in_force = _running(status)
    file = read_profile(paths, name or in_force.name)
    found = running_changes(paths, status, file.profile)
    return ProfileDiff(
        id=digest(found, file.profile),
        profile=file.profile.name,
        origin=file.origin,
        running=in_force.name,
        state=status.state.value,
        changes=found,
        not_in_force=status.differences,
    )


def read_shown(paths: Paths, status: EngineStatus, shown: str) -> ProfileFile:
    """The running profile's file, if it says what was shown; empty takes what it says now.

    Raises:
        RefusedError: If nothing runs, the file is wrong, or says something else by now.
        UsageError: If it is gone.
    """
    _, in_force = _running(status)
    try:
        file = read_profile(paths, in_force.name)
    except UsageError as error:
        raise RefusedError(
            f"{in_force.name} runs, and its file is gone",
            evidence=error.message,
            remedy=f"Put it back into {paths.profiles}, or switch to another profile.",
        ) from error
    found = running_changes(paths, status, file.profile)
    if shown and shown != digest(found, file.profile):
        raise RefusedError(
            "What would be applied is no longer what was shown",
            evidence="; ".join(each.change for each in found) or "nothing differs now",
            remedy="Look at it again: a40console profiles diff",
        )
    return file


def take_over(status: EngineStatus, file: Profile, runs: Path, desired: Path) -> EngineStatus:
    """The status with the file's settings that take no restart, kept for a later service too."""
    run, in_force = _running(status)
    kept = replace(
        run,
        profile=taken_over(run.profile, file),
        asked=None if run.asked is None else taken_over(run.asked, file),
    )
    after = taken_over(in_force, file)
    desire.remember(desired, after)
    try:
        record.save(kept, runs)
    except OSError as error:
        log.warning("what was taken over of %s could not be noted: %s", file.name, error)
    return replace(status, profile=after, run=kept)


def _running(status: EngineStatus) -> tuple[RunRecord, Profile]:
    if status.run is None or status.profile is None or not status.living:
        raise RefusedError(
            "No engine runs", remedy="A start reads the profile's file: a40console engine start"
        )
    return status.run, status.profile
