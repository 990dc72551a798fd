"""What ends a run before its time: the operator, a limit of time or money."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from a40console.experiments.bench import RunStoppedError
from a40console.model.figures import Figure, number
from a40console.model.run import RunSpec

LOOK_S = 0.2
SECONDS_PER_HOUR = 3600.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a run may last, in seconds since it began; None for no such limit."""

    seconds: float | None = None
    usd: float | None = None
    usd_per_h: float | None = None
    """What the engine costs; without it no limit of money can be kept."""

    @classmethod
    def of(cls, spec: RunSpec, usd_per_h: Figure) -> Limits:
        """The limits that were asked for."""
        return cls(
            seconds=None if spec.max_minutes is None else spec.max_minutes * 60,
            usd=None if spec.max_usd is None else float(spec.max_usd),
            usd_per_h=number(usd_per_h),
        )

    def met(self, elapsed_s: float) -> str:
        """Which limit a run of that age has met, in words; empty for none."""
        if self.seconds is not None and elapsed_s >= self.seconds:
            return f"its limit of {self.seconds / 60:g} min is met"
        if self.usd is not None and self.usd_per_h:
            spent = elapsed_s * self.usd_per_h / SECONDS_PER_HOUR
            if spent >= self.usd:
                return f"its limit of ${self.usd:g} is met"
        return ""


class RunStop:
    """Whether a run is to end, and why; the first reason stands."""

    def __init__(
        self,
        *,
        asked: Callable[[], str | None],
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Stop a run.

        Args:
            asked: Why somebody asked the run to end; None where nobody did.
            limits: How long it may last.
            clock: Monotonic; the run begins now.
        """
        self._asked = asked
        self._limits = limits
        self._clock = clock
        self._began_s = clock()
        self.event = asyncio.Event()
        """Set once the run is to end."""

        self.why = ""
        """Why it is to end; empty while it is not."""

    def now_s(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._began_s

    def end(self, why: str) -> None:
        """Let it end, unless it is to end already."""
        if not self.why:
            self.why = why
            self.event.set()

    def check(self) -> None:
        """See whether it may go on.

        Raises:
            RunStoppedError: If it may not.
        """
        if not self.why and (why := self._asked() or self._limits.met(self.now_s())):
            self.end(why)
        if self.why:
            raise RunStoppedError(self.why)

    async def watch(self) -> None:
        """Look again and again until it is to end."""
        while not self.why:
            with suppress(RunStoppedError):
                self.check()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self.event.wait()

    async def bounded(self, work: Awaitable[T]) -> T:
        """The work's outcome, unless the run is to end first: then the work is cancelled.

        Raises:
            RunStoppedError: If the run is to end.
        """
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self.event.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            raise RunStoppedError(self.why)
        finally:
            for each in (task, stop):
                each.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)
