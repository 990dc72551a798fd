"""What this console saw of one request or session: its phases, and its speed over time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.snapshot import RecentRequest, Slot
from a40console.tui.bins import Bins

SPARK_SPAN_S = 60.0
_POINTS = 600
_STEP_S = 0.5
"""Readings that come faster are not all kept."""

_SPARK_POINTS = int(SPARK_SPAN_S / _STEP_S)
_SPANS = 48
_GAP = -1.0
"""Stands for no value in the arrays: rates are never below zero."""

_PROMPT_S = 5.0
"""A request first seen so soon after its arrival was watched from the start, near enough."""

_WAITING = frozenset({"held", "queued"})


@dataclass(slots=True)
class SeenPhase:
    """A phase in which the request was seen, to the second that snapshots are apart."""

    name: str
    since_s: float
    until_s: float

    @property
    def seconds(self) -> float:
        """How long it lasted, as far as it was seen."""
        return self.until_s - self.since_s


class Track:
    """One row of the table over time; bounded, its older half thinned out when it grows long."""

    __slots__ = (
        "_bins",
        "_passes",
        "_per_pass",
        "_speeds",
        "_times",
        "ended",
        "first_age_s",
        "phases",
        "place",
        "seen_s",
        "slot",
    )

    def __init__(self, place: int, seen_s: float) -> None:
        self.place = place
        """Order of first appearance: rows keep their place."""

        self.seen_s = seen_s
        self.slot: Slot | None = None
        """As it was last seen live."""

        self.ended: RecentRequest | None = None
        self.phases: list[SeenPhase] = []
        self.first_age_s: float | None = None
        """How old the request was when it was first seen."""

        self._times = array("d")
        self._speeds = array("f")
        self._passes = array("f")
        self._per_pass = array("f")
        self._bins: Bins | None = None

    def frozen(self) -> Track:
        """The same as it is now: what is seen later does not change it."""
        still = copy(self)
        still.phases = [copy(phase) for phase in self.phases]
        still._times, still._speeds = self._times[:], self._speeds[:]  # noqa: SLF001
        still._passes, still._per_pass = self._passes[:], self._per_pass[:]  # noqa: SLF001
        still._bins = None  # noqa: SLF001
        return still

    def see(self, slot: Slot, at_s: float) -> None:
        """Add what one snapshot says of the request."""
        age_s = number(slot.age_s)
        if self.slot is None:
            self.first_age_s = age_s
        self._see_phase(slot, at_s, age_s)
        self.slot = slot
        self.seen_s = at_s
        if self._times and self._times[-1] <= at_s < self._times[-1] + _STEP_S:
            return
        speed = number(slot.window_tokens_per_s)
        self._times.append(at_s)
        self._speeds.append(_GAP if speed is None else speed)
        self._passes.append(_or_gap(slot.passes_per_s))
        self._per_pass.append(_or_gap(slot.tokens_per_pass))
        if self._bins is not None:
            self._bins.add(at_s, speed)
        if len(self._times) > _POINTS:
            self._thin_out()

    def end(self, ended: RecentRequest) -> None:
        """It is over: its spark is drawn no more."""
        self.ended = ended
        self._bins = None

    def _see_phase(self, slot: Slot, at_s: float, age_s: float | None) -> None:
        if self.phases and self.phases[-1].name == slot.phase:
            self.phases[-1].until_s = at_s
            return
        since_s = self.phases[-1].until_s if self.phases else at_s - (age_s or 0.0)
        self.phases.append(SeenPhase(slot.phase, since_s, at_s))
        del self.phases[:-_SPANS]

    def _thin_out(self) -> None:
        """Keep every other reading of the older half."""
        half = len(self._times) // 2
        for values in (self._times, self._speeds, self._passes, self._per_pass):
            values[:half] = values[:half:2]

    @property
    def watched(self) -> bool:
        """Whether it was seen from its arrival on, near enough."""
        return self.first_age_s is not None and self.first_age_s <= _PROMPT_S

    @property
    def last_live_s(self) -> float:
        """When it was last seen under way; before all time where it never was."""
        return self.phases[-1].until_s if self.phases else float("-inf")

    @property
    def waited_s(self) -> Figure:
        """Seconds held at the gateway and queued in the engine, from the phases that were seen."""
        if not self.watched:
            return Missing("it was not seen from its arrival on")
        waits = [phase.seconds for phase in self.phases if phase.name in _WAITING]
        if not waits:
            return Missing("it was never seen waiting")
        return Estimated(sum(waits))

    @property
    def waited_at_most_s(self) -> float | None:
        """The longest that it can have waited where it was never seen waiting."""
        if not self.watched or any(phase.name in _WAITING for phase in self.phases):
            return None
        bounds = [self.first_age_s, number(self.slot.ttft_s) if self.slot else None]
        return min((bound for bound in bounds if bound is not None), default=None)

    @property
    def recent_peak(self) -> float:
        """The highest speed in the span of the sparks; 0 where none is known."""
        last = self._times[-1] if self._times else 0.0
        count = sum(1 for at_s in self._times[-_SPARK_POINTS:] if at_s > last - SPARK_SPAN_S)
        return max(0.0, max(self._speeds[-count:], default=0.0)) if count else 0.0

    def spark(self, now_s: float, cells: int) -> list[float | None]:
        """The mean speed in each cell of the last minute."""
        if cells < 1:
            return []
        width_s = SPARK_SPAN_S / cells
        if self._bins is None or self._bins.width_s != width_s:
            self._bins = Bins(width_s)
            for at_s, speed in self.speeds():
                self._bins.add(at_s, speed)
        return self._bins.values(now_s, cells)

    def speeds(self) -> Iterator[tuple[float, float | None]]:
        """Tokens per second by Unix time."""
        return self._series(self._speeds)

    def passes(self) -> Iterator[tuple[float, float | None]]:
        """Passes per second by Unix time."""
        return self._series(self._passes)

    def tokens_per_pass(self) -> Iterator[tuple[float, float | None]]:
        """Tokens per pass by Unix time."""
        return self._series(self._per_pass)

    def _series(self, values: array[float]) -> Iterator[tuple[float, float | None]]:
        for at_s, value in zip(self._times, values, strict=True):
            yield at_s, None if value < 0 else value

    def __len__(self) -> int:
        return len(self._times)


def _or_gap(figure: Figure) -> float:
    value = number(figure)
    return _GAP if value is None else value
