"""The console's memory: bounded, in order, and honest about gaps."""

from __future__ import annotations

from dataclasses import replace

from a40console.model.control import HistoryPoint
from a40console.model.event import Event
from a40console.model.figures import Missing, number
from a40console.tui.past import Past
from tests import make_snapshot as make


def test_memory_is_bounded_over_a_long_watch() -> None:
    past = Past()
    for second in range(5000):
        slots = (make.slot(session=f"s{second}", request_id=f"r{second}"),)
        past.observe(make.snapshot(at=make.at(5000 - second), slots=slots, sessions=()))
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


def test_only_events_that_explain_speed_are_marked_and_each_once() -> None:
    past = Past()
    past.mark(make.events())
    past.mark(make.events())
    assert [mark.label for mark in past.marks] == ["started", "spec on", "prefix lost"]
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
