"""Sees when the file of the running profile says something else than what runs."""

from __future__ import annotations

import os

from a40console.advisor.evidence import ProfileEdit
from a40console.errors import ConsoleError
from a40console.model.profile_change import ProfileDiff
from a40console.operations.edited_profile import diff_of
from a40console.operations.status import EngineStatus
from a40console.paths import Paths
from a40console.service.aside import Aside

SUFFIX = ".toml"


class EditWatch:
    """Looks at the folder's times of change each second; files that changed are read aside.

    Args:
        paths: Where the operator's profiles lie.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.reading: Aside[ProfileEdit | None] = Aside(None)

    def look(self, status: EngineStatus) -> ProfileEdit | None:
        """How the running profile's file differs; None where it does not, or nothing runs."""
        if status.run is None or status.profile is None or not status.living:
            self.reading.forget()
            return None
        state = (id(status.profile), id(status.run), self._stamp())
        return self.reading.look(status.run.id, state, lambda: self._read(status))

    def _read(self, status: EngineStatus) -> ProfileEdit | None:
        try:
            found = diff_of(self._paths, status)
        except ConsoleError as error:
            name = status.profile.name if status.profile else ""
            return ProfileEdit(profile=name, fault=f"{error.message}: {error.evidence}")
        return _edit(found) if found.changes else None

    def _stamp(self) -> tuple[tuple[str, int, int], ...]:
        try:
            with os.scandir(self._paths.profiles) as entries:
                files = [entry for entry in entries if entry.name.endswith(SUFFIX)]
                stats = [(entry.name, entry.stat()) for entry in files]
        except OSError:
            return ()
        return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats))


def _edit(found: ProfileDiff) -> ProfileEdit:
    return ProfileEdit(
        profile=found.profile,
        changes=tuple(change.change for change in found.changes),
        restarts=sum(change.effect == "restart" for change in found.changes),
    )
