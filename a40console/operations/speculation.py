"""What a change of speculation makes of a profile. Pure."""

from __future__ import annotations

from dataclasses import replace

from a40console.errors import RefusedError, UsageError
from a40console.model.profile import Profile

DEEPEST = 1000
"""Draft tokens a pass beyond which no engine of ours goes."""

DEPTH_DIGITS = 4


def with_speculation(profile: Profile, mode: str) -> Profile:
    """The profile with speculation `on`, `off`, or on at a depth given as a number.

    Raises:
        UsageError: If the mode is none of these.
        RefusedError: If the profile has no speculation.
    """
    if profile.speculation is None:
        raise RefusedError(
            f"{profile.name} has no speculation",
            remedy="Add a [speculation] table to a profile of your own.",
        )
    if mode in ("on", "off"):
        changed = replace(profile.speculation, enabled=mode == "on")
    elif mode.isdecimal() and len(mode) <= DEPTH_DIGITS and 0 < int(mode) <= DEEPEST:
        changed = replace(profile.speculation, enabled=True, tokens=int(mode))
    else:
        raise UsageError(
            f"Speculation is on, off or a number of draft tokens up to {DEEPEST}, not {mode[:40]!r}"
        )
    return replace(profile, speculation=changed)
