"""`profile.fix`: changes the one key of a profile that mends its failed start, once confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from a40console.engines.remedies import ProfileFix, fix_for
from a40console.model.engine import EngineState
from a40console.operations.failure_note import NOTE_FILE, FailureNote, failure_of
from a40console.operations.profile_fix import apply_fix
from a40console.operations.roles import Recorder
from a40console.operations.status import EngineStatus
from a40console.operations.who import asking
from a40console.paths import Paths
from a40console.profiles.edit import toml_value
from a40console.service.tasks import Handler

KIND = "profile.fixed"


def fix_handler(paths: Paths, read_status: Callable[[], EngineStatus], record: Recorder) -> Handler:
    """What carries the command out; the change is an event with what was before and is now."""

    async def run(arguments: Mapping[str, str]) -> dict[str, str]:
        asked = arguments.get("fix", "")
        made = await asyncio.to_thread(apply_fix, paths, read_status(), asked)
        data = {
            "who": asking(),
            "profile": made.profile,
            "key": made.key,
            "before": made.before or "",
            "after": made.after or "",
            "file": made.file,
            "why": made.why,
            "failure": made.code,
        }
        record(KIND, f"{made.profile}: {made.change}", data=data)
        return {"report": f"Written: {made.file}", "profile": made.profile, "change": made.change}

    return run


class EndWords:
    """Tells what to do about a failed engine; the note of its end is read when it was written.

    Args:
        runs: Where the engines' starts lie.
    """

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._read: tuple[Path, int] | None = None
        self._note: FailureNote | None = None

    def told(self, status: EngineStatus) -> tuple[str, str]:
        """The remedy, and the change of the profile that mends it; empty where none does."""
        if status.state is not EngineState.FAILED or status.run is None:
            return status.remedy, ""
        folder = status.run.folder(self._runs)
        now = folder, _written_ns(folder / NOTE_FILE)
        if now != self._read:
            self._read, self._note = now, failure_of(folder)
        note = self._note
        return (status.remedy, "") if note is None else (note.remedy, in_words(note.fix))


def _written_ns(path: Path) -> int:
    """When a file was written, 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def stall_fix(status: EngineStatus) -> str:
    """The change of the profile that mends a start that stands still; empty where none does."""
    if status.stall is None or status.run is None:
        return ""
    return in_words(fix_for(status.stall.code, {}, status.run.profile))


def in_words(fix: ProfileFix | None) -> str:
    """A change in one line; empty for none."""
    if fix is None:
        return ""
    before, after = (
        "not set" if value is None else toml_value(value) for value in (fix.before, fix.after)
    )
    return f"{fix.key}: {before} → {after}"
