"""Rates and percentiles: what a counter that falls, a gap or a coarse bucket does to them."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Estimated, Missing, number
from a40console.telemetry.reading import Histogram
from a40console.telemetry.windows import (
    FINE_S,
    Change,
    CounterRing,
    percentiles,
    quantile,
    sample_percentiles,
    value_at,
)
from tests.telemetry.makers import reading, recorded


def ring_of(*points: tuple[float, float]) -> CounterRing:
    ring = CounterRing()
    for at_s, tokens in points:
        ring.add(reading(at_s, {"generated_tokens": tokens}))
    return ring


def test_a_rate_is_the_difference_over_the_window_interpolated_at_its_edge() -> None:
    ring = ring_of((0, 0), (2, 200), (4, 200), (6, 260))
    # The window begins at 1 s, between the first two readings: at 100 tokens.
    assert ring.rate("generated_tokens", 5.0) == pytest.approx((260 - 100) / 5)


def test_before_the_window_is_covered_the_rate_is_of_what_is_covered() -> None:
    ring = ring_of((0, 0), (2, 100))
    assert ring.rate("generated_tokens", 5.0) == pytest.approx(50)
    assert ring.covered_s(5.0) == 2


def test_one_reading_has_no_rate() -> None:
    assert ring_of((0, 5)).rate("generated_tokens") == Missing("one reading so far")
    assert CounterRing().rate("generated_tokens") == Missing("not read yet")


def test_a_counter_that_is_not_exposed_is_missing_by_name() -> None:
    assert ring_of((0, 0), (1, 1)).rate("passes") == Missing(
        "vllm:iteration_tokens_total_count is not exposed"
    )


def test_a_restart_is_a_gap_and_never_a_negative_rate() -> None:
    ring = ring_of((0, 900), (1, 1000))
    assert ring.add(reading(2, {"generated_tokens": 10}))
    assert ring.rate("generated_tokens") == Missing("the counters began again: one reading so far")
    assert ring.began_again_at_s == 2
    assert not ring.add(reading(3, {"generated_tokens": 60}))
    assert ring.rate("generated_tokens") == pytest.approx(50)


def test_another_process_is_a_restart_even_when_its_counters_are_higher() -> None:
    ring = CounterRing()
    ring.add(reading(0, {"generated_tokens": 5}, boot="a"))
    assert ring.add(reading(1, {"generated_tokens": 500}, boot="b"))
    assert isinstance(ring.rate("generated_tokens"), Missing)


def test_a_series_that_appears_with_its_first_sample_began_at_zero() -> None:
    ring = CounterRing()
    ring.add(recorded("vllm-0.33-rust-before", 0))
    ring.add(recorded("vllm-0.33-rust-during", 60))
    change = ring.change()
    assert isinstance(change, Change)
    assert change.delta("sequence_passes") == 967 + 17
    assert ring.rate("pass_samples", 60) == pytest.approx(967 / 60)


def test_a_value_that_was_no_number_before_is_no_zero() -> None:
    ring = CounterRing()
    ring.add(reading(0, {}, unreadable=frozenset({"hit_tokens"})))
    ring.add(reading(1, {"hit_tokens": 5000.0}))
    change = ring.change()
    assert isinstance(change, Change)
    assert change.delta("hit_tokens") == Missing("was not readable before")


steps = st.lists(
    st.tuples(
        st.floats(min_value=0.05, max_value=4, allow_nan=False),
        st.integers(min_value=0, max_value=500),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


@given(steps)
def test_no_sequence_of_counts_and_restarts_gives_a_negative_rate(
    moves: list[tuple[float, int, bool]],
) -> None:
    ring, at_s, tokens = CounterRing(), 0.0, 0.0
    for pause_s, more, restart in moves:
        at_s += pause_s
        tokens = float(more) if restart else tokens + more
        ring.add(reading(at_s, {"generated_tokens": tokens}))
        for window_s in (1.0, 5.0, 60.0):
            rate = number(ring.rate("generated_tokens", window_s))
            assert rate is None or rate >= 0


@given(steps, st.floats(min_value=0.5, max_value=50))
def test_the_windows_of_a_run_add_up_to_its_total(
    moves: list[tuple[float, int, bool]], window_s: float
) -> None:
    """Rate × window is exactly what the counter moved in it, by the readings that are kept."""
    ring, points, at_s, tokens = CounterRing(horizon_s=1000), [(0.0, 0.0)], 0.0, 0.0
    ring.add(reading(0.0, {"generated_tokens": 0.0}))
    for pause_s, more, _ in moves:
        at_s, tokens = at_s + pause_s, tokens + more
        points.append((at_s, tokens))
        ring.add(reading(at_s, {"generated_tokens": tokens}))
    rate = number(ring.rate("generated_tokens", window_s))
    assert rate is not None
    covered_s = ring.covered_s(window_s)
    kept = [point for point in points if point[0] in {each.at_s for each in ring}]
    assert [point for point in points if point[0] > at_s - FINE_S] == [
        point for point in kept if point[0] > at_s - FINE_S
    ], "only what is old is thinned out"
    moved = tokens - value_at(kept, at_s - covered_s)
    assert rate * covered_s == pytest.approx(moved, abs=1e-6)


def test_the_ring_forgets_but_keeps_the_edge() -> None:
    ring = ring_of(*((second, 10 * second) for second in range(500)))
    change = ring.change(60)
    assert isinstance(change, Change)
    assert change.span_s == 60
    assert change.delta("generated_tokens") == 600


def histogram(*counts: float, total: float | None = None) -> Histogram:
    return Histogram((0.1, 0.2, 0.5, inf), counts, total)


def test_percentiles_are_estimates_within_their_bucket() -> None:
    shown = percentiles(histogram(10, 30, 40, 40, total=6.0))
    assert not isinstance(shown, Missing)
    assert isinstance(shown.p50, Estimated)
    assert number(shown.p50) == pytest.approx(0.15)
    assert number(shown.p95) == pytest.approx(0.2 + 0.3 * 8 / 10)
    assert (shown.count, shown.origin) == (40, "engine")


def test_few_samples_have_no_95th_percentile() -> None:
    shown = percentiles(histogram(5, 5, 5, 5, total=0.25))
    assert not isinstance(shown, Missing)
    assert shown.p95 == Missing("5 samples")
    assert percentiles(histogram(0, 0, 0, 0)) == Missing("no sample in the window")


def test_a_quantile_beyond_the_last_bound_is_above_it_and_no_number() -> None:
    shown = percentiles(histogram(0, 0, 10, 40, total=900.0))
    assert not isinstance(shown, Missing)
    assert shown.p95 == Missing("> 0.5 s")


def test_a_coarse_first_bucket_does_not_invent_queueing() -> None:
    """vLLM's queue times begin at 0.3 s: nine samples of 50 µs are not a median of 150 ms."""
    change = Change(recorded("vllm-0.32-ngram-before", 0), recorded("vllm-0.32-ngram-during", 60))
    shown = percentiles(change.histogram("queue_s"))
    assert not isinstance(shown, Missing)
    assert shown.count == 9
    assert number(shown.p50) == pytest.approx(2 * 0.00046571299981224 / 9)


def test_percentiles_of_a_window_see_only_its_samples() -> None:
    change = Change(recorded("vllm-0.32-ngram-during", 0), recorded("vllm-0.32-ngram-after", 60))
    shown = percentiles(change.histogram("pass_s"))
    assert not isinstance(shown, Missing)
    assert shown.count == 1747 - 918


@given(st.lists(st.floats(min_value=0, max_value=100), min_size=1, max_size=200))
def test_an_interpolated_quantile_lies_within_the_bucket_of_the_true_one(
    samples: list[float],
) -> None:
    bounds = (0.01, 0.1, 1.0, 10.0, 1000.0, inf)
    counts = tuple(float(sum(sample <= bound for sample in samples)) for bound in bounds)
    shown = number(quantile(Histogram(bounds, counts, sum(samples)), 0.5))
    assert shown is not None
    ordered = sorted(samples)
    true = ordered[(len(ordered) - 1) // 2]
    upper = next(bound for bound in bounds if true <= bound)
    assert shown <= upper + 1e-9


def test_plain_samples() -> None:
    assert sample_percentiles([]) == (
        Missing("no sample in the window"),
        Missing("no sample in the window"),
    )
    assert sample_percentiles([0.3]) == (0.3, Missing("1 sample"))
    p50, p95 = sample_percentiles([value / 10 for value in range(21)])
    assert number(p50) == pytest.approx(1.0)
    assert number(p95) == pytest.approx(1.9)


def test_a_rate_is_over_the_time_in_which_its_counter_could_be_read() -> None:
    ring = CounterRing()
    for second in range(3):
        ring.add(reading(second, unreadable=frozenset({"generated_tokens"})))
    for second in range(3, 6):
        ring.add(reading(second, {"generated_tokens": 100.0 * second}))
    assert ring.rate("generated_tokens", 5.0) == pytest.approx(100)


def test_what_comes_of_a_rounded_figure_is_an_estimate() -> None:
    ring = CounterRing()
    for second in range(3):
        ring.add(
            reading(
                second,
                {"sequence_passes": 30.0 * second, "passes": 10.0 * second},
                estimated=frozenset({"sequence_passes"}),
            )
        )
    assert ring.rate("sequence_passes") == Estimated(30.0)
    assert ring.rate("passes") == 10.0
    change = ring.change()
    assert not isinstance(change, Missing)
    assert change.delta("sequence_passes") == Estimated(60.0)
