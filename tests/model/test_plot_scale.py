"""The axes of plots: every value has its place, and what is written at them is round."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a40console.model.plot_scale import round_ticks, step_scale, value_scale

FIGURES = st.floats(-1e9, 1e9).filter(lambda value: value == 0 or abs(value) > 1e-9)


@given(st.lists(FIGURES, min_size=1, max_size=20))
def test_heights_begin_at_nothing(values: list[float]) -> None:
    scale = value_scale(values, 300.0, 10.0)
    slack = (scale.high - scale.low) * 1e-6
    assert scale.low <= min(0.0, *values) + slack
    assert scale.high >= max(0.0, *values) - slack
    assert 0.0 in scale.ticks


def test_values_that_grow_by_factors_lie_at_distances_of_their_logarithms() -> None:
    scale = step_scale([8, 1, 4, 2], 0.0, 300.0)
    assert [round(scale.place(value)) for value in (1, 2, 4, 8)] == [0, 100, 200, 300]
    assert step_scale([1, 2, 4, 9], 0.0, 300.0).logarithmic
    for values in ([1, 2, 3], [1, 2, 3, 4], [0, 1, 2, 4], [-4, -2, -1], [1, 8]):
        assert not step_scale(values, 0.0, 300.0).logarithmic
    assert step_scale([1, 5], 0.0, 300.0).ticks == (1, 5)
    assert len(step_scale(list(range(120)), 0.0, 300.0).ticks) < 10
    assert step_scale([5.0], 0.0, 300.0).place(5.0) == 150.0


def test_values_that_hardly_differ_have_an_axis_all_the_same() -> None:
    for value in (0.0, 1e-300, 1.0, 1e15, 1e300, -1e300):
        assert len(round_ticks(value, value)) >= 2
        step_scale([value], 0.0, 300.0).place(value)
        value_scale([value, value], 300.0, 0.0).place(value)


@given(FIGURES, st.floats(1e-6, 1e9))
def test_ticks_are_few_round_and_cover(low: float, span: float) -> None:
    high = low + span
    if high <= low or span < abs(low) * 1e-9:
        return
    ticks = round_ticks(low, high)
    assert 2 <= len(ticks) <= 9
    slack = (high - low) * 1e-6
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
