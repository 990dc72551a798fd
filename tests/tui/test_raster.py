"""Sparks and charts say what the numbers say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a40console.tui.raster import BARS, buckets, gauge, line_chart, scale, spark

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


@given(st.lists(st.none() | st.floats(min_value=0, max_value=100), max_size=60))
def test_a_chart_has_its_height_and_width(values: list[float | None]) -> None:
    rows = line_chart(values, height=5, top=100)
    assert len(rows) == 5
    assert {len(row) for row in rows} <= {(len(values) + 1) // 2}


def test_a_chart_puts_high_above_low_and_leaves_gaps() -> None:
    rows = line_chart([0.0, 0.0, None, None, 100.0, 100.0], height=3, top=100)
    assert rows[2][0] != " "
    assert rows[0][0] == " "
    assert [row[1] for row in rows] == [" ", " ", " "]
    assert rows[0][2] != " "
    assert rows[2][2] == " "


def test_a_line_joins_neighbouring_values() -> None:
    rows = line_chart([0.0, 100.0], height=3, top=100)
    assert all(row[0] != " " for row in rows)


def test_buckets_are_means_on_a_fixed_grid() -> None:
    points = [(float(second), float(second)) for second in range(100)]
    assert buckets(points, now_s=99.0, span_s=40.0, number=4) == [64.5, 74.5, 84.5, 94.5]
    # A second later nothing moves but the last span.
    later = buckets([*points, (100.0, 100.0)], now_s=100.0, span_s=40.0, number=4)
    assert later == [74.5, 84.5, 94.5, 100.0]


def test_buckets_can_keep_bursts() -> None:
    points = [(float(second), 1000.0 if second == 95 else 0.0) for second in range(100)]
    assert buckets(points, now_s=99.0, span_s=20.0, number=2, of=max) == [0.0, 1000.0]


@given(st.floats(min_value=-1, max_value=2), st.integers(min_value=0, max_value=40))
def test_a_gauge_keeps_its_width(ratio: float, width: int) -> None:
    assert len(gauge(ratio, width)) == width
