"""What may be said of figures that were measured a few times. Pure.

Every interval rests on repeats, never on single requests: those of one repeat share its cache, its
clocks and its neighbours, and are no independent evidence. Resampling is seeded, so that a run
read again says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import cos, exp, isfinite, log, pi, sin, sqrt, tan
from random import Random

from a40console.model.figures import Figure, Missing
from a40console.model.run_result import Interval, VerdictKind

CONFIDENCE = 0.95
RESAMPLES = 2000
LEAST_REPEATS = 2
"""Of one repeat no noise can be told, and so no interval."""

PERCENTILE_LEAST = 20
"""A percentile other than the median is told from so many values on."""

NO_VALUES = Missing("nothing was measured")
ONE_REPEAT = Missing("one repeat has no interval")

_LARGEST_LOG = 700.0
"""What `exp` still answers: bounds of two repeats may lie anywhere."""

_NORMAL = 1.960
"""What Student's factor tends to with many repeats, at 95 %."""

_HALVINGS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Whether two arms differ."""

    kind: VerdictKind
    """`difference`, `no difference` (none beyond noise), or `none`: too few repeats to tell."""

    ratio: Interval | Missing
    """Right over left, with the bounds of this comparison alone."""

    @property
    def differs(self) -> bool:
        """Whether a difference is beyond noise."""
        return self.kind == "difference"


def mean(values: Sequence[float]) -> Figure:
    """The arithmetic mean; missing of nothing."""
    return _mean(values) if values else NO_VALUES


def median(values: Sequence[float]) -> Figure:
    """The middle value, or the mean of the two in the middle; missing of nothing."""
    return _quantile(sorted(values), 0.5) if values else NO_VALUES


def percentile(values: Sequence[float], share: float, *, least: int = PERCENTILE_LEAST) -> Figure:
    """The value below which a share (0 … 1) of the values lies, linear between neighbours.

    Missing, with their number, where there are fewer than `least`.
    """
    if len(values) < least or not values:
        values_told = "1 value" if len(values) == 1 else f"{len(values)} values"
        return Missing(f"{values_told} only: a percentile needs {least}")
    return _quantile(sorted(values), share)


def interval(values: Sequence[float], *, seed: int = 1) -> Interval | Missing:
    """The mean of one value a repeat, with its bounds.

    The bounds are a percentile bootstrap's, widened for few repeats as Student's t is wider than
    the normal: three repeats that happen to lie close together are no proof of little noise.
    """
    if not values:
        return NO_VALUES
    if len(values) < LEAST_REPEATS:
        return ONE_REPEAT
    if not all(map(isfinite, values)):
        return Missing("a repeat has no finite value")
    dice = Random(seed)  # noqa: S311 - resampling, not a secret
    count = len(values)
    drawn = sorted(_mean(dice.choices(values, k=count)) for _ in range(RESAMPLES))
    return _bounds(_mean(values), drawn, count)


def paired_ratio(
    left: Sequence[float], right: Sequence[float], *, seed: int = 1
) -> Interval | Missing:
    """Right over left, repeat by repeat: the geometric mean of the ratios, with its bounds.

    What both arms of a repeat share (the machine's hour, the transcript) cancels out.

    Raises:
        ValueError: If they are not equally many.
    """
    if len(left) != len(right):
        raise ValueError(f"{len(left)} repeats against {len(right)} are no pairs")
    if not left:
        return NO_VALUES
    if min(*left, *right) <= 0:
        return Missing("a repeat is not above 0")
    logs = interval([log(b / a) for a, b in zip(left, right, strict=True)], seed=seed)
    return _from_logs(logs)


def ratio_of_means(
    left: Sequence[float], right: Sequence[float], *, seed: int = 1
) -> Interval | Missing:
    """The right mean over the left one, where repeats of the two are no pairs; with its bounds."""
    if not left or not right:
        return NO_VALUES
    if min(*left, *right) <= 0:
        return Missing("a repeat is not above 0")
    fewest = min(len(left), len(right))
    if fewest < LEAST_REPEATS:
        return ONE_REPEAT
    dice = Random(seed)  # noqa: S311 - resampling, not a secret
    drawn = sorted(
        log(_mean(dice.choices(right, k=len(right))) / _mean(dice.choices(left, k=len(left))))
        for _ in range(RESAMPLES)
    )
    return _from_logs(_bounds(log(_mean(right) / _mean(left)), drawn, fewest))


def judge(ratio: Interval | Missing, *, comparisons: int = 1) -> Contrast:
    """Whether a ratio differs from 1 beyond its noise.

    Args:
        ratio: With its bounds, as of one comparison.
        comparisons: Of how many this is one: so many chances has luck to show a difference, and
            so much wider bounds must exclude 1 (after Bonferroni).
    """
    if isinstance(ratio, Missing):
        return Contrast(kind="none", ratio=ratio)
    freedom = ratio.repeats - 1
    wider = 1.0
    if comparisons > 1 and freedom:
        alone = 1 - CONFIDENCE
        wider = _student(freedom, alone / comparisons) / _student(freedom, alone)
    value = log(ratio.value)
    low, high = log(ratio.low), log(ratio.high)
    apart = value + wider * (low - value) > 0 or value + wider * (high - value) < 0
    return Contrast(kind="difference" if apart else "no difference", ratio=ratio)


def difference(
    left: Mapping[int, float],
    right: Mapping[int, float],
    *,
    seed: int = 1,
    comparisons: int = 1,
) -> Contrast:
    """Whether two arms differ: by pairs over the repeats that both have, by means if too few.

    Args:
        left: A figure by repeat.
        right: The other arm's.
        seed: Of the resampling.
        comparisons: Of how many this is one, as `judge` takes it.
    """
    both = sorted(left.keys() & right.keys())
    if len(both) < LEAST_REPEATS:
        ratio = ratio_of_means(list(left.values()), list(right.values()), seed=seed)
    else:
        pairs = ([left[repeat] for repeat in both], [right[repeat] for repeat in both])
        ratio = paired_ratio(*pairs, seed=seed)
    return judge(ratio, comparisons=comparisons)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _bounds(value: float, drawn: Sequence[float], repeats: int) -> Interval:
    tail = (1 - CONFIDENCE) / 2
    wider = _student(repeats - 1, 1 - CONFIDENCE) / _NORMAL * sqrt(repeats / (repeats - 1))
    return Interval(
        value=value,
        low=value - wider * max(0.0, value - _quantile(drawn, tail)),
        high=value + wider * max(0.0, _quantile(drawn, 1 - tail) - value),
        confidence=CONFIDENCE,
        repeats=repeats,
    )


@lru_cache(maxsize=256)
def _student(freedom: int, beyond: float) -> float:
    """The t beyond which, to both sides, so much (0 … 1) of Student's distribution lies."""
    low, high = 0.0, pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _within(middle, freedom) < 1 - beyond:
            low = middle
        else:
            high = middle
    return sqrt(freedom) * tan(low)


def _within(angle: float, freedom: int) -> float:
    """How much of Student's distribution lies between ∓t, for t = √freedom · tan(angle).

    Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for power in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (power - 1) / power
    if odd:
        return 2 / pi * (angle + sin(angle) * total)
    return sin(angle) * total


def _from_logs(logs: Interval | Missing) -> Interval | Missing:
    if isinstance(logs, Missing):
        return logs
    return Interval(
        value=exp(logs.value),
        low=exp(max(logs.low, -_LARGEST_LOG)),
        high=exp(min(logs.high, _LARGEST_LOG)),
        confidence=logs.confidence,
        repeats=logs.repeats,
    )
