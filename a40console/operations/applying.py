"""Lets an edited profile be in force: what can be while the engine runs, the rest by a restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from a40console.errors import ConsoleError
from a40console.model.profile import Profile
from a40console.model.profile_change import ProfileChange
from a40console.operations.edited_profile import read_shown, running_changes, with_turns
from a40console.operations.hot_apply import changes
from a40console.operations.ladder import overrides, placed, rung_in_words
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

    now: Callable[[], EngineStatus]
    """Where the engine is in its life."""


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
        told = f"{file.name} is not changed by a restart: {error.message}"
        _record(edits, file, found, told, result=error.message, how="by a restart", failed=True)
        raise
    how, rung = "by a restart" if restart else "while the engine runs", edits.now().rung
    fallen = restart and rung > 0
    serves = _serving_changes(edits.paths, status, file, rung) if fallen else found
    told = "; ".join(change.change for change in serves) or "what runs is what ran before"
    result_told = "in force"
    if fallen:
        result_told = f"{rung_in_words(wanted, rung)} serves"
        overridden = overrides(wanted.placements[rung - 1])
        given_up = _values(tuple(each for each in found if each.key in overridden), "file")
        told += f"; {result_told}{f', in place of {given_up}' if given_up else ''}"
    _record(edits, file, serves, f"{file.name} {how}: {told}", result=result_told, how=how)
    return {"report": f"In force {how}: {told}", **result}


def _serving_changes(
    paths: Paths, before: EngineStatus, file: Profile, rung: int
) -> tuple[ProfileChange, ...]:
    """What runs on a placement otherwise than what ran before."""
    if before.run is None or before.profile is None:
        return ()
    return changes(
        before.run.profile, before.profile, placed(with_turns(paths, before, file), rung)
    )


def _record(
    edits: Edits,
    file: Profile,
    found: tuple[ProfileChange, ...],
    text: str,
    *,
    result: str,
    how: str,
    failed: bool = False,
) -> None:
    edits.recorder(
        APPLIED,
        text,
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
