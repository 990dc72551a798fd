"""A profile's ladder of placements: what a rung makes of the profile, and how it is told. Pure."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from a40console.model.profile import Placement, Profile
from a40console.model.secrets import covered


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
    told = ", ".join(f"{name} {value_in_words(value)}" for name, value in settings)
    return f"placement {rung} of {len(profile.placements)}: {told or 'nothing changed'}"


def value_in_words(value: Any) -> str | int | float | bool:
    """A setting's value; of words, one behind the other, secrets are covered."""
    if isinstance(value, tuple):
        return " ".join(covered(value))
    told: str | int | float | bool = value
    return told
