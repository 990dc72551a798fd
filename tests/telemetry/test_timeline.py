"""Windows of single requests: edges, ends, first tokens, and sums."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.telemetry.timeline import Count, Timeline


def line(*samples: tuple[float, dict[str, float]]) -> Timeline:
    timeline = Timeline()
    for at_s, counts in samples:
        timeline.add(at_s, {key: Count(tokens) for key, tokens in counts.items()}, {})
    return timeline


def test_a_long_decode_counts_the_tokens_of_the_window() -> None:
    timeline = line(*((float(second), {"a": 100.0 * second}) for second in range(9)))
    share = timeline.share("a", first_token_at_s=-50.0)
    assert share is not None
    assert (share.tokens, share.window_s) == (500, 5)
    assert share.window_rate == share.decode_rate == 100


def test_a_young_decode_is_divided_by_its_decoding_seconds_without_the_first_token() -> None:
    timeline = line((0, {}), (1, {"a": 0}), (2, {"a": 0}), (3, {"a": 21}), (4, {"a": 41}))
    share = timeline.share("a", first_token_at_s=2.0)
    assert share is not None
    assert (share.decode_tokens, share.decode_s) == (40, 2)
    assert share.decode_rate == 20
    assert share.window_rate == pytest.approx(41 / 4)


def test_a_decode_whose_beginning_nobody_tells_counts_from_its_first_sample_with_tokens() -> None:
    timeline = line((0, {"a": 0}), (1, {"a": 7}), (2, {"a": 27}), (3, {"a": 47}))
    share = timeline.share("a", first_token_at_s=None)
    assert share is not None
    assert (share.decode_tokens, share.decode_s) == (40, 2)


def test_a_request_that_was_there_before_us_counts_from_our_first_sample() -> None:
    timeline = line((0, {"a": 5000}), (2, {"a": 5080}))
    share = timeline.share("a", first_token_at_s=None)
    assert share is not None
    assert (share.decode_rate, share.window_rate) == (40, 40)


def test_nothing_is_said_too_early() -> None:
    assert line((0, {"a": 5})).share("a", first_token_at_s=None) is None
    assert line((0, {}), (1, {})).share("a", first_token_at_s=None) is None
    share = line((0, {}), (1, {"a": 1})).share("a", first_token_at_s=0.95)
    assert share is not None
    assert share.decode_rate is None


def test_a_request_that_ended_stays_in_the_sum_until_it_left_the_window() -> None:
    timeline = line((0, {"a": 0}), (1, {"a": 100}))
    timeline.add(2, {}, {"a": Count(150)})
    assert timeline.total() == 150
    for second in range(3, 6):
        timeline.add(float(second), {}, {})
    assert timeline.total() == 150
    for second in range(6, 12):
        timeline.add(float(second), {}, {})
    assert timeline.total() == 0


def test_a_request_that_vanished_keeps_its_last_count() -> None:
    timeline = line((0, {"a": 0}), (1, {"a": 100}), (2, {}))
    assert timeline.total() == 100


def test_passes_are_counted_along_with_tokens() -> None:
    timeline = Timeline()
    for second in range(7):
        count = Count(18.0 * 5 * second, 5.0 * second)
        timeline.add(float(second), {"a": count}, {})
    share = timeline.share("a", first_token_at_s=-1.0)
    assert share is not None
    assert share.decode_passes == 25
    assert share.decode_tokens / share.decode_passes == 18


lives = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=15),
        st.lists(st.integers(min_value=0, max_value=50), min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=6,
)


@given(lives, st.lists(st.floats(min_value=0.05, max_value=3), min_size=30, max_size=30))
def test_shares_and_ended_requests_add_up_to_the_counter(
    requests: list[tuple[int, list[int]]], pauses: list[float]
) -> None:
    """Whatever begins, emits and ends when: over any window nothing is lost or counted twice."""
    timeline, at_s, counters = Timeline(), 0.0, []
    for step, pause_s in enumerate(pauses):
        at_s += pause_s
        live, ended, total = {}, {}, 0.0
        for number, (begins, emits) in enumerate(requests):
            done = sum(emits[: max(0, step - begins)])
            total += done
            if begins <= step < begins + len(emits):
                live[f"r{number}"] = Count(done)
            elif step == begins + len(emits):
                ended[f"r{number}"] = Count(done)
        timeline.add(at_s, live, ended)
        counters.append((at_s, total))
        span_s = timeline.span_s()
        if span_s <= 0:
            continue
        edge_s = at_s - span_s
        before = next(pair for pair in reversed(counters) if pair[0] <= edge_s + 1e-9)
        after = next(pair for pair in counters if pair[0] >= edge_s - 1e-9)
        share = (edge_s - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        counted = total - (before[1] + share * (after[1] - before[1]))
        assert timeline.total() == pytest.approx(counted, abs=1e-6)
        shares = [timeline.share(key, first_token_at_s=None) for key in live]
        assert sum(each.tokens for each in shares if each) <= timeline.total() + 1e-6
