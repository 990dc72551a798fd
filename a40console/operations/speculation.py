"""What a change of speculation makes of a profile. Pure."""

from __future__ import annotations

from dataclasses import replace

from a40console.errors import RefusedError, UsageError
from a40console.model.profile import Profile, Speculation

DEEPEST = 1000
"""Draft tokens a pass beyond which no engine of ours goes."""

DEPTH_DIGITS = 4


def wanted_tokens(asked: Speculation, mode: str) -> int:
    """Draft tokens a pass that `on`, `off` or a number asks for; 0 is off.

    Raises:
        UsageError: If the mode is none of these.
    """
    if mode == "off":
        return 0
    if mode == "on":
        return asked.tokens
    digits = mode.isascii() and mode.isdecimal() and len(mode) <= DEPTH_DIGITS
    if digits and 0 < int(mode) <= DEEPEST:
        return int(mode)
    raise UsageError(
        f"Speculation is on, off or a number of draft tokens up to {DEEPEST}, not {mode[:40]!r}"
    )


def asked_of(profile: Profile) -> Speculation:
    """The profile's speculation, where that may be changed.

    Raises:
        RefusedError: If it has none, or is locked.
    """
    asked = profile.speculation
    if asked is None:
        raise RefusedError(
            f"{profile.name} has no speculation",
            remedy="Add a [speculation] table to a profile of your own.",
        )
    if asked.locked is not None:
        raise RefusedError(
            f"Speculation is locked in {profile.name}",
            evidence=asked.locked,
            remedy="Remove `locked` in a profile of your own, if you know better.",
        )
    return asked


def with_speculation(profile: Profile, mode: str) -> Profile:
    """The profile to start with speculation `on`, `off`, or on at a depth given as a number.

    Raises:
        UsageError: If the mode is none of these.
        RefusedError: If the profile has no speculation, or is locked.
    """
    asked = asked_of(profile)
    tokens = wanted_tokens(asked, mode)
    if asked.start is not None:
        deeper = replace(asked, tokens=max(tokens, asked.tokens))
        return replace(profile, speculation=begun_at(deeper, tokens))
    depth = tokens or asked.tokens
    return replace(profile, speculation=replace(asked, enabled=tokens > 0, tokens=depth))


def turned_live(profile: Profile, tokens: int) -> Profile:
    """The profile of an engine that was turned while it ran: started again, it begins there."""
    asked = profile.speculation
    return profile if asked is None else replace(profile, speculation=begun_at(asked, tokens))


def begun_at(asked: Speculation, tokens: int) -> Speculation:
    """Speculation that is ready in any case and begins at a depth; 0 is off."""
    if tokens == 0:
        return replace(asked, enabled=False, start="off")
    return replace(asked, enabled=True, start="on" if tokens == asked.tokens else tokens)
