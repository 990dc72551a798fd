"""The past in points: peaks stay, gaps stay, and nothing is there that was not read."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.model.control import History, HistoryPoint
from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.service.history import MOST_POINTS, UNSEEN, Question, Rings, answer, tiers
from a40console.service.series import NAMES, Reasons, pack, row_of, unpack

NOON_S = 1_795_953_600.0
GONE = Missing("the engine restarts")


def point(at_s: float, speed: Figure, *, waiting: Figure = 0) -> HistoryPoint:
    return HistoryPoint(
        at_s=at_s,
        generation_tokens_per_s=speed,
        generation_peak_tokens_per_s=speed,
        prefill_tokens_per_s=0.0,
        running=1,
        waiting=waiting,
        held=0,
    )


def filled(speeds: dict[float, Figure], interval_s: float = 1.0) -> Rings:
    """Rings that read each speed so many seconds after noon."""
    rings = Rings(interval_s)
    for after_s, speed in speeds.items():
        rings.add(point(NOON_S + after_s, speed))
    return rings


def asked(rings: Rings, now_s: float, **question: float) -> History:
    """What an operator is answered who asks at a time after noon."""
    given = {"since_s": 0.0, "until_s": None, "points": 900, "step_s": 0.0} | question
    return answer(
        Question(**given),  # type: ignore[arg-type]
        rings.kept(),
        rings.reasons,
        now_s=NOON_S + now_s,
        trouble=None,
    )


def speeds(history: History) -> list[Figure]:
    return [one.generation_tokens_per_s for one in history.points]


def test_seconds_as_they_were_read() -> None:
    rings = filled({0.1: 5.0, 1.1: 7.0, 2.1: Missing("no engine runs"), 3.1: Estimated(4.0)})
    history = asked(rings, 3.2)
    assert (history.step_s, history.oldest_s) == (1.0, NOON_S)
    assert speeds(history) == [5.0, 7.0, Missing("no engine runs"), Estimated(4.0)]
    assert [one.known_ratio for one in history.points] == [1.0, 1.0, 0.0, 1.0]


def test_only_what_is_newer_than_the_last_point() -> None:
    rings = filled({second + 0.1: float(second) for second in range(10)})
    first = asked(rings, 9.2, until_s=NOON_S + 5)
    more = asked(rings, 9.2, since_s=first.points[-1].at_s)
    assert [*speeds(first), *speeds(more)] == [float(second) for second in range(10)]
    assert speeds(asked(rings, 9.2, since_s=-3.0)) == [7.0, 8.0, 9.0]


def test_a_quarter_of_an_hour_fits_into_as_many_points_as_seconds() -> None:
    rings = filled({second + 0.3: 1.0 for second in range(2000)})
    history = asked(rings, 1999.6, since_s=-900.0, points=900)
    assert (history.step_s, len(history.points)) == (1.0, 900)
    assert asked(rings, 1999.6, since_s=-900.0, points=899).step_s == 2.0
    assert asked(rings, 1999.6, points=2000).step_s == 1.0
    assert asked(rings, 1999.6, points=1999).step_s == 2.0


def test_a_service_that_was_away_is_a_gap_with_its_reason() -> None:
    rings = filled({0.0: 5.0, 1.0: 5.0, 9.0: 6.0})
    history = asked(rings, 9.5)
    assert speeds(history) == [5.0, 5.0, *[Missing(UNSEEN)] * 7, 6.0]
    coarse = asked(rings, 9.5, step_s=5.0)
    assert [one.known_ratio for one in coarse.points] == [0.4, 0.2222]
    assert speeds(coarse) == [5.0, 6.0]
    within = asked(rings, 9.5, since_s=NOON_S + 2, until_s=NOON_S + 6)
    assert speeds(within) == [Missing(UNSEEN)] * 4


def test_a_timer_that_is_late_leaves_no_gap() -> None:
    rings = filled({0.999: 5.0, 2.001: 6.0, 3.002: 7.0, 4.003: 8.0})
    history = asked(rings, 4.1)
    assert speeds(history) == [5.0, 6.0, 7.0, 8.0]
    [whole] = asked(rings, 4.999, step_s=5.0).points
    assert whole.known_ratio == 1.0


def test_a_moments_peak_and_queue_are_seen_in_a_days_points() -> None:
    rings = Rings(1.0)
    for second in range(7200):
        busy = second == 3333
        speed = 900.0 if busy else 100.0
        rings.add(point(NOON_S + second, speed, waiting=40 if busy else 0))
    history = asked(rings, 7200, points=100)
    assert history.step_s == 120.0
    assert max(number(one.generation_peak_tokens_per_s) or 0 for one in history.points) == 900.0
    assert max(number(one.waiting) or 0 for one in history.points) == 40
    assert max(number(one.generation_tokens_per_s) or 0 for one in history.points) < 120


def test_a_restart_of_the_engine_is_a_gap_at_every_resolution() -> None:
    rings = Rings(1.0)
    for second in range(7200):
        rings.add(point(NOON_S + second, GONE if 3000 <= second < 3120 else 100.0))
    for points in (5000, 700, 121):
        history = asked(rings, 7200, points=points)
        held = [one for one in history.points if 3000 <= one.at_s - NOON_S < 3120]
        assert held
        assert all(one.generation_tokens_per_s == GONE for one in held)
        assert all(one.known_ratio == 0 for one in held)
    [hour] = [p for p in asked(rings, 7200, step_s=3600.0).points if p.at_s == NOON_S]
    assert hour.generation_tokens_per_s == pytest.approx(100.0)
    assert hour.known_ratio == pytest.approx(1 - 120 / 3600, abs=0.001)


def test_a_clock_that_is_set_back_loses_and_repeats_nothing() -> None:
    rings = Rings(1.0)
    for second in range(120):
        rings.add(point(NOON_S + second, 10.0))
    for second in range(60, 180):
        rings.add(point(NOON_S + second, 30.0))
    history = asked(rings, 179.5)
    stamps = [one.at_s for one in history.points]
    assert stamps == sorted(set(stamps)) == [NOON_S + second for second in range(180)]
    assert speeds(history)[30] == 10.0
    assert 10.0 <= (number(speeds(history)[90]) or 0) <= 30.0
    assert speeds(history)[150] == 30.0


def test_a_clock_that_was_wrong_once_blocks_nothing() -> None:
    rings = Rings(1.0)
    rings.add(point(NOON_S + 4e8, 10.0))
    for second in range(20):
        rings.add(point(NOON_S + second, 30.0))
    assert set(speeds(asked(rings, 19.5))) == {30.0}


def test_a_day_is_bounded_in_memory() -> None:
    rings = Rings(1.0)
    for second in range(26 * 3600):
        rings.add(point(NOON_S + second, float(second % 500)))
    assert len(rings.rows()) == sum(tier.rows for tier in tiers(1.0)) == 3600 + 2160 + 1440
    assert sum(len(data) for _, data in rings.rows()) < 2_000_000
    day = asked(rings, 26 * 3600, since_s=-86_400.0, points=MOST_POINTS)
    hour = asked(rings, 26 * 3600, since_s=-3500.0, points=MOST_POINTS)
    assert (day.step_s, hour.step_s) == (60.0, 1.0)
    assert len(day.points) == 1439, "the first would begin at the asked instant, not after it"
    assert len(hour.points) >= 3499
    assert [kept.step_s for kept in day.retention] == [1.0, 10.0, 60.0]
    old = asked(rings, 26 * 3600, since_s=NOON_S + 19 * 3600, until_s=NOON_S + 19 * 3600 + 600)
    assert old.step_s == 60.0, "seconds of that hour are gone: the minutes are what is kept"


def test_nothing_is_recorded_yet() -> None:
    history = asked(Rings(1.0), 5.0)
    assert history.points == ()
    assert history.oldest_s == Missing("nothing is recorded yet")


@pytest.mark.parametrize("interval_s", [0.05, 0.3, 1.0, 2.5, 7.0, 30.0, 60.0])
def test_any_interval_of_the_service(interval_s: float) -> None:
    rings = Rings(interval_s)
    for number_of in range(math.ceil(600 / interval_s)):
        rings.add(point(NOON_S + number_of * interval_s, 50.0))
    history = asked(rings, 600)
    assert set(speeds(history)) == {50.0}
    assert not [one for one in history.points if one.held == Missing(UNSEEN)]
    assert history.points[0].at_s == NOON_S
    assert history.points[-1].at_s >= NOON_S + 600 - 2 * max(60, interval_s)


def test_what_was_kept_comes_before_what_is_new() -> None:
    before = filled({float(second): 10.0 for second in range(125)})
    stored = [*before.closed]
    after = Rings(1.0)
    for second in range(130, 140):
        after.add(point(NOON_S + second, Missing("read anew")))
    after.restore(stored, before.reasons.texts)
    history = asked(after, 139.5)
    known = [one for one in history.points if one.generation_tokens_per_s == 10.0]
    assert len(known) == 124, "the last second was not over"
    assert speeds(history)[-1] == Missing("read anew")
    assert Missing(UNSEEN) in speeds(history)
    minutes = asked(after, 139.5, step_s=60.0)
    assert [number(speed) for speed in speeds(minutes)] == [10.0, 10.0, 10.0]
    assert minutes.points[2].known_ratio < 0.5


def test_reasons_are_bounded() -> None:
    reasons = Reasons()
    for number_of in range(10_000):
        reasons.code(f"reason {number_of}")
    assert len(reasons.texts) <= 200
    assert reasons.text(reasons.code("one more")) == "not known"


FIGURES = st.one_of(
    st.floats(0, 1e12),
    st.builds(Estimated, st.floats(0, 1e12)),
    st.builds(Missing, st.sampled_from(["a", "b", "not read yet"])),
)


@given(st.dictionaries(st.sampled_from(NAMES), FIGURES), st.floats(0, 4e9))
def test_a_row_gives_back_what_was_put_in(figures: dict[str, Figure], at_s: float) -> None:
    reasons = Reasons()
    missing = Missing("a")
    blank = HistoryPoint(
        at_s=at_s,
        generation_tokens_per_s=missing,
        prefill_tokens_per_s=missing,
        running=missing,
        waiting=missing,
    )
    made = replace(blank, **figures)  # type: ignore[arg-type]
    row = row_of(made, reasons)
    assert unpack(pack(row)) == row


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(st.floats(0.2, 40.0), st.one_of(st.none(), st.floats(0, 1000))),
        min_size=1,
        max_size=120,
    ),
    st.sampled_from([0.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0]),
    st.integers(1, 400),
)
def test_points_are_within_what_was_read_and_gaps_are_not_filled(
    steps: list[tuple[float, float | None]], step_s: float, most: int
) -> None:
    rings, readings, at_s = Rings(1.0), list[tuple[float, float | None]](), 0.0
    for pause_s, speed in steps:
        at_s += pause_s
        readings.append((NOON_S + at_s, speed))
        rings.add(point(NOON_S + at_s, GONE if speed is None else speed))
    history = asked(rings, at_s + 0.1, step_s=step_s, points=most)
    assert len(history.points) <= most
    assert history.step_s >= step_s
    for one in history.points:
        inside = [speed for when, speed in readings if one.at_s <= when < one.at_s + history.step_s]
        known = [speed for speed in inside if speed is not None]
        mean, peak = number(one.generation_tokens_per_s), number(one.generation_peak_tokens_per_s)
        if not known:
            assert mean is None, "nothing was read there"
            reason = GONE if inside else Missing(UNSEEN)
            assert one.generation_tokens_per_s == reason
            continue
        assert mean is not None
        assert min(known) <= mean <= max(known)
        assert peak == max(known)
    assert all(b.at_s > a.at_s for a, b in zip(history.points, history.points[1:], strict=False))
