"""Lets an edited profile be in force: what can be while the engine runs, the rest by a restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from a40console.errors import ConsoleError
from a40console.model.profile import Profile
from a40console.model.profile_change import ProfileChange
from a40console.operations.edited_profile import read_shown, running_changes
from a40console.operations.roles import Recorder
from a40console.operations.status import EngineStatus
from a40console.operations.turned import with_turned, written
from a40console.operations.who import asking
from a40console.paths import Paths

APPLIED = "profile.applied"


@dataclass(frozen=True, slots=True)
class Edits:
    """How edits come into force."""

    paths: Paths
    recorder: Recorder
    replace: Callable[[Profile, float | None], Awaitable[dict[str, str]]]
    """Restarts the engine with a profile; puts the old one back where that fails."""

    take_over: Callable[[Profile], Awaitable[None]]
    """Takes what needs no restart, while the engine runs."""


async def apply_edited(
    edits: Edits, status: EngineStatus, shown: str, drain_s: float | None
) -> dict[str, str]:
    """Apply the running profile's file; what came of it.

    Raises:
        RefusedError: If nothing runs, the file is wrong, or it is not what was shown: nothing was
            touched then.
        ConsoleError: If the restart fails; what served before does again, unless it says not.
    """
    file = read_shown(edits.paths, status, shown).profile
    found = running_changes(edits.paths, status, file)
    if not found:
        return {"report": f"{file.name} runs as its file says: nothing to apply."}
    restart = any(change.effect == "restart" for change in found)
    turned = written(edits.paths.turned, file.name)
    wanted = with_turned(file, status.profile or file, turned)
    try:
        result = await edits.replace(wanted, drain_s) if restart else {"profile": file.name}
        if not restart:
            await edits.take_over(wanted)
    except ConsoleError as error:
        _record(edits, file, found, result=error.message, how="by a restart", failed=True)
        raise
    how = "by a restart" if restart else "while the engine runs"
    _record(edits, file, found, result="in force", how=how)
    told = "; ".join(change.change for change in found)
    return {"report": f"In force {how}: {told}", **result}


def _record(
    edits: Edits,
    file: Profile,
    found: tuple[ProfileChange, ...],
    *,
    result: str,
    how: str,
    failed: bool = False,
) -> None:
    told = "; ".join(change.change for change in found)
    edits.recorder(
        APPLIED,
        f"{file.name} is not changed {how}: {result}" if failed else f"{file.name} {how}: {told}",
        "error" if failed else "info",
        {
            "who": asking(),
            "profile": file.name,
            "before": _values(found, "running"),
            "after": _values(found, "file"),
            "how": how,
            "result": result,
        },
    )


def _values(found: tuple[ProfileChange, ...], side: str) -> str:
    return "; ".join(f"{each.key} = {getattr(each, side) or 'not set'}" for each in found)
