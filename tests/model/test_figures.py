"""Arithmetic with figures never turns what is unknown into a number."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import (
    Estimated,
    Figure,
    Missing,
    combine,
    is_estimate,
    measured,
    number,
    ratio,
    total,
)

numbers = st.floats(-1e9, 1e9)
figures = st.one_of(numbers, st.builds(Missing, st.text(min_size=1)), st.builds(Estimated, numbers))


@given(st.lists(figures, min_size=1, max_size=5))
def test_a_sum_is_missing_when_one_part_is(parts: list[Figure]) -> None:
    result = total(parts)
    assert isinstance(result, Missing) == any(isinstance(part, Missing) for part in parts)
    if not isinstance(result, Missing):
        assert is_estimate(result) == any(map(is_estimate, parts))


@given(numbers)
def test_nothing_divided_by_nothing_is_missing_with_its_reason(part: float) -> None:
    assert ratio(part, 0, reason="no prompt in the window") == Missing("no prompt in the window")


def test_nan_and_infinities_are_missing() -> None:
    assert measured(math.nan, "not a number") == Missing("not a number")
    assert measured(math.inf, "infinite") == Missing("infinite")
    assert measured(None, "absent") == Missing("absent")
    assert measured(0.0, "absent") == 0.0
    assert combine(lambda a: a * math.inf, 1.0, reason="overflow") == Missing("overflow")


def test_the_number_of_a_figure() -> None:
    assert number(Missing("x")) is None
    assert number(Estimated(2.5)) == 2.5
    assert number(0) == 0


def test_a_sum_of_nothing_is_not_zero() -> None:
    assert total([]) == Missing("nothing to add")
