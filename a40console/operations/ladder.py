"""A profile's ladder of placements: what a rung makes of the profile, and how it is told. Pure."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from a40console.model.profile import Placement, Profile


def rungs(profile: Profile) -> int:
    """How many ways there are to start it: as it is written, and with each placement."""
    return 1 + len(profile.placements)


def placed(profile: Profile, rung: int) -> Profile:
    """The profile as a rung starts it; rung 0, and one that is gone, as it is written."""
    if not 0 < rung < rungs(profile):
        return profile
    return replace(profile, **overrides(profile.placements[rung - 1]))


def overrides(placement: Placement) -> dict[str, Any]:
    """What a placement sets."""
    named = {each.name: getattr(placement, each.name) for each in fields(placement)}
    return {name: value for name, value in named.items() if value is not None}


def rung_in_words(profile: Profile, rung: int) -> str:
    """`as written`, or `placement 1 of 2: max_model_len 65536`; empty without a ladder."""
    if not profile.placements:
        return ""
    if not 0 < rung < rungs(profile):
        return f"as written; {len(profile.placements)} placements to fall back on"
    settings = overrides(profile.placements[rung - 1]).items()
    told = ", ".join(f"{name} {_value(value)}" for name, value in settings)
    return f"placement {rung} of {len(profile.placements)}: {told or 'nothing changed'}"


def _value(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)
