"""Instants: one text form, and no time for what is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a40console.model.instants import iso_utc, unix_s


def test_an_instant_is_written_in_utc_with_milliseconds() -> None:
    assert iso_utc(1_795_961_251.25) == "2026-11-29T14:07:31.250Z"


@given(st.integers(0, 4 * 10**12))
def test_what_is_written_is_read_again(milliseconds: int) -> None:
    at_s = unix_s(iso_utc(milliseconds / 1000))
    assert at_s is not None
    assert abs(at_s - milliseconds / 1000) < 0.0011


def test_a_text_that_is_no_instant_has_no_time() -> None:
    assert unix_s("") is None
    assert unix_s("yesterday") is None
