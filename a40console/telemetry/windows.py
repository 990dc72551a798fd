"""Counters over a stated window: rates, changes and percentiles; a counter that fell is a gap."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, isfinite, isnan
from typing import Literal

from a40console.model.figures import Estimated, Figure, Missing, combine, measured, number
from a40console.model.latency import Percentiles
from a40console.telemetry.aliases import why_absent
from a40console.telemetry.reading import CounterName, EngineReading, Histogram, HistogramName

RATE_WINDOW_S = 5.0
"""Window of every tok/s and pass/s."""

LONG_WINDOW_S = 60.0
"""Window of latencies, prefix cache and speculation."""

FINE_S = RATE_WINDOW_S + 1.0
"""Every reading of so many seconds is kept."""

SPARSE_STEP_S = 0.5
"""Older ones are at least this far apart, however often the engine is read."""

SAMPLES_FOR_P95 = 20
"""Below this a 95th percentile is one unlucky sample."""

_ONE_READING = Missing("one reading so far")
_BEGAN_AGAIN = Missing("the counters began again: one reading so far")


def value_at(points: Sequence[tuple[float, float]], at_s: float) -> float:
    """Linear interpolation among (time, value) points in order of time; flat beyond the ends."""
    before = points[0]
    if at_s <= before[0]:
        return before[1]
    for after in points:
        if after[0] >= at_s:
            share = (at_s - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 1.0
            return before[1] + share * (after[1] - before[1])
        before = after
    return before[1]


def counted(value: float | None, reason: str) -> Figure:
    """A count as a figure: whole ones are whole numbers, though expositions write floats."""
    figure = measured(value, reason)
    return int(figure) if isinstance(figure, float) and figure.is_integer() else figure


@dataclass(frozen=True, slots=True)
class Change:
    """Two readings of one engine life; differences between them are counts, not interpolations."""

    start: EngineReading
    end: EngineReading

    @property
    def span_s(self) -> float:
        """Seconds between them."""
        return self.end.at_s - self.start.at_s

    def delta(self, name: CounterName) -> Figure:
        """How far a counter moved; missing where it is not exposed."""
        before, after = _value(self.start, name), self.end.counters.get(name)
        if after is None:
            return Missing(why_absent(name, self.end))
        moved = counted(None if before is None else after - before, "was not readable before")
        return _marked(moved, name, self.end)

    def histogram(self, name: HistogramName) -> Histogram | Missing:
        """The samples that a histogram received, as a histogram."""
        before, after = self.start.histograms.get(name), self.end.histograms.get(name)
        if after is None:
            return Missing(why_absent(name, self.end))
        if before is None and name in self.start.unreadable:
            return Missing("was not readable before")
        if before is None or before.bounds != after.bounds:
            before = Histogram(after.bounds, (0.0,) * len(after.bounds), 0.0)
        sums = None if after.sum is None or before.sum is None else after.sum - before.sum
        counts = tuple(b - a for a, b in zip(before.counts, after.counts, strict=True))
        return Histogram(after.bounds, counts, sums)


class CounterRing:
    """The readings of one source over the last minute; emptied when the engine began again."""

    def __init__(self, *, horizon_s: float = LONG_WINDOW_S + 10.0) -> None:
        self._sparse: deque[EngineReading] = deque()
        self._readings: deque[EngineReading] = deque()
        self._horizon_s = horizon_s
        self.began_again_at_s: float | None = None
        """When the counters were last seen to begin again."""

    def __len__(self) -> int:
        """How many readings are kept."""
        return len(self._sparse) + len(self._readings)

    def __iter__(self) -> Iterator[EngineReading]:
        """The readings, oldest first; all but the newest without what only the newest is for."""
        return chain(self._sparse, self._readings)

    @property
    def latest(self) -> EngineReading | None:
        """The newest reading."""
        return self._readings[-1] if self._readings else None

    def clear(self) -> None:
        """Forget every reading."""
        self._sparse.clear()
        self._readings.clear()

    def add(self, reading: EngineReading) -> bool:
        """Take a reading; true when it shows that the counters began again."""
        began_again = (latest := self.latest) is not None and _is_new_life(latest, reading)
        if began_again:
            self.clear()
            self.began_again_at_s = reading.at_s
        elif latest is not None:
            self._readings[-1] = _counts_of(latest)
        self._readings.append(reading)
        self._forget(reading.at_s)
        return began_again

    def _forget(self, now_s: float) -> None:
        """Thin out what is old; one reading at or before an edge stays, to interpolate from."""
        fine, sparse = self._readings, self._sparse
        while len(fine) > 2 and fine[1].at_s < now_s - FINE_S:
            aged = fine.popleft()
            if not sparse or aged.at_s - sparse[-1].at_s >= SPARSE_STEP_S:
                sparse.append(aged)
        edge_s = now_s - self._horizon_s
        while sparse and (sparse[1] if len(sparse) > 1 else fine[0]).at_s < edge_s:
            sparse.popleft()

    def covered_s(self, window_s: float) -> float:
        """How much of the window the readings cover."""
        if self.latest is None:
            return 0.0
        return min(window_s, self.latest.at_s - next(iter(self)).at_s)

    def delta(self, name: CounterName, window_s: float) -> Figure:
        """How far a counter moved in the last seconds, interpolated at the window's edge."""
        points = self._points(name)
        if isinstance(points, Missing):
            return points
        moved = points[-1][1] - value_at(points, points[-1][0] - window_s)
        return moved if self.latest is None else _marked(moved, name, self.latest)

    def rate(self, name: CounterName, window_s: float = RATE_WINDOW_S) -> Figure:
        """A counter's growth a second over the last seconds, or over what is covered of them.

        Covered is what its own readable values span: other counters may have been read for longer.
        """
        points = self._points(name)
        if isinstance(points, Missing):
            return points
        span_s = min(window_s, points[-1][0] - points[0][0])
        return combine(
            lambda moved: moved / span_s if span_s else None,
            self.delta(name, window_s),
            reason=_ONE_READING.reason,
        )

    def change(self, window_s: float = LONG_WINDOW_S) -> Change | Missing:
        """The last reading against the newest that is at least the window older, or the oldest."""
        if self.latest is None:
            return Missing("not read yet")
        if len(self) < 2:
            return self._why_one()
        edge_s = self.latest.at_s - window_s
        start = next(iter(self))
        for reading in self:
            if reading.at_s > edge_s:
                break
            start = reading
        return Change(start, self.latest)

    def _points(self, name: CounterName) -> list[tuple[float, float]] | Missing:
        """A counter's readable values by time, two at least."""
        if self.latest is None:
            return Missing("not read yet")
        if name not in self.latest.counters:
            return Missing(why_absent(name, self.latest))
        points = [
            (reading.at_s, value)
            for reading in self
            if (value := _value(reading, name)) is not None
        ]
        return points if len(points) > 1 else self._why_one()

    def _why_one(self) -> Missing:
        return _ONE_READING if self.began_again_at_s is None else _BEGAN_AGAIN


def _counts_of(reading: EngineReading) -> EngineReading:
    """What windows need of a reading that is not the newest any more: many of them are kept."""
    return replace(reading, gauges={}, waiting_by_reason={}, settings={}, rows=None, ended=())


def _marked(figure: Figure, name: CounterName, reading: EngineReading) -> Figure:
    """The figure as an estimate where its counter is one."""
    exact = number(figure)
    return figure if exact is None or name not in reading.estimated else Estimated(exact)


def _value(reading: EngineReading, name: CounterName) -> float | None:
    """A counter's value; a series that is not there yet has counted nothing in this engine life."""
    known = reading.counters.get(name)
    return 0.0 if known is None and name not in reading.unreadable else known


def _is_new_life(before: EngineReading, after: EngineReading) -> bool:
    """Whether the engine's process is another one: told so, or seen from a counter that fell."""
    if before.boot is not None and after.boot is not None and before.boot != after.boot:
        return True
    return any(
        value > after.counters[name]
        for name, value in before.counters.items()
        if name in after.counters
    )


def percentiles(
    histogram: Histogram | Missing, *, origin: Literal["gateway", "engine"] = "engine"
) -> Percentiles | Missing:
    """Median and 95th percentile of a histogram's samples, interpolated within buckets."""
    if isinstance(histogram, Missing):
        return histogram
    count = int(histogram.counts[-1])
    if not count:
        return Missing("no sample in the window")
    return Percentiles(
        p50=quantile(histogram, 0.5),
        p95=quantile(histogram, 0.95) if count >= SAMPLES_FOR_P95 else _too_few(count),
        count=count,
        origin=origin,
    )


def sample_percentiles(samples: Sequence[float]) -> tuple[Figure, Figure]:
    """Median and 95th percentile of plain samples, by linear interpolation between ranks."""
    if not samples:
        return Missing("no sample in the window"), Missing("no sample in the window")
    ordered = sorted(samples)
    points = [(rank / max(1, len(ordered) - 1), value) for rank, value in enumerate(ordered)]
    p95 = value_at(points, 0.95) if len(ordered) >= SAMPLES_FOR_P95 else _too_few(len(ordered))
    return value_at(points, 0.5), p95


def _too_few(count: int) -> Missing:
    return Missing(f"{count} sample{'s' if count != 1 else ''}")


def quantile(histogram: Histogram, q: float) -> Figure:
    """A quantile: an estimate within its bucket, missing beyond the last finite bound.

    The first bucket of vLLM's histograms is coarse (queue times begin at 0.3 s), so the estimate is
    capped at mean ÷ (1 − q), which no quantile of samples of 0 and more can exceed (Markov).
    """
    count = histogram.counts[-1]
    rank, below, lower = q * count, 0.0, 0.0
    for bound, cumulative in zip(histogram.bounds, histogram.counts, strict=True):
        if cumulative >= rank and cumulative > below:
            if bound == inf:
                return Missing(f"> {lower:g} s")
            value = lower + (bound - lower) * (rank - below) / (cumulative - below)
            return Estimated(min(value, _cap(histogram, q)))
        below, lower = cumulative, bound
    return Missing("no sample in the window")


def _cap(histogram: Histogram, q: float) -> float:
    total = histogram.sum
    if total is None or isnan(total) or not isfinite(total) or total < 0:
        return inf
    return total / histogram.counts[-1] / (1 - q)
