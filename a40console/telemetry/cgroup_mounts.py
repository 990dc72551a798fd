"""Where this process stands in the control group hierarchies: which are mounted, and our place.

Formats: `cgroups(7)` and `proc_pid_mountinfo(5)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy and our place in it."""

    version: Literal[1, 2]
    mount: Path
    place: PurePosixPath
    """Relative to the mount; `.` where our own path cannot be seen from in here."""

    @property
    def own(self) -> Path:
        """Our own group."""
        return self.mount / self.place

    def groups(self) -> Iterator[Path]:
        """Our group and its visible parents: a limit may sit on any of them."""
        yield self.own
        for parent in self.place.parents:
            yield self.mount / parent


@dataclass(frozen=True, slots=True)
class _Mount:
    kind: str
    root: str
    point: Path
    options: frozenset[str]


def locate(controller: str, root: Path = Path("/")) -> Hierarchy | None:
    """The hierarchy that holds a controller for this process: v1 where it is bound, else v2."""
    memberships, mounts = _memberships(root), tuple(_mounts(root))
    if controller in memberships:
        for mount in mounts:
            if mount.kind == "cgroup" and controller in mount.options:
                return _hierarchy(1, mount, memberships[controller], root)
    if "" in memberships:
        for mount in mounts:
            if mount.kind == "cgroup2":
                return _hierarchy(2, mount, memberships[""], root)
    return None


def read(path: Path) -> str | None:
    """The text of a kernel file, or None where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _memberships(root: Path) -> dict[str, str]:
    """Controller → our path in its hierarchy; the unified hierarchy is the empty name."""
    paths: dict[str, str] = {}
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers:
            paths.update(dict.fromkeys(controllers.split(","), path))
        elif number == "0":
            paths[""] = path
    return paths


def _mounts(root: Path) -> Iterator[_Mount]:
    for line in (read(root / "proc/self/mountinfo") or "").splitlines():
        before, separator, after = line.partition(" - ")
        fields, details = before.split(), after.split()
        if separator and len(fields) >= 5 and len(details) >= 3:
            point = root / _unescaped(fields[4]).lstrip("/")
            yield _Mount(details[0], _unescaped(fields[3]), point, frozenset(details[2].split(",")))


def _hierarchy(version: Literal[1, 2], mount: _Mount, path: str, root: Path) -> Hierarchy:
    place = PurePosixPath(path)
    # With the host's cgroup namespace the path is the host's: cut off what the mount cut off.
    start = mount.root if place.is_relative_to(mount.root) else "/"
    place = place.relative_to(start) if place.is_relative_to(start) else PurePosixPath()
    if ".." in place.parts or not (mount.point / place).is_dir():
        place = PurePosixPath()
    return Hierarchy(version, mount.point, place)


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
