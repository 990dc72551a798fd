"""What is worth knowing of the running profile's file."""

from __future__ import annotations

from a40console.advisor.evidence import Evidence
from a40console.advisor.wording import sentence
from a40console.model.event import Finding
from a40console.model.snapshot import Snapshot

SHOWN = 4
"""Changes that are named; the others are counted."""


def profile_edited(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """A file that says something else than what runs: edited since, or broken."""
    edit = extra.profile_edit
    if edit is None:
        return None
    if edit.fault:
        return Finding(
            code="profile-edited",
            severity="warn",
            title=f"The profile {edit.profile} cannot be read as it is now",
            evidence=edit.fault,
            since=snapshot.at,
            remedy="The engine runs on with what it was started with. Mend the file: "
            "a40console profiles check.",
        )
    count = len(edit.changes)
    more = [f"{count - SHOWN} more"] if count > SHOWN else []
    takes = "a restart" if edit.restarts else "no restart"
    settings = "1 setting" if count == 1 else f"{count} settings"
    verb = "runs" if count == 1 else "run"
    return Finding(
        code="profile-edited",
        severity="info",
        title=f"{settings} of {edit.profile} {verb} otherwise than its file says",
        evidence=sentence([*edit.changes[:SHOWN], *more]),
        since=snapshot.at,
        remedy=f"Let it be in force, which takes {takes}: a40console engine apply.",
        command="engine.apply",
    )
