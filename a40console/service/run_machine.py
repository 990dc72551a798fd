"""What the machine did around an arm: throttled vCPU and GPU seconds, the GPU's clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from a40console.model.figures import Figure, Missing, number
from a40console.model.snapshot import Gpu
from a40console.telemetry.cgroup import Cgroups
from a40console.telemetry.nvml import GpuSampler

LOOK_S = 0.5
ELSEWHERE = Missing("the engine runs on another machine")
NO_QUOTA = Missing("no CPU quota counts here")
SIMULATED = Missing("the engine is simulated")


class MachineWatch:
    """Watches this machine while it is entered; `mark` begins an arm, `figures` ends it.

    Args:
        here: Whether the engine runs on this machine.
        simulated: Whether its GPU is simulated: this machine's say nothing of it then.
        gpus: Reads the cards; the driver's where none is given.
        throttled_s: The container's throttled CPU seconds; None where nothing counts them.
    """

    def __init__(
        self,
        *,
        here: bool,
        simulated: bool,
        gpus: Callable[[], tuple[Gpu, ...] | Missing] | None = None,
        throttled_s: Callable[[], float | None] | None = None,
    ) -> None:
        self._here = here
        self._simulated = simulated
        self._sampler = GpuSampler(period_s=LOOK_S) if gpus is None else None
        self._gpus = gpus or (lambda: self._sampler.view() if self._sampler else SIMULATED)
        self._throttled_s = throttled_s or (lambda: Cgroups().cpu_times().throttled_s)
        self._task: asyncio.Task[None] | None = None
        self._before_s: float | None = None
        self._slow_s = 0.0
        self._clocks: list[float] = []
        self._why: Missing | None = None

    async def __aenter__(self) -> Self:
        if self._here and not self._simulated:
            if self._sampler is not None:
                self._sampler.start()
            self._task = asyncio.create_task(self._follow(), name="gpu of the run")
        return self

    async def __aexit__(self, *unused: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._sampler is not None:
            self._sampler.stop(0.5)

    def mark(self) -> None:
        """An arm begins."""
        self._before_s = self._throttled_s() if self._here else None
        self._slow_s, self._clocks, self._why = 0.0, [], None

    def figures(self) -> dict[str, Figure]:
        """What happened since the mark, for `ArmEnd.machine`."""
        if not self._here:
            return dict.fromkeys(
                ("vcpu_throttled_s", "gpu_throttled_s", "gpu_clock_mhz"), ELSEWHERE
            )
        return {"vcpu_throttled_s": self._cpu(), **self._gpu()}

    def _cpu(self) -> Figure:
        now_s = self._throttled_s()
        if now_s is None or self._before_s is None:
            return NO_QUOTA
        return round(max(0.0, now_s - self._before_s), 6)

    def _gpu(self) -> dict[str, Figure]:
        if self._simulated:
            return dict.fromkeys(("gpu_throttled_s", "gpu_clock_mhz"), SIMULATED)
        if not self._clocks:
            why = self._why or Missing("the arm was too short to look at the GPU")
            return dict.fromkeys(("gpu_throttled_s", "gpu_clock_mhz"), why)
        clock = sum(self._clocks) / len(self._clocks)
        return {"gpu_throttled_s": round(self._slow_s, 3), "gpu_clock_mhz": round(clock)}

    async def _follow(self) -> None:
        before_s = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_S)
            now_s = time.monotonic()
            self._take(self._gpus(), now_s - before_s)
            before_s = now_s

    def _take(self, gpus: tuple[Gpu, ...] | Missing, seconds: float) -> None:
        if isinstance(gpus, Missing):
            self._why = gpus
            return
        if any(gpu.throttle_reasons for gpu in gpus if isinstance(gpu.throttle_reasons, tuple)):
            self._slow_s += seconds
        known = [clock for gpu in gpus if (clock := number(gpu.sm_clock_mhz)) is not None]
        self._clocks += [sum(known) / len(known)] if known else []
