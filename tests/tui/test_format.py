"""Numbers as text: right, short, and never a zero for what is not zero or not known."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Estimated, Missing
from a40console.tui import format as fmt

FORMATTERS = (
    fmt.count,
    fmt.short_count,
    fmt.rate,
    fmt.tenths,
    fmt.two_digits,
    fmt.percent,
    fmt.latency,
    fmt.dollars,
)
POSITIVE = st.floats(min_value=1e-9, max_value=1e12, allow_nan=False, allow_infinity=False)


@given(POSITIVE)
def test_what_is_not_zero_never_reads_as_zero(value: float) -> None:
    for formatter in FORMATTERS:
        assert not re.fullmatch(r"[$]?0([.]0*)?( [a-z%]+)?", formatter(value)), formatter


def test_zero_reads_as_zero() -> None:
    assert [formatter(0) for formatter in FORMATTERS] == [
        "0",
        "0",
        "0",
        "0.0",
        "0",
        "0 %",
        "0 ms",
        "$0",
    ]


@given(st.text(max_size=40))
def test_missing_is_a_dash_whatever_the_formatter(reason: str) -> None:
    for formatter in FORMATTERS:
        assert fmt.shown(Missing(reason), formatter) == "–"


@given(POSITIVE)
def test_an_estimate_says_so(value: float) -> None:
    for formatter in FORMATTERS:
        assert fmt.shown(Estimated(value), formatter) == "≈" + fmt.shown(value, formatter)


@given(st.floats(min_value=0.005, max_value=1e9))
def test_a_rate_is_right_to_three_digits(value: float) -> None:
    shown = float(fmt.rate(value).replace(",", ""))
    assert shown == pytest.approx(value, rel=0.0051, abs=0.0051)


@given(st.floats(min_value=0, max_value=1e14))
def test_a_short_count_is_short_and_right(value: float) -> None:
    text = fmt.short_count(value)
    assert len(text) <= 4
    scale = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    shown = float(text[:-1]) * scale[text[-1]] if text[-1] in scale else text
    if isinstance(shown, float):
        assert shown == pytest.approx(value, rel=0.051)


@given(st.floats(min_value=0, max_value=1e8))
def test_an_age_is_short(seconds: float) -> None:
    assert len(fmt.age(seconds)) <= 6
    if seconds < 99 * 86400:
        assert len(fmt.age(seconds)) <= 4


@given(st.floats(min_value=0, max_value=1e8))
def test_a_duration_says_what_it_was_given(seconds: float) -> None:
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    parts = fmt.duration(seconds).replace(",", "").split()
    said = sum(int(n) * unit[u] for n, u in zip(parts[::2], parts[1::2], strict=True))
    resolution = 1 if seconds < 3600 else 60 if seconds < 86400 else 3600
    assert abs(said - seconds) <= resolution


@given(st.floats(min_value=0, max_value=1))
def test_only_nothing_is_0_and_only_the_whole_is_100_percent(ratio: float) -> None:
    text = fmt.percent(ratio)
    assert (text == "0 %") == (ratio == 0)
    assert (text == "100 %") == (ratio == 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.31, "$0.31"),
        (3.42, "$3.42"),
        (0.454, "$0.454"),
        (1.45, "$1.45"),
        (0.0031, "$0.0031"),
        (1234.5, "$1,234.50"),
        (0.1, "$0.10"),
        (0.99999, "$1.00"),
        (0.00001, "<$0.0001"),
    ],
)
def test_dollars(value: float, text: str) -> None:
    assert fmt.dollars(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (412.6, "413"),
        (22.7, "22.7"),
        (18.16, "18.2"),
        (9.995, "10.0"),
        (99.96, "100"),
        (1.67, "1.67"),
        (0.004, "<0.01"),
        (12345, "12,345"),
    ],
)
def test_rates(value: float, text: str) -> None:
    assert fmt.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0441, "44 ms"), (0.31, "0.31 s"), (4.1, "4.10 s"), (0.0996, "0.10 s")]
)
def test_latencies(value: float, text: str) -> None:
    assert fmt.latency(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(512, "512 B"), (98 * 2**20, "98 MiB"), (1.25 * 2**30, "1.2 GiB"), (61 * 2**30, "61 GiB")],
)
def test_sizes(value: float, text: str) -> None:
    assert fmt.size(value) == text


def test_a_clock_is_local_and_a_text_that_is_no_time_stays() -> None:
    assert fmt.clock("2026-11-29T14:07:31Z") == "14:07:31"
    assert fmt.clock("not yet") == "not yet"
    assert fmt.unix_seconds("not yet") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (3e-9, "<0.01"),
        (0.0123, "0.01"),
        (0.099, "0.10"),
        (0.346, "0.35"),
        (0.999, "1.0"),
        (1.234, "1.2"),
        (9.96, "10"),
        (41.7, "42"),
    ],
)
def test_two_significant_digits(value: float, text: str) -> None:
    assert fmt.two_digits(value) == text
