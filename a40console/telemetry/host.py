"""CPU, memory and disk as this container has them: its quota and its use, never the host's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from a40console.model.busiest_thread import BusiestThread
from a40console.model.figures import Figure, Missing, measured
from a40console.model.snapshot import Host, SourceStatus
from a40console.telemetry.cgroup import Cgroups, CpuLimit, CpuTimes
from a40console.telemetry.pressure import Pressure, PressureReader
from a40console.telemetry.threads import ThreadSampler

_FIRST = Missing("first sample")

SHORTEST_S = 0.05
"""Rates over less than this are the counters' own steps: the rate before stays."""


class HostSampler:
    """Reads the container's figures once a period and keeps the last reading.

    `sample` is synchronous and takes a few milliseconds; `view` and `status` only read what it
    left, so that `sample` may run in a worker thread where the state folder is on a slow disk.
    """

    name = "host"

    def __init__(
        self,
        *,
        disk_path: Path,
        engine_pids: Callable[[], Sequence[int]],
        period_s: float = 1.0,
        threads_period_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        root: Path = Path("/"),
        cgroups: Cgroups | None = None,
    ) -> None:
        self._disk_path = disk_path
        self._engine_pids = engine_pids
        self._period_s = period_s
        self._threads_period_s = threads_period_s
        self._clock = clock
        self._root = root
        self._cgroups = cgroups or Cgroups(root)
        self._pressure_reader = PressureReader(root)
        self._pressure = Pressure()
        self._threads = ThreadSampler(clock=clock, root=root)
        self._busiest: BusiestThread | Missing = _FIRST
        self._threads_at_s: float | None = None
        self._threads_pids: tuple[int, ...] = ()
        self._times: CpuTimes | None = None
        self._times_at_s = 0.0
        self._sampled_at_s: float | None = None
        self._host = self._unread(self._cgroups.cpu_limit())

    def sample(self) -> None:
        """Read everything once; rates are over the time since the call before."""
        now_s = self._clock()
        limit, times = self._cgroups.cpu_limit(), self._cgroups.cpu_times()
        used, throttled = self._rates(times, now_s)
        memory_used, memory_limit = self._memory()
        shm_used, shm_total = _shared_memory(self._root / "dev/shm")
        self._host = Host(
            source=self._cgroups.source,
            age_s=0.0,
            cpu_quota_vcpu=limit.quota_vcpu,
            quota_origin=limit.origin,
            cpu_used_vcpu=used,
            throttled_ms_per_s=throttled,
            busiest_engine_thread=self._busiest_thread(now_s),
            memory_used_bytes=memory_used,
            memory_limit_bytes=memory_limit,
            shm_used_bytes=shm_used,
            shm_total_bytes=shm_total,
            disk_free_bytes=_disk_free(self._disk_path),
        )
        self._pressure = self._pressure_reader.read()
        self._sampled_at_s = now_s

    def view(self) -> Host:
        """The last reading with its age."""
        return replace(self._host, age_s=self._age())

    def pressure(self) -> Pressure:
        """What processes waited for when the last reading was made."""
        return self._pressure

    def status(self) -> SourceStatus:
        """Whether the readings are fresh."""
        age = self._age()
        if isinstance(age, Missing):
            return SourceStatus(name=self.name, state="stale", age_s=age, reason=age.reason)
        late = age > max(5.0, 3 * self._period_s)
        return SourceStatus(
            name=self.name,
            state="stale" if late else "ok",
            age_s=age,
            reason=f"not read for {age:.0f} s" if late else None,
        )

    def _age(self) -> float | Missing:
        if self._sampled_at_s is None:
            return _FIRST
        return max(0.0, self._clock() - self._sampled_at_s)

    def _unread(self, limit: CpuLimit) -> Host:
        return Host(
            source=self._cgroups.source,
            age_s=_FIRST,
            cpu_quota_vcpu=limit.quota_vcpu,
            quota_origin=limit.origin,
            cpu_used_vcpu=_FIRST,
            throttled_ms_per_s=_FIRST,
            busiest_engine_thread=_FIRST,
            memory_used_bytes=_FIRST,
            memory_limit_bytes=_FIRST,
            shm_used_bytes=_FIRST,
            shm_total_bytes=_FIRST,
            disk_free_bytes=_FIRST,
        )

    def _rates(self, times: CpuTimes, now_s: float) -> tuple[Figure, Figure]:
        """Used vCPU (Δ CPU seconds ÷ Δt) and throttled milliseconds a second."""
        before, elapsed_s = self._times, now_s - self._times_at_s
        if before is not None and elapsed_s < SHORTEST_S:
            return self._host.cpu_used_vcpu, self._host.throttled_ms_per_s
        self._times, self._times_at_s = times, now_s
        if before is None:
            return _FIRST, _FIRST
        used = _rate(before.used_s, times.used_s, elapsed_s, "no CPU accounting for us here")
        throttled = _rate(
            before.throttled_s, times.throttled_s, elapsed_s, "no CPU quota counts here"
        )
        return used, throttled if isinstance(throttled, Missing) else throttled * 1000

    def _memory(self) -> tuple[Figure, Figure]:
        memory = self._cgroups.memory()
        used = measured(memory.used_bytes, "no memory accounting for us here")
        if memory.limit_bytes is not None:
            return used, memory.limit_bytes
        machine_bytes = self._cgroups.machine_memory_bytes()
        whole = f"; the machine has {machine_bytes / 2**30:.0f} GiB" if machine_bytes else ""
        return used, Missing(f"no memory limit is set{whole}")

    def _busiest_thread(self, now_s: float) -> BusiestThread | Missing:
        """Read less often than the rest: an engine has hundreds of threads."""
        pids = tuple(self._engine_pids())
        # Half a period of slack: a caller that ticks at the same rate must not miss every other.
        due = self._threads_at_s is None or (
            now_s - self._threads_at_s >= self._threads_period_s - self._period_s / 2
        )
        if due or pids != self._threads_pids:
            self._busiest = self._threads.sample(pids)
            self._threads_at_s, self._threads_pids = now_s, pids
        return self._busiest


def _rate(
    before: float | None, after: float | None, elapsed_s: float, reason: str
) -> float | Missing:
    if before is None or after is None:
        return Missing(reason)
    if after < before:
        return Missing("the counter went back")
    return _significant((after - before) / elapsed_s)


def _significant(value: float) -> float:
    """Seven digits: the counters count microseconds, what is beyond is the subtraction's noise."""
    return float(f"{value:.7g}")


def _shared_memory(path: Path) -> tuple[Figure, Figure]:
    try:
        shm = os.statvfs(path)
    except OSError as error:
        missing = Missing(f"{path}: {error.strerror}")
        return missing, missing
    return (shm.f_blocks - shm.f_bfree) * shm.f_frsize, shm.f_blocks * shm.f_frsize


def _disk_free(path: Path) -> Figure:
    try:
        disk = os.statvfs(path)
    except OSError as error:
        return Missing(f"{path}: {error.strerror}")
    return disk.f_bavail * disk.f_frsize
