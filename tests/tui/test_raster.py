"""Sparks and charts say what the numbers say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a40console.tui.raster import BARS, area_chart, gauge, scale, spark

VALUES = st.lists(st.none() | st.floats(min_value=0, max_value=1e6), max_size=40)


@given(VALUES)
def test_a_spark_has_one_character_a_value_and_a_gap_where_none_is(
    values: list[float | None],
) -> None:
    drawn = spark(values)
    assert len(drawn) == len(values)
    for character, value in zip(drawn, values, strict=True):
        assert (character == " ") == (value is None)
        assert value is None or character in BARS


def test_a_spark_starts_at_zero_so_noise_stays_small() -> None:
    assert spark([98.0, 100.0, 99.0]) == "███"


@given(st.floats(min_value=0, max_value=1e7))
def test_a_scale_covers_the_highest_value_with_two_to_four_ticks(highest: float) -> None:
    top, step = scale(highest)
    assert top >= highest * (1 - 1e-9)
    assert 2 <= round(top / step) <= 4


@given(st.floats(min_value=-1, max_value=2), st.integers(min_value=0, max_value=40))
def test_a_gauge_keeps_its_width(ratio: float, width: int) -> None:
    assert len(gauge(ratio, width)) == width


@given(VALUES, st.integers(min_value=1, max_value=12))
def test_an_area_has_its_height_and_is_never_empty_where_something_is_known(
    values: list[float | None], height: int
) -> None:
    rows = area_chart(values, height=height, top=1e6)
    assert len(rows) == height
    texts = ["".join(text for text, _ in runs) for runs in rows]
    assert {len(text) for text in texts} == {len(values)}
    for column, value in enumerate(values):
        assert (texts[-1][column] == " ") == (value is None)


def test_an_area_is_full_below_its_crest() -> None:
    rows = area_chart([50.0, 100.0], height=4, top=100)
    assert ["".join(text for text, _ in runs) for runs in rows] == [" █", " █", "██", "██"]
    assert rows[0][-1] == ("█", True) or rows[0] == [(" █", True)]
    assert not rows[3][0][1]
