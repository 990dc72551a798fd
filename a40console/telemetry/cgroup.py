"""What the container may use and has used, from its control groups (v2, v1 or a mix of both).

Formats: the kernel's `admin-guide/cgroup-v2.rst` and `admin-guide/cgroup-v1/`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from a40console.telemetry.cgroup_mounts import locate, read

QuotaOrigin = Literal["cgroup2", "cgroup1", "affinity", "host"]

_DEFAULT_PERIOD_US = 100_000
"""The kernel's period where a file does not state one."""

_NO_LIMIT_BYTES = 1 << 60
"""Version 1 writes "no limit" as the largest signed page count: far above any memory."""


@dataclass(frozen=True, slots=True)
class CpuLimit:
    """How many vCPU this container may use, and who says so."""

    quota_vcpu: float
    origin: QuotaOrigin
    """`affinity` is a cpuset or an affinity mask; `host` is all the cores of the machine."""


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Cumulative CPU counters of the group that the limit applies to; None is not known."""

    used_s: float | None = None
    throttled_s: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of the group that the limit applies to; None is not known."""

    used_bytes: int | None = None
    """Working set: charged memory less the file cache that can go at once."""

    limit_bytes: int | None = None


class Cgroups:
    """Reads the limits and counters of the container that this process runs in."""

    def __init__(
        self,
        root: Path = Path("/"),
        *,
        affinity_cpus: Callable[[], int] = lambda: len(os.sched_getaffinity(0)),
        machine_cpus: Callable[[], int] = lambda: os.cpu_count() or 1,
    ) -> None:
        self._root = root
        self._affinity_cpus = affinity_cpus
        self._machine_cpus = machine_cpus
        self._cpu = locate("cpu", root)
        self._cpuacct = locate("cpuacct", root)
        self._cpuset = locate("cpuset", root)
        self._memory = locate("memory", root)

    @property
    def source(self) -> str:
        """Where the CPU figures come from."""
        return f"cgroup{self._cpu.version}" if self._cpu else "procfs"

    def cpu_limit(self) -> CpuLimit:
        """The smallest of quota, cpuset, affinity and cores of the machine."""
        limit = CpuLimit(float(self._machine_cpus()), "host")
        allowed = min(self._affinity_cpus(), self._cpuset_cpus() or self._affinity_cpus())
        if allowed < limit.quota_vcpu:
            limit = CpuLimit(float(allowed), "affinity")
        quota = self._tightest_quota()
        if self._cpu and quota and quota[0] < limit.quota_vcpu:
            limit = CpuLimit(quota[0], "cgroup2" if self._cpu.version == 2 else "cgroup1")
        return limit

    def cpu_times(self) -> CpuTimes:
        """Counters of the group whose quota binds, else of our own; the machine's only as such.

        Without a group of our own only the machine's use is known: it is given where the limit
        is the machine too, and is None where it would be mistaken for ours.
        """
        whole_machine_is_ours = self.cpu_limit().origin == "host"
        if self._cpu is None:
            return CpuTimes(used_s=self._machine_used_s() if whole_machine_is_ours else None)
        quota = self._tightest_quota()
        group = quota[1] if quota else self._cpu.own
        times = self._times_v2(group) if self._cpu.version == 2 else self._times_v1(group)
        if _is_machine(group, self._cpu.version) and not whole_machine_is_ours:
            return CpuTimes(None, times.throttled_s)
        return times

    def memory(self) -> MemoryUse:
        """Working set and limit of the tightest group; no limit and no group are both None."""
        if self._memory is None:
            return MemoryUse()
        limited = [
            (limit, group) for group in self._memory.groups() if (limit := self._limit(group))
        ]
        if limited:
            limit, group = min(limited, key=lambda entry: entry[0])
            return MemoryUse(self._working_set(group), limit)
        if _is_machine(self._memory.own, self._memory.version):
            return MemoryUse()
        return MemoryUse(self._working_set(self._memory.own), None)

    def machine_memory_bytes(self) -> int | None:
        """The machine's memory, for a sentence that calls it the machine's."""
        found = re.search(
            r"^MemTotal:\s+(\d+) kB", read(self._root / "proc/meminfo") or "", re.MULTILINE
        )
        return int(found[1]) * 1024 if found else None

    def _tightest_quota(self) -> tuple[float, Path] | None:
        if self._cpu is None:
            return None
        read = _quota_v2 if self._cpu.version == 2 else _quota_v1
        quotas = [(quota, group) for group in self._cpu.groups() if (quota := read(group))]
        return min(quotas, key=lambda entry: entry[0], default=None)

    def _cpuset_cpus(self) -> int | None:
        if self._cpuset is None:
            return None
        if self._cpuset.version == 2:
            names = ["cpuset.cpus.effective"]
        else:
            names = ["cpuset.effective_cpus", "cpuset.cpus"]
        texts = (read(self._cpuset.own / name) for name in names)
        return next((count for text in texts if text and (count := count_cpus(text))), None)

    def _times_v2(self, group: Path) -> CpuTimes:
        stat = _read_pairs(group / "cpu.stat")
        return CpuTimes(
            used_s=_seconds(stat.get("usage_usec"), 1e6),
            throttled_s=_seconds(stat.get("throttled_usec"), 1e6),
        )

    def _times_v1(self, group: Path) -> CpuTimes:
        stat = _read_pairs(group / "cpu.stat")
        return CpuTimes(
            used_s=_seconds(self._usage_v1_ns(group), 1e9),
            throttled_s=_seconds(stat.get("throttled_time"), 1e9),
        )

    def _usage_v1_ns(self, group: Path) -> int | None:
        if self._cpu is None or self._cpuacct is None:
            return None
        same_level = self._cpuacct.mount / group.relative_to(self._cpu.mount)
        usage = _read_int(same_level / "cpuacct.usage")
        if usage is not None or _is_machine(self._cpuacct.own, 1):
            return usage
        return _read_int(self._cpuacct.own / "cpuacct.usage")

    def _limit(self, group: Path) -> int | None:
        if self._memory and self._memory.version == 2:
            return _read_int(group / "memory.max")  # "max" is no number
        inherited = _read_pairs(group / "memory.stat").get("hierarchical_memory_limit")
        limits = (_read_int(group / "memory.limit_in_bytes"), inherited)
        return min((limit for limit in limits if limit and limit < _NO_LIMIT_BYTES), default=None)

    def _working_set(self, group: Path) -> int | None:
        if self._memory and self._memory.version == 2:
            charged, reclaimable = _read_int(group / "memory.current"), "inactive_file"
        else:
            charged, reclaimable = _read_int(group / "memory.usage_in_bytes"), "total_inactive_file"
        if charged is None:
            return None
        return max(0, charged - _read_pairs(group / "memory.stat").get(reclaimable, 0))

    def _machine_used_s(self) -> float | None:
        """Seconds that all cores together were not idle, from the first line of `/proc/stat`."""
        fields = (read(self._root / "proc/stat") or "").partition("\n")[0].split()
        if len(fields) < 8 or fields[0] != "cpu":
            return None
        user, nice, system, _idle, _iowait, *interrupts = map(int, fields[1:8])
        return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def count_cpus(text: str) -> int:
    """How many CPUs a list such as `0-3,8,10-11` names; 0 where it is empty or malformed."""
    count = 0
    for part in text.strip().split(","):
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if span is None:
            return 0
        count += int(span[2] or span[1]) - int(span[1]) + 1
    return count


def _is_machine(group: Path, version: int) -> bool:
    """Whether a group is the machine's root, told by the files that only it has or lacks."""
    if version == 1:
        return (group / "release_agent").exists()
    return not any((group / name).exists() for name in ("cgroup.type", "cpu.max", "memory.max"))


def _quota_v2(group: Path) -> float | None:
    fields = (read(group / "cpu.max") or "").split()
    if not fields or not fields[0].isdecimal():
        return None
    period_us = int(fields[1]) if len(fields) > 1 and fields[1].isdecimal() else _DEFAULT_PERIOD_US
    return int(fields[0]) / period_us if period_us else None


def _quota_v1(group: Path) -> float | None:
    quota_us = _read_int(group / "cpu.cfs_quota_us")
    period_us = _read_int(group / "cpu.cfs_period_us") or _DEFAULT_PERIOD_US
    return quota_us / period_us if quota_us is not None and quota_us > 0 else None


def _seconds(count: int | None, per_second: float) -> float | None:
    return None if count is None else count / per_second


def _read_int(path: Path) -> int | None:
    try:
        return int(read(path) or "")
    except ValueError:
        return None


def _read_pairs(path: Path) -> dict[str, int]:
    """A flat-keyed file: `name value` a line; other lines are skipped."""
    pairs: dict[str, int] = {}
    for line in (read(path) or "").splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdecimal():
            pairs[name] = int(value)
    return pairs
