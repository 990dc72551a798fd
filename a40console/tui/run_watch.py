"""A run that is under way, as its records tell it: curves and counts by arm, bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from a40console.model.figures import Figure, Missing, measured, number
from a40console.model.run import RunProgress
from a40console.model.run_record import ArmEnd, Doubted, Progressed, Record, Sample
from a40console.model.run_result import Doubt, Plot, Point, Series

_MOST_POINTS = 600
"""Of an arm: beyond them, requests that follow each other are drawn as one."""

_MOST_DOUBTS = 50
_NONE = Missing("no answer yet")


def _speed(sample: Sample) -> float | None:
    """Tokens a second behind the first one."""
    total, first = number(sample.total_s), number(sample.ttft_s)
    tokens = number(sample.generated_tokens)
    if total is None or first is None or tokens is None or total <= first or tokens < 2:
        return None
    return (tokens - 1) / (total - first)


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that is drawn of each request."""

    title: str
    unit: str
    of: Callable[[Sample], float | None]


MEASURES = (
    Measure("Time of each request", "s", lambda sample: number(sample.total_s)),
    Measure("Time to first token", "s", lambda sample: number(sample.ttft_s)),
    Measure("Speed of each request", "tok/s", _speed),
    Measure("Prompt", "tokens", lambda sample: number(sample.prompt_tokens)),
)


@dataclass(slots=True)
class ArmWatch:
    """What one arm has done so far."""

    name: str
    requests: int = 0
    errors: int = 0
    repeats_ended: int = 0
    wall_s: float = 0.0
    """Of the repeats that have ended."""

    usd: Figure = 0.0
    last_error: str = ""
    sums: list[dict[int, tuple[float, int]]] = field(default_factory=list)
    """Of each measure, by the request's place: sum and count over the repeats."""

    width: int = 1
    """How many places are drawn as one."""

    @property
    def drawn(self) -> bool:
        """Whether it has a curve: summary calls and recall questions have none."""
        return any(self.sums)

    def mean(self, measure: int) -> Figure:
        """The mean of a measure over all requests."""
        pairs = self.sums[measure].values()
        count = sum(pair[1] for pair in pairs)
        return measured(sum(pair[0] for pair in pairs) / count if count else None, _NONE.reason)


class RunWatch:
    """Takes records in, and tells what they come to.

    Summary calls, recall questions and warm-up requests are counted, and drawn in no curve.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.after = 0
        """What the next records are asked for with."""

        self.whole = False
        """Whether no more will come."""

        self._arms: dict[str, ArmWatch] = {}
        self.doubts: list[Doubt] = []
        self.progress: RunProgress | None = None
        self._plots: dict[int, Plot] = {}

    @property
    def arms(self) -> list[ArmWatch]:
        """The arms in their order; one that only warms up is none."""
        return [arm for arm in self._arms.values() if arm.requests]

    def take(self, records: Iterable[Record]) -> bool:
        """Add records; whether there was any."""
        taken = False
        for record in records:
            taken = True
            match record:
                case Sample():
                    self._add(record)
                case ArmEnd():
                    self._end(record)
                case Progressed():
                    self.progress = record.progress
                case Doubted() if len(self.doubts) < _MOST_DOUBTS:
                    self.doubts.append(record.doubt)
        if taken:
            self._plots.clear()
        return taken

    def plot(self, measure: int) -> Plot:
        """One measure of each request by its place, a curve an arm; the mean where it repeats."""
        drawn = self._plots.get(measure)
        if drawn is None:
            kind = MEASURES[measure]
            series = tuple(
                Series(name=arm.name, points=_points(arm, measure))
                for arm in self.arms
                if arm.drawn
            )
            drawn = Plot(title=kind.title, x_label="request", y_label=kind.unit, series=series)
            self._plots[measure] = drawn
        return drawn

    def _arm(self, name: str) -> ArmWatch:
        arm = self._arms.get(name)
        if arm is None:
            arm = self._arms[name] = ArmWatch(name, sums=[{} for _ in MEASURES])
        return arm

    def _add(self, sample: Sample) -> None:
        if sample.warm_up:
            return
        arm = self._arm(sample.arm)
        arm.requests += 1
        if sample.error:
            arm.errors += 1
            arm.last_error = sample.error
            return
        if sample.role in {"summary", "recall"}:
            return
        place = sample.index // arm.width
        for sums, measure in zip(arm.sums, MEASURES, strict=True):
            value = measure.of(sample)
            if value is not None:
                total, count = sums.get(place, (0.0, 0))
                sums[place] = (total + value, count + 1)
        if len(arm.sums[0]) > _MOST_POINTS:
            _coarsen(arm)

    def _end(self, end: ArmEnd) -> None:
        arm = self._arm(end.arm)
        arm.repeats_ended += 1
        arm.wall_s += end.wall_s
        spent, more = number(arm.usd), number(end.usd)
        arm.usd = end.usd if more is None or spent is None else spent + more


def _points(arm: ArmWatch, measure: int) -> tuple[Point, ...]:
    return tuple(
        Point(x=place * arm.width, y=total / count)
        for place, (total, count) in sorted(arm.sums[measure].items())
    )


def _coarsen(arm: ArmWatch) -> None:
    """Half as many points: two neighbours become one."""
    arm.width *= 2
    for index, sums in enumerate(arm.sums):
        halved: dict[int, tuple[float, int]] = {}
        for place, (total, count) in sums.items():
            before = halved.get(place // 2, (0.0, 0))
            halved[place // 2] = (before[0] + total, before[1] + count)
        arm.sums[index] = halved
