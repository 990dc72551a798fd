"""Whether one stream leaves silicon idle: speed at 1, 2 and 4 streams, measured for a few seconds.

Concurrency that scales means idle silicon at one stream. Pure but for the clock and the requests,
which come in by arguments.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from a40console.errors import NotServingError, RefusedError
from a40console.model.figures import Figure, Missing, number

STREAMS = (1, 2, 4)
SECONDS = 20.0
SETTLE_SHARE = 0.2
"""Of each step, in which its streams begin and are not counted yet."""

SETTLE_LIMIT_S = 15.0
IDLE_RATIO = 1.5
"""Four streams that together bring half as much again left a third of the silicon idle at one."""

LOOK_S = 0.05


class Stream(Protocol):
    """Generates for as long as it is read."""

    def __call__(self, number: int) -> AsyncIterator[int]:
        """How many tokens it has generated so far, each time there are more."""


@dataclass(frozen=True, slots=True)
class Step:
    """One number of streams, measured."""

    streams: int
    tokens_per_s: float
    """All of them together."""

    window_s: float


@dataclass(frozen=True, slots=True)
class Probe:
    """What the steps say together."""

    steps: tuple[Step, ...]

    @property
    def gain(self) -> Figure:
        """The fastest step's speed by the first's."""
        first = self.steps[0].tokens_per_s
        if first <= 0:
            return Missing("one stream brought no token within its window")
        return max(step.tokens_per_s for step in self.steps) / first

    @property
    def idles(self) -> bool | None:
        """Whether one stream leaves silicon idle; None where it cannot be said."""
        gain = number(self.gain)
        return None if gain is None else gain >= IDLE_RATIO

    def verdict(self) -> str:
        """One sentence with its figures."""
        gain = self.gain
        if isinstance(gain, Missing):
            return f"cannot be said: {gain.reason}"
        share = 1 - 1 / float(number(gain) or 1)
        told = f"{self.steps[-1].streams} streams bring at most {number(gain):.2f} times one"
        if self.idles:
            return f"idle silicon: {told}, so one stream leaves at least {share:.0%} of it idle"
        return f"no idle silicon: {told}; more streams only share what one has"


async def measure(
    stream: Stream,
    *,
    disturbed: Callable[[int], str],
    seconds: float = SECONDS,
    streams: Sequence[int] = STREAMS,
    clock: Callable[[], float] = time.monotonic,
) -> Probe:
    """Measure each number of streams in turn, for `seconds` in all.

    Args:
        stream: Begins a stream; each gets a number of its own, so that no prompt is another's.
        disturbed: Why somebody else's traffic spoils a step of so many streams; empty for none.
        seconds: How long, the begin of the streams not counted.
        streams: The numbers of streams.
        clock: Monotonic.

    Raises:
        RefusedError: If other traffic came: it has the engine to itself again at once.
        NotServingError: If a stream breaks off.
    """
    each_s = seconds / len(streams)
    steps, first = [], 0
    for count in streams:
        numbers = range(first, first + count)
        steps.append(await _step(stream, numbers, each_s, disturbed, clock))
        first += count
    return Probe(tuple(steps))


async def _step(
    stream: Stream,
    numbers: range,
    seconds: float,
    disturbed: Callable[[int], str],
    clock: Callable[[], float],
) -> Step:
    counts = dict.fromkeys(numbers, 0)

    async def follow(name: int) -> None:
        async for tokens in stream(name):
            counts[name] = tokens
        raise NotServingError("A stream of the probe ended before its time")

    tasks = [asyncio.create_task(follow(name)) for name in numbers]
    try:
        await _all_begun(counts, tasks, clock, lambda: disturbed(len(numbers)))
        await _pass(SETTLE_SHARE * seconds, tasks, clock, lambda: disturbed(len(numbers)))
        before, began_s = sum(counts.values()), clock()
        await _pass((1 - SETTLE_SHARE) * seconds, tasks, clock, lambda: disturbed(len(numbers)))
        window_s = clock() - began_s
        return Step(len(numbers), (sum(counts.values()) - before) / window_s, window_s)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, Exception):
                await task


async def _all_begun(
    counts: dict[int, int],
    tasks: Sequence[asyncio.Task[None]],
    clock: Callable[[], float],
    disturbed: Callable[[], str],
) -> None:
    until_s = clock() + SETTLE_LIMIT_S
    while not all(counts.values()):
        if clock() > until_s:
            begun = sum(map(bool, counts.values()))
            raise NotServingError(
                f"{begun} of {len(counts)} streams had a token within {SETTLE_LIMIT_S:g} s",
                remedy="See what holds them: a40console why",
            )
        await _pass(LOOK_S, tasks, clock, disturbed)


async def _pass(
    seconds: float,
    tasks: Sequence[asyncio.Task[None]],
    clock: Callable[[], float],
    disturbed: Callable[[], str],
) -> None:
    """Let time pass while the streams run and nobody else does."""
    until_s = clock() + seconds
    while (left_s := until_s - clock()) > 0:
        await asyncio.sleep(min(LOOK_S, left_s))
        for task in tasks:
            if task.done():
                task.result()
        if why := disturbed():
            raise RefusedError(
                f"The probe gave way: {why}",
                evidence="what was measured so far says nothing",
                remedy="Ask again when nothing runs.",
            )
