"""Numbers in sentences keep their significance and never round to a false zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.advisor.wording import brief, count, duration, gibibytes, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (3e-11, "<0.001"),
        (0.0344, "0.034"),
        (0.996, "1.0"),
        (1.2, "1.2"),
        (9.96, "10"),
        (412.6, "413"),
        (18990, "18,990"),
    ],
)
def test_a_number_is_brief(value: float, text: str) -> None:
    assert brief(value) == text


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_something_is_never_written_as_nothing(value: float) -> None:
    assert brief(value) not in {"0", "0.0", "0.00"}
    assert "e" not in brief(value)


def test_units_are_written_out() -> None:
    assert [count(1, "request"), count(2000, "request")] == ["1 request", "2,000 requests"]
    assert [count(n, "process", "processes") for n in (1, 2)] == ["1 process", "2 processes"]
    assert [percent(0.97), percent(0.999), percent(1.0)] == ["97 %", "<100 %", "100 %"]
    assert [duration(1.37), duration(5.0), duration(120), duration(190)] == [
        "1.4 s",
        "5 s",
        "2 m",
        "3 m 10 s",
    ]
    assert gibibytes(44_990_000_000) == "41.9 GiB"
