"""How fast and how long: over the last seconds, and only what is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.transfer import TransferRate
from a40console.model.figures import Estimated, Missing, number


def test_the_rate_is_that_of_the_last_seconds() -> None:
    rate = TransferRate(window_s=4)
    for second in range(10):
        rate.read(float(second), 100 * second, 10_000)
    for second in range(10, 20):
        moment = rate.read(float(second), 900 + 10 * (second - 9), 10_000)
    assert moment.bytes_per_s == pytest.approx(10)
    assert isinstance(moment.eta_s, Estimated), "a guess says so"
    assert moment.eta_s.value == pytest.approx((10_000 - 1000) / 10)


def test_what_is_not_known_is_missing() -> None:
    rate = TransferRate()
    first = rate.read(0.0, 10, 100)
    assert first.bytes_per_s == Missing("first reading")
    assert first.eta_s == Missing("first reading")
    stalled = rate.read(1.0, 10, 100)
    assert stalled.bytes_per_s == 0
    assert stalled.eta_s == Missing("nothing comes")
    assert isinstance(rate.read(2.0, 20, Missing("?")).eta_s, Missing)
    assert rate.read(3.0, 100, 100).eta_s == 0


def test_a_new_beginning_has_no_negative_rate() -> None:
    rate = TransferRate()
    rate.read(0.0, 1000, 2000)
    assert rate.read(1.0, 5, 2000).bytes_per_s == Missing("first reading")


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 10**9)), min_size=1, max_size=40))
def test_no_rate_is_ever_negative(steps: list[tuple[float, int]]) -> None:
    rate, now_s = TransferRate(), 0.0
    for pause_s, done_bytes in steps:
        now_s += pause_s
        moment = rate.read(now_s, done_bytes, 10**9)
        if isinstance(moment.bytes_per_s, float):
            assert moment.bytes_per_s >= 0
        if (left_s := number(moment.eta_s)) is not None:
            assert left_s >= 0
