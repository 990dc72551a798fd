"""The gateway's counts along the engine's counter, where the engine lists no requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.request import GatewayRow, TokenMark
from a40console.telemetry.metering import Meter, above_noise, in_engine, tokens_at
from tests.telemetry.makers import gateway_row, steady


def streaming(name: str, characters: int, **others: object) -> GatewayRow:
    return gateway_row(name, first_token_at_s=0.0, characters=characters, **others)


def observe(
    meter: Meter,
    at_s: float,
    counter: float | None,
    *live: GatewayRow,
    running: float | None = None,
    finished: tuple[GatewayRow, ...] = (),
) -> None:
    meter.observe(at_s, counter, running=running, live=live, finished=finished)


def test_counts_between_marks() -> None:
    row = gateway_row(
        "r", method="usage", generated_tokens=30, marks=(TokenMark(10, 10), TokenMark(12, 30))
    )
    assert [tokens_at(row, at_s) for at_s in (9.0, 10.0, 11.0, 12.0, 99.0)] == [0, 10, 20, 30, 30]
    assert tokens_at(gateway_row("r", method="usage"), 5.0) == 0


def test_the_pool_is_shared_by_characters() -> None:
    meter = Meter()
    observe(meter, 1, 0, streaming("a", 0), streaming("b", 0))
    observe(meter, 2, 100, streaming("a", 30), streaming("b", 90))
    assert meter.assigned_tokens == {"a": 25, "b": 75}
    observe(meter, 3, 140, streaming("a", 60), streaming("b", 90))
    assert meter.assigned_tokens == {"a": 65, "b": 75}


def test_exact_rows_take_their_own_first() -> None:
    meter = Meter()
    for at_s in (10.0, 11.0, 12.0):
        exact = steady("exact", rate=50, since_s=5, now_s=at_s)
        rough = streaming("rough", int(100 * (at_s - 10)))
        observe(meter, at_s, 80 * (at_s - 10), exact, rough, running=2)
    assert meter.assigned_tokens["rough"] == pytest.approx(60, abs=2)
    assert meter.timeline.total() == pytest.approx(160, abs=2)


def test_beside_direct_traffic_a_row_gets_only_what_its_characters_explain() -> None:
    meter = Meter()
    done = streaming("done", 400, ended_at_s=2.5, generated_tokens=100)
    observe(meter, 1, 0, streaming("done", 0), running=1)
    observe(meter, 2, 50, streaming("done", 200), running=1)
    observe(meter, 3, 100, finished=(done,), running=0)
    assert meter.characters_per_token == pytest.approx(4)
    observe(meter, 4, 100, streaming("a", 0), running=2)
    observe(meter, 5, 300, streaming("a", 160), running=2)
    assert meter.assigned_tokens["a"] == pytest.approx(40)
    observe(meter, 6, 350, streaming("a", 320), running=1)  # alone: all of it
    assert meter.assigned_tokens["a"] == pytest.approx(90)


def test_before_anything_is_learnt_running_requests_share_alike() -> None:
    meter = Meter()
    observe(meter, 1, 0, streaming("a", 0), running=2)
    observe(meter, 2, 100, streaming("a", 10), running=2)
    assert meter.assigned_tokens == {"a": 50}


def test_the_final_usage_corrects_what_was_apportioned() -> None:
    meter = Meter()
    observe(meter, 1, 0, streaming("a", 0), streaming("b", 0))
    observe(meter, 2, 100, streaming("a", 50), streaming("b", 50))
    ended = streaming("a", 50, ended_at_s=2.5, generated_tokens=70, method="usage")
    observe(meter, 3, 140, streaming("b", 90), finished=(ended,))
    # a had 70 of the 140, not 50: b's 50 + 20 are what is left.
    assert meter.timeline.total() == pytest.approx(140)
    assert meter.assigned_tokens["b"] == pytest.approx(70)


def test_a_request_that_does_not_stream_is_not_direct_traffic() -> None:
    meter = Meter()
    silent = gateway_row("silent")
    observe(meter, 1, 0, silent, running=1)
    observe(meter, 2, 60, silent, running=1)
    assert meter.assigned_tokens == {"silent": 60}
    meter = Meter()
    observe(meter, 1, 0, silent, running=2)
    observe(meter, 2, 60, silent, running=2)  # one of the two is not ours: whose are they?
    assert meter.assigned_tokens == {}


def test_chunks_that_come_late_are_no_loss() -> None:
    """The engine counted 10 tokens that reach the gateway a reading later."""
    meter = Meter()
    rough = streaming("rough", 0)
    exact = gateway_row("e", method="usage", generated_tokens=0, marks=(TokenMark(0, 0),))
    observe(meter, 1, 0, exact, rough)
    late = gateway_row("e", method="usage", generated_tokens=40, marks=(TokenMark(2, 40),))
    observe(meter, 2, 30, late, streaming("rough", 5))
    assert meter.assigned_tokens.get("rough", 0) == 0
    more = gateway_row("e", method="usage", generated_tokens=40, marks=(TokenMark(2, 40),))
    observe(meter, 3, 50, more, streaming("rough", 10))
    assert meter.assigned_tokens["rough"] == pytest.approx(10)


def test_without_a_counter_characters_speak_once_they_are_learnt() -> None:
    meter = Meter()
    observe(meter, 1, None, streaming("a", 0))
    observe(meter, 2, None, streaming("a", 100))
    assert meter.assigned_tokens.get("a", 0) == 0
    ended = streaming("a", 100, ended_at_s=2.5, generated_tokens=25, method="usage")
    observe(meter, 3, None, finished=(ended,))
    observe(meter, 4, None, streaming("b", 0))
    observe(meter, 5, None, streaming("b", 80))
    assert meter.assigned_tokens["b"] == pytest.approx(20)


def test_instants_are_taken_once() -> None:
    meter = Meter()
    observe(meter, 1, 0, streaming("a", 0))
    observe(meter, 2, 10, streaming("a", 10))
    observe(meter, 2, 10, streaming("a", 99))
    assert meter.assigned_tokens == {"a": 10}


def test_who_is_in_the_engine() -> None:
    assert not in_engine(gateway_row("r", sent_at_s=None), 5)
    assert not in_engine(gateway_row("r", sent_at_s=6.0), 5)
    assert in_engine(gateway_row("r", sent_at_s=4.0), 5)
    assert not in_engine(gateway_row("r", sent_at_s=4.0, ended_at_s=4.5), 5)


def test_noise_is_a_tenth_or_two_tokens_a_second() -> None:
    assert not above_noise(1.9, 5)
    assert not above_noise(9, 100)
    assert above_noise(11, 100)


steps = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=200),
        st.integers(min_value=0, max_value=300),
        st.integers(min_value=0, max_value=300),
        st.sampled_from([None, 1.0, 2.0, 5.0]),
    ),
    min_size=1,
    max_size=30,
)


@given(steps)
def test_never_more_is_shared_out_than_the_engine_counted(
    moves: list[tuple[int, int, int, float | None]],
) -> None:
    meter, counter, first, second = Meter(), 0, 0, 0
    observe(meter, 0, 0, streaming("a", 0), streaming("b", 0))
    for step, (tokens, more, other, running) in enumerate(moves, start=1):
        counter, first, second = counter + tokens, first + more, second + other
        before = dict(meter.assigned_tokens)
        rows = streaming("a", first), streaming("b", second)
        observe(meter, step, counter, *rows, running=running)
        after = meter.assigned_tokens
        assert sum(after.values()) <= counter + 1e-6
        assert all(after[key] >= before[key] - 1e-9 for key in before)
