"""Rates of samples that are known, and prompts of which no two begin alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.client import STOPPED
from a40console.experiments.prompts import code_edit, filler, looped_share, module, nonce, prose
from a40console.experiments.rates import failures, sustained_tokens_per_s, whole_tokens_per_s
from a40console.model.figures import Missing, number
from a40console.model.run_record import NO_USAGE, Sample


def sample(index: int, sent_s: float, gaps: int, gap_s: float, *, tokens: int = 0) -> Sample:
    return Sample(
        arm="a",
        repeat=0,
        index=index,
        warm_up=False,
        due_s=sent_s,
        sent_s=sent_s,
        ttft_s=gap_s,
        total_s=gap_s * (gaps + 1),
        gaps_s=(gap_s,) * gaps,
        generated_tokens=tokens or gaps + 1,
    )


@given(st.integers(1, 8), st.integers(1, 4), st.integers(3, 40), st.floats(0.002, 0.2))
def test_even_streams_have_the_rate_of_one_times_their_number(
    streams: int, rounds: int, gaps: int, gap_s: float
) -> None:
    samples = [
        sample(turn * streams + stream, turn * gap_s * (gaps + 1), gaps, gap_s)
        for turn in range(rounds)
        for stream in range(streams)
    ]
    found = number(sustained_tokens_per_s(samples, streams))
    assert found == pytest.approx(streams / gap_s, rel=0.51 / (gaps * rounds) + 1e-6)
    assert number(whole_tokens_per_s(samples)) == pytest.approx(streams / gap_s, rel=1e-6)


def test_a_straggler_lowers_the_whole_and_not_the_sustained_rate() -> None:
    quick, slow = sample(0, 0.0, 99, 0.01), sample(1, 0.0, 99, 0.02)
    assert number(sustained_tokens_per_s([quick, slow], 2)) == pytest.approx(150, rel=0.02)
    assert number(whole_tokens_per_s([quick, slow])) == pytest.approx(100, rel=0.02)


def test_tokens_come_from_usage_and_not_from_pieces() -> None:
    in_fours = sample(0, 0.0, 24, 0.04, tokens=100)
    assert number(sustained_tokens_per_s([in_fours], 1)) == pytest.approx(100)


def test_one_failure_or_no_usage_leaves_no_rate() -> None:
    good = sample(0, 0.0, 9, 0.1)
    bad = replace(sample(1, 0.0, 0, 0.1), error="HTTP 500")
    assert sustained_tokens_per_s([good, bad], 2) == Missing("1 of 2 requests failed: HTTP 500")
    untold = replace(good, generated_tokens=NO_USAGE)
    assert sustained_tokens_per_s([untold], 1) == NO_USAGE
    stopped = replace(bad, error=STOPPED)
    assert sustained_tokens_per_s([good, stopped], 2) == Missing(STOPPED)
    assert failures([good, stopped]) == ""


def test_an_answer_without_an_end_leaves_no_rate_and_no_zero() -> None:
    good, next_one = sample(0, 0.0, 9, 0.1), sample(1, 0.0, 9, 0.1)
    empty = Missing("the answer is empty")
    endless = replace(next_one, ttft_s=empty, total_s=empty, gaps_s=())
    told = Missing("1 of 2 answers cannot be timed: the answer is empty")
    assert sustained_tokens_per_s([good, endless], 2) == told
    assert whole_tokens_per_s([good, endless]) == told
    warm_up = replace(endless, warm_up=True)
    assert number(whole_tokens_per_s([good, warm_up])) == pytest.approx(10)
    at_once = replace(next_one, ttft_s=Missing("not streamed"))
    assert number(whole_tokens_per_s([good, at_once])) == pytest.approx(20)
    assert isinstance(sustained_tokens_per_s([good, at_once], 2), Missing)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 200))
def test_prompts_are_repeatable_and_begin_apart(first: int, second: int, words: int) -> None:
    assert filler(words, first) == filler(words, first)
    assert len(filler(words, first).split()) == words
    marks = nonce(first, "arm"), nonce(second, "arm")
    assert (marks[0] == marks[1]) == (first == second)
    assert prose(marks[0], 1, words=words).startswith(f"[{marks[0]}]")


@given(st.integers(0, 1000), st.integers(16, 400))
def test_the_file_of_an_edit_is_python_and_longer_than_the_answer(seed: int, tokens: int) -> None:
    code = module(seed, characters=tokens * 5)
    compile(code, "module", "exec")
    assert len(code) >= tokens * 5
    assert len(code_edit("m", seed, output_tokens=tokens)) > tokens * 5


def test_a_text_that_goes_in_circles_is_told() -> None:
    assert looped_share("one two three four five six seven eight nine " * 9) > 0.8
    assert looped_share(" ".join(map(str, range(200)))) == 0
    assert looped_share("") == 0
