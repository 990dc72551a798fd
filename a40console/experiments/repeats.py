"""What was recorded of an arm, repeat by repeat, and what its figures come to. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from a40console.experiments.bench import ArmRepeat, Bench
from a40console.experiments.rates import NOT_MEASURED, sustained_tokens_per_s, whole_tokens_per_s
from a40console.experiments.result_words import plus_minus
from a40console.model import statistics
from a40console.model.figures import Figure, Missing, number
from a40console.model.run_record import ArmEnd, Sample
from a40console.model.run_result import Point

T = TypeVar("T")


def rotated(items: Sequence[T], repeat: int) -> tuple[T, ...]:
    """The items in another order each time: none is always first, or always after the same one."""
    at = repeat % len(items) if items else 0
    return (*items[at:], *items[:at])


@dataclass(frozen=True, slots=True)
class Repeats:
    """A figure by repeat; one that was left out, or never begun, is not among them."""

    figures: Mapping[int, Figure]

    @property
    def known(self) -> dict[int, float]:
        """The repeats that have a figure."""
        told = {repeat: number(figure) for repeat, figure in self.figures.items()}
        return {repeat: value for repeat, value in told.items() if value is not None}

    @property
    def mean(self) -> Figure:
        """Over the repeats; where none has a figure, why the first one has none."""
        if known := self.known:
            return statistics.mean(list(known.values()))
        reasons = (each for each in self.figures.values() if isinstance(each, Missing))
        return next(reasons, NOT_MEASURED)

    def plus_minus(self, seed: int) -> Figure:
        """Half the width of the mean's bounds, in percent of it."""
        return plus_minus(statistics.interval(list(self.known.values()), seed=seed))

    def point(self, x: float, seed: int, *, share: int = 1) -> Point:
        """The mean in a plot, with its bounds, as no speed is below none; divided by `share`."""
        y = (number(self.mean) or 0.0) / share
        found = statistics.interval(list(self.known.values()), seed=seed)
        if isinstance(found, Missing):
            return Point(x=x, y=y)
        return Point(x=x, y=y, low=max(0.0, found.low) / share, high=found.high / share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An arm of so many streams, over the repeats that stand."""

    streams: int
    samples: tuple[Sample, ...]
    ends: tuple[ArmEnd, ...]
    sustained: Repeats
    """Tokens a second while every stream was busy."""

    whole: Repeats
    """Tokens a second from start to end."""

    @classmethod
    def of(cls, bench: Bench, arm: str, streams: int, left_out: Collection[ArmRepeat]) -> Measured:
        """What was recorded of an arm, but for what is left out."""
        begun: dict[int, list[Sample]] = {}
        for sample in bench.samples(arm):
            if (arm, sample.repeat) not in left_out:
                begun.setdefault(sample.repeat, []).append(sample)
        return cls(
            streams=streams,
            samples=tuple(sample for samples in begun.values() for sample in samples),
            ends=tuple(end for end in bench.arm_ends(arm) if (arm, end.repeat) not in left_out),
            sustained=Repeats(
                {at: sustained_tokens_per_s(samples, streams) for at, samples in begun.items()}
            ),
            whole=Repeats({at: whole_tokens_per_s(samples) for at, samples in begun.items()}),
        )
