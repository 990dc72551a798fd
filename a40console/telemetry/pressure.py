"""How long processes waited for disk and memory, and how many the kernel ended for want of it.

Formats: the kernel's `accounting/psi.rst`, `admin-guide/cgroup-v2.rst` and
`admin-guide/cgroup-v1/memory.rst`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from a40console.model.figures import Figure, Missing, measured
from a40console.telemetry.cgroup_mounts import locate, read

_AVERAGE = re.compile(r"^(some|full) avg10=([0-9.]+)", re.MULTILINE)
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_FIRST = Missing("first sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """Shares of the last 10 s that were spent waiting, as the kernel averages them."""

    origin: Literal["container", "machine"] = "machine"
    """Whose processes are counted: without a group of our own the neighbours' are too."""

    io_some_ratio: Figure = _FIRST
    io_full_ratio: Figure = _FIRST
    memory_full_ratio: Figure = _FIRST
    oom_kills: Figure = _FIRST
    """Of this container, since it began."""


class PressureReader:
    """Reads the kernel's pressure files; each that is not there costs its own figures."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._unified = locate("io", root)
        self._memory = locate("memory", root)

    def read(self) -> Pressure:
        """The figures now."""
        own = None if self._unified is None else read(self._unified.own / "io.pressure")
        io = _averages(own)
        origin: Literal["container", "machine"] = "container"
        memory = _averages(self._own_memory_pressure())
        if not io:
            origin = "machine"
            io = _averages(read(self._root / "proc/pressure/io"))
            memory = _averages(read(self._root / "proc/pressure/memory"))
        why = "this kernel counts no pressure"
        return Pressure(
            origin=origin,
            io_some_ratio=measured(io.get("some"), why),
            io_full_ratio=measured(io.get("full"), why),
            memory_full_ratio=measured(memory.get("full"), why),
            oom_kills=measured(self._kills(), "this container's are not counted"),
        )

    def _own_memory_pressure(self) -> str | None:
        return None if self._unified is None else read(self._unified.own / "memory.pressure")

    def _kills(self) -> int | None:
        """Of our own group, in which the engine is too; parents may be the neighbours' as well."""
        if self._memory is None:
            return None
        name = "memory.events" if self._memory.version == 2 else "memory.oom_control"
        found = _KILLS.search(read(self._memory.own / name) or "")
        return int(found[1]) if found else None


def _averages(text: str | None) -> dict[str, float]:
    """`some` and `full` of a pressure file as ratios of the last 10 s."""
    found: dict[str, float] = {}
    for name, value in _AVERAGE.findall(text or ""):
        try:
            found[name] = min(1.0, float(value) / 100)
        except ValueError:
            continue
    return found
