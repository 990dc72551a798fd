"""The console's memory: bounded, in order, and honest about gaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.model.control import HistoryPoint
from a40console.model.event import Event
from a40console.model.figures import Missing, number
from a40console.tui.past import Past
from tests import make_snapshot as make


def test_memory_is_bounded_over_a_long_watch() -> None:
    past = Past()
    for second in range(5000):
        slots = (make.slot(session=f"s{second}", request_id=f"r{second}"),)
        past.observe(make.snapshot(at=make.at(5000 - second), slots=slots))
    assert len(past.speed) <= 1000
    assert len(past.tracks) <= 130
    assert all(len(track.points) <= 120 for track in past.tracks.values())


def test_the_services_history_comes_before_what_was_seen_here() -> None:
    past = Past()
    past.observe(make.snapshot())
    past.recall(make.history())
    times = [point.at_s for point in past.speed]
    assert times == sorted(times)
    assert len(times) == 901
    assert number(past.speed[-1].generation_tokens_per_s) == 509.0


def test_history_that_comes_twice_counts_once() -> None:
    past = Past()
    past.recall(make.history())
    past.recall(make.history())
    assert len(past.speed) == 900


def test_a_gap_stays_a_gap() -> None:
    past = Past()
    lost = Missing("restart")
    past.recall(
        [
            HistoryPoint(
                at_s=1.0,
                generation_tokens_per_s=lost,
                prefill_tokens_per_s=lost,
                running=0,
                waiting=0,
            )
        ]
    )
    assert past.speed[0].generation_tokens_per_s == lost


@pytest.mark.parametrize(("interval_s", "age_s", "known"), [(1, 4, 1), (1, 6, 0), (3, 8, 1)])
def test_a_rate_whose_source_fell_silent_is_a_gap(interval_s: int, age_s: int, known: int) -> None:
    past = Past()
    silent = make.snapshot(throughput=make.throughput(412.6, age_s=age_s))
    past.observe(replace(silent, interval_s=float(interval_s)))
    (point,) = past.speed
    rates = (point.generation_tokens_per_s, point.prefill_tokens_per_s)
    assert [isinstance(rate, Missing) for rate in rates] == [not known] * 2


def test_requests_of_one_session_have_each_a_spark_of_their_own() -> None:
    past = Past()
    fast = make.slot(request_id="a", window_tokens_per_s=400.0)
    slow = make.slot(request_id="b", window_tokens_per_s=20.0)
    past.observe(make.snapshot(slots=(fast, slow)))
    assert [[speed for _, speed in track.points] for track in past.tracks.values()] == [
        [400.0],
        [20.0],
    ]


def test_only_events_that_explain_speed_are_marked_and_each_once() -> None:
    past = Past()
    past.mark(make.events())
    past.mark(make.events())
    assert [mark.label for mark in past.marks] == ["serving", "adopted", "command failed"]
    past.mark([Event(9200, make.at(), "request.failed", "500", "error")])
    assert past.marks[-1].severity == "error"


def test_phases_begin_anew_with_another_start() -> None:
    past = Past()
    base = make.starting()
    past.observe(base)
    assert [phase.name for phase in past.phases] == ["load"]
    again = replace(base.engine, id="another", phase="download", phase_s=1.0)
    past.observe(replace(base, engine=again))
    assert [phase.name for phase in past.phases] == ["download"]
