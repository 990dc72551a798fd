"""Profiles as the pickers list them: what each is, and whether this machine can run it."""

from __future__ import annotations

from collections.abc import Mapping

from a40console.engines.capability import check
from a40console.model.control import ProfileSummary
from a40console.model.profile import Profile, Speculation
from a40console.paths import Paths
from a40console.profiles.loader import ProfileSet


def _ready(asked: Speculation) -> str:
    """That an engine which begins without it can be turned to it while it runs."""
    return ", ready" if asked.ready and not asked.start_tokens else ""


def summarise(
    profile: Profile, found: ProfileSet, environment: Mapping[str, str], paths: Paths
) -> ProfileSummary:
    """One line of the list; `environment` says where programs are looked for."""
    asked = profile.speculation
    capability = check(profile, environment, environments=paths.environments)
    state = "on" if asked and asked.start_tokens else "off"
    return ProfileSummary(
        name=profile.name,
        title=profile.title,
        kind=profile.kind,
        model=profile.model,
        origin=found.origins[profile.name],
        speculation=f"{asked.method} {asked.tokens}, {state}{_ready(asked)}" if asked else None,
        usd_per_hour=None if profile.usd_per_hour is None else float(profile.usd_per_hour),
        ready=capability.ready,
        why_not=capability.why_not,
    )
