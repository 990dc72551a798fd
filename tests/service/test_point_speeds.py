"""Stored points: the tokens of their own second, whatever window a screen shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.figures import Missing, number
from a40console.model.history import SILENT
from a40console.model.snapshot import Throughput
from a40console.service.history import Question
from a40console.service.journal import Journal
from a40console.service.point_speeds import PointSpeeds
from a40console.service.tally import Counters, Reading
from tests.service.past import chronicle
from tests.service.test_chronicle import Wall
from tests.service.test_history import NOON_S, point

NO_ENGINE = Missing("no engine runs")


def since_before(tokens: float, window_s: float) -> Throughput:
    rate = tokens / window_s if window_s else Missing("one reading so far")
    return Throughput(
        window_s=window_s,
        source="vllm.metrics",
        age_s=0.1,
        generation_tokens_per_s=rate,
        prefill_tokens_per_s=2.0,
        passes_per_s=3.0,
        sequences_per_pass=1.0,
    )


async def test_fifty_tokens_after_an_idle_spell_are_fifty_tokens(tmp_path: Path) -> None:
    wall = Wall()
    kept = chronicle(tmp_path, Journal(tmp_path / "events.jsonl"), wall=wall)
    live = [0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 10.0, 10.0, 0.0]  # what a screen shows: over 5 s
    for second, shown in enumerate(live):
        wall.at_s = NOON_S + second + 0.2
        counters = Counters(at_s=wall.at_s, run="run-1", generated_tokens=50.0 * (second >= 3))
        reading = Reading(
            counters=counters,
            counters_reset_s=None,
            run_age_s=60.0,
            elapsed_s=1.0,
            usd_per_hour=None,
            busy=second == 3,
        )
        kept.add(point(wall.at_s, shown), reading, since_before(50.0 * (second == 3), 1.0))
    asked = Question(since_s=0.0, until_s=None, points=100, step_s=0.0)
    points = (await kept.history(asked)).points
    assert [one.generation_tokens_per_s for one in points] == [0, 0, 0, 50.0, 0, 0, 0, 0, 0]
    assert max(number(one.generation_peak_tokens_per_s) or 0 for one in points) == 50.0
    assert points[0].prefill_tokens_per_s == 2.0
    coarse = (await kept.history(replace(asked, step_s=10.0))).points
    assert sum(number(one.generation_tokens_per_s) or 0 for one in coarse) == pytest.approx(50 / 9)


def test_a_point_whose_counters_are_read_late_shares_what_the_next_reading_adds() -> None:
    speeds = PointSpeeds()
    assert len(speeds.settle(point(1, 7.0), since_before(30, 1.0))) == 1
    assert speeds.settle(point(2, 7.0), since_before(0, 0.0)) == []
    first, second = speeds.settle(point(3, 7.0), since_before(80, 2.0))
    assert (first.at_s, first.generation_tokens_per_s) == (2, 40.0)
    assert (second.at_s, second.generation_tokens_per_s) == (3, 40.0)


def test_what_is_never_read_is_a_gap() -> None:
    speeds = PointSpeeds()
    held = [speeds.settle(point(n, 7.0), since_before(0, 0.0)) for n in range(1, 6)]
    assert held == [[]] * 5
    rest = speeds.settle(point(6, NO_ENGINE), None)
    assert [one.generation_tokens_per_s for one in rest] == [SILENT] * 5 + [NO_ENGINE]
    assert [one.known_ratio for one in rest[:5]] == [0.0] * 5


def test_readings_that_come_faster_than_counters_are_held_until_these_are_read() -> None:
    speeds = PointSpeeds()
    held = [speeds.settle(point(n / 20, 7.0), since_before(0, 0.0)) for n in range(1, 20)]
    assert held == [[]] * 19
    settled = speeds.settle(point(1, 7.0), since_before(30, 1.0))
    assert [one.generation_tokens_per_s for one in settled] == [30.0] * 20


def test_counters_that_began_again_are_no_speed() -> None:
    speeds = PointSpeeds()
    again = Missing("the counters began again: one reading so far")
    [settled] = speeds.settle(
        point(1, 7.0), replace(since_before(1, 1.0), generation_tokens_per_s=again)
    )
    assert settled.generation_tokens_per_s == again
    assert settled.known_ratio == 0.0


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 12)), max_size=12))
def test_points_and_gaps_add_up_to_the_counter(readings: list[tuple[int, int]]) -> None:
    """Each second some tokens come; a reading is some seconds late, or so late that it is a gap."""
    speeds, total, stored, in_gaps = PointSpeeds(), 0.0, 0.0, 0.0
    for a_second, seconds in readings:
        tokens, lost_s = a_second * seconds, 0
        for age_s in range(1, seconds + 1):
            read = age_s == seconds
            now = since_before(tokens, float(seconds)) if read else since_before(0, 0.0)
            shown = 1.0 if read or age_s <= FRESH_S else SILENT
            ready = speeds.settle(point(age_s, shown), now)
            lost_s += sum(one.generation_tokens_per_s == SILENT for one in ready)
            stored += sum(number(one.generation_tokens_per_s) or 0.0 for one in ready)
        assert lost_s == (seconds - 1 if seconds > FRESH_S + 1 else 0)
        total, in_gaps = total + tokens, in_gaps + a_second * lost_s
    assert stored + in_gaps == pytest.approx(total)


FRESH_S = 5
