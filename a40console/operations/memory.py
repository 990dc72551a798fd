"""Waits for the GPU's memory: a start into certain want of it only burns minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from a40console.engines.capability import needs_gpu
from a40console.engines.gpu_holders import gpu_holders
from a40console.engines.memory_asked import utilization
from a40console.engines.tree import ProcessInfo
from a40console.errors import RefusedError
from a40console.model.figures import Missing, number
from a40console.model.profile import Profile
from a40console.model.snapshot import Gpu

WAIT_S = 30.0
SLACK_BYTES = 512 * 1024 * 1024
"""Above the baseline by no more than this counts as free."""

FIRST_READING_PERIODS = 5


class GpuTakenError(RefusedError):
    """The GPU has less memory free than a start will ask for."""


class GpuMemory:
    """Compares what is in use with what a start will ask for."""

    def __init__(
        self,
        read_gpus: Callable[[], tuple[Gpu, ...] | Missing],
        *,
        expected: bool = False,
        period_s: float = 1.0,
        wait_s: float = WAIT_S,
        holders: Callable[[], Sequence[ProcessInfo]] = gpu_holders,
    ) -> None:
        self._read_gpus = read_gpus
        self._expected = expected
        self._period_s = period_s
        self._wait_s = wait_s
        self._holders = holders

    async def wait_for_room(
        self, profile: Profile, tell: Callable[[str, float], None] = lambda text, left_s: None
    ) -> int | None:
        """Bytes in use before the start, once the profile's share fits; None without a GPU.

        Args:
            profile: What is to start.
            tell: Takes what it waits for, and for how many seconds more at the most.

        Raises:
            GpuTakenError: If the memory is not freed in time; it says how much is held, by whom.
        """
        total, used = await self._first_reading()
        if total is None or used is None or not needs_gpu(profile):
            return None if used is None else int(used)
        share = utilization(profile)
        waited_s = 0.0
        while used is not None and total - used + SLACK_BYTES < share * total:
            held = f"{used / 2**30:.1f} of {total / 2**30:.1f} GiB"
            if waited_s >= self._wait_s:
                who = _who(await asyncio.to_thread(self._holders))
                raise GpuTakenError(
                    f"{profile.name} needs {share:.0%} of the GPU's memory, and it is not free",
                    evidence=f"{held} are in use after {waited_s:.0f} s of waiting; {who}",
                    remedy="End what holds it, or lower gpu_memory_utilization in the profile.",
                )
            tell(f"waits for GPU memory: {held} are in use", self._wait_s - waited_s)
            await asyncio.sleep(self._period_s)
            waited_s += self._period_s
            total_now, used = self._now()
            total = total_now or total
        return None if used is None else int(used)

    async def _first_reading(self) -> tuple[float | None, float | None]:
        """Total and used bytes; where a GPU is, its telemetry has a few periods to begin."""
        for _ in range(FIRST_READING_PERIODS if self._expected else 0):
            if self._now()[1] is not None:
                break
            await asyncio.sleep(self._period_s)
        return self._now()

    def _now(self) -> tuple[float | None, float | None]:
        """Total and used bytes of the first GPU."""
        gpus = self._read_gpus()
        if isinstance(gpus, Missing) or not gpus:
            return None, None
        return number(gpus[0].memory_total_bytes), number(gpus[0].memory_used_bytes)


def _who(holders: Sequence[ProcessInfo]) -> str:
    """Who may hold the memory: the processes here that use a GPU, or that there are none."""
    if not holders:
        return (
            "no process that is visible from here uses the GPU: a neighbour's does, or one that "
            "ended and is not let go by the driver (restart the pod if it stays)"
        )
    names = ", ".join(f"{process.name} (pid {process.pid})" for process in holders)
    return f"of the processes here {names} {'use' if len(holders) > 1 else 'uses'} the GPU"
