"""An operator's pattern: what `re` finds, and never longer than it may take."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.pattern import Allowance, Pattern, PatternError, SlowPatternError

AMPLE = Allowance(line_s=10, pass_s=100)


@given(
    st.sampled_from(["error|warn", r"^\(\w+ pid=\d+\)", "kv.*cache", "É", "[^a-z]{3}", r"a\b"]),
    st.text(max_size=40) | st.sampled_from(["(Core pid=7) KV  cache", "an ERROR", "é", "aé a"]),
)
def test_it_finds_what_the_standard_library_finds(text: str, line: str) -> None:
    expected = re.search(text, line, re.IGNORECASE) is not None
    assert Pattern(text, AMPLE).matches(line) is expected


@pytest.mark.parametrize(
    "text", ["(", "[", "a{2,1}", "*", "(" * 400 + ")" * 401, "x|" * 20_000, "a{1,99999999999999}"]
)
def test_what_is_no_pattern_is_said_at_once(text: str) -> None:
    with pytest.raises(PatternError, match=r"\w"):
        Pattern(text, AMPLE)


def test_one_hostile_line_ends_it() -> None:
    pattern = Pattern("(a+)+$", Allowance(line_s=0.02, pass_s=100))
    with pytest.raises(SlowPatternError, match=r"A line of 4,001 characters took .* 0\.02 s"):
        pattern.matches("a" * 4000 + "!")


def test_many_lines_that_each_cost_a_little_end_it_until_a_new_pass_begins() -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.25  # each reading: a line takes as long
        return now[0]

    pattern = Pattern("x", Allowance(line_s=1, pass_s=1), clock=clock)
    for _ in range(2):
        assert all(pattern.matches("x") for _ in range(5))
        with pytest.raises(SlowPatternError, match="together took more than 1 s"):
            pattern.matches("x")
        pattern.begin_pass()
