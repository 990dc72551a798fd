"""Statistics: intervals that hold what they promise, also of three repeats."""

from __future__ import annotations

from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Missing
from a40console.model.run_result import Interval
from a40console.model.statistics import (
    LEAST_REPEATS,
    difference,
    interval,
    judge,
    mean,
    median,
    paired_ratio,
    percentile,
    ratio_of_means,
)

POSITIVE = st.floats(min_value=1e-3, max_value=1e3)
REPEATS = st.lists(POSITIVE, min_size=LEAST_REPEATS, max_size=8)


def test_nothing_measured_is_missing_and_never_0() -> None:
    assert isinstance(mean([]), Missing)
    assert isinstance(median([]), Missing)
    assert isinstance(percentile([], 0.95, least=0), Missing)
    assert isinstance(interval([]), Missing)
    assert isinstance(paired_ratio([], []), Missing)
    assert isinstance(ratio_of_means([1.0, 2.0], []), Missing)


def test_the_middle_of_an_even_number_lies_between_the_two() -> None:
    assert median([1.0, 10.0, 2.0, 3.0]) == 2.5


def test_a_percentile_of_few_values_is_missing_and_says_how_few() -> None:
    told = percentile([1.0] * 19, 0.95)
    assert isinstance(told, Missing)
    assert "19 values only" in told.reason
    assert percentile([1.0], 0.95) == Missing("1 value only: a percentile needs 20")
    assert percentile([float(value) for value in range(21)], 0.95) == 19.0


def test_one_repeat_has_no_interval_and_allows_no_verdict() -> None:
    assert isinstance(interval([3.0]), Missing)
    assert difference({0: 3.0}, {0: 1.0}).kind == "none"


def test_a_repeat_of_nothing_allows_no_ratio() -> None:
    assert isinstance(paired_ratio([0.0, 1.0], [1.0, 1.0]), Missing)
    assert isinstance(interval([1.0, float("nan")]), Missing)


def test_pairs_need_equally_many_repeats() -> None:
    with pytest.raises(ValueError, match="2 repeats against 3"):
        paired_ratio([1.0, 2.0], [1.0, 2.0, 3.0])


@given(REPEATS)
def test_the_value_lies_within_its_bounds(values: list[float]) -> None:
    told = interval(values)
    assert isinstance(told, Interval)
    assert told.low <= told.value <= told.high
    assert told.repeats == len(values)


@given(REPEATS, st.integers(min_value=0, max_value=99))
def test_the_same_repeats_with_the_same_seed_say_the_same(values: list[float], seed: int) -> None:
    assert interval(values, seed=seed) == interval(values, seed=seed)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=2, max_size=6))
def test_turning_a_comparison_round_turns_its_ratio_over(
    pairs: list[tuple[float, float]],
) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    there, back = paired_ratio(left, right), paired_ratio(right, left)
    assert isinstance(there, Interval)
    assert isinstance(back, Interval)
    assert there.value == pytest.approx(1 / back.value)


@given(REPEATS)
def test_an_arm_does_not_differ_from_itself(values: list[float]) -> None:
    assert difference(_numbered(values), _numbered(values)).kind == "no difference"


def test_what_the_repeats_share_cancels_out() -> None:
    """A machine whose hours differ by ten times still shows a steady difference of a fifth."""
    left = [1.0, 10.0, 3.0, 7.0]
    right = [value * factor for value, factor in zip(left, (1.19, 1.20, 1.21, 1.20), strict=True)]
    found = difference(_numbered(left), _numbered(right))
    assert found.differs
    assert isinstance(found.ratio, Interval)
    assert found.ratio.value == pytest.approx(1.2, rel=0.01)
    assert judge(ratio_of_means(left, right)).kind == "no difference"


def test_a_repeat_that_one_arm_lacks_is_no_ones_pair() -> None:
    """Hours that differ by ten times: paired by place instead of by repeat they would be noise."""
    left = {0: 1.0, 1: 10.0, 2: 3.0}
    right = {1: 12.0, 2: 3.63, 3: 8.5}
    found = difference(left, right)
    assert isinstance(found.ratio, Interval)
    assert found.ratio.value == pytest.approx(1.205, rel=0.01)
    assert found.ratio.repeats == 2


@pytest.mark.parametrize("repeats", [2, 3, 4, 6, 12])
def test_noise_alone_is_rarely_called_a_difference(repeats: int) -> None:
    """A naive bootstrap of three repeats is wrong one time in four."""
    dice = Random(repeats)
    wrong = sum(
        difference(_noisy(dice, 1.0, repeats), _noisy(dice, 1.0, repeats)).differs
        for _ in range(120)
    )
    assert wrong <= 16, "95 % intervals: 6 of 120 expected"


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_the_luckiest_of_twelve_comparisons_is_rarely_called_a_difference(repeats: int) -> None:
    """Each for itself, one run in four shows one."""
    dice = Random(repeats)
    wrong = 0
    for _ in range(60):
        hits = []
        for _ in range(4):
            base = _noisy(dice, 1.0, repeats)
            arms = [_noisy(dice, 1.0, repeats) for _ in range(3)]
            best = max(arms, key=lambda arm: sum(arm.values()))
            hits.append(difference(base, best, comparisons=12).differs)
        wrong += any(hits)
    assert wrong <= 8, "95 %: 3 of 60 expected at the most"


def test_among_many_comparisons_a_difference_must_stand_out_more_and_is_shown_alike() -> None:
    left, right = {0: 1.0, 1: 1.0, 2: 1.0}, {0: 1.08, 1: 1.10, 2: 1.13}
    alone, among = difference(left, right), difference(left, right, comparisons=12)
    assert (alone.kind, among.kind) == ("difference", "no difference")
    assert alone.ratio == among.ratio


def test_a_difference_well_beyond_noise_is_told_by_three_repeats() -> None:
    dice = Random(5)
    told = sum(
        difference(_noisy(dice, 1.0, 3), _noisy(dice, 1.5, 3), seed=at).differs for at in range(30)
    )
    assert told >= 28


def _noisy(dice: Random, level: float, repeats: int) -> dict[int, float]:
    return {at: level * exp(dice.gauss(0, 0.03)) for at in range(repeats)}


def _numbered(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values))
