"""The console's memory: bounded, in order, and honest about gaps."""

from __future__ import annotations

import gc
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from a40console.model.control import HistoryPoint
from a40console.model.event import Event
from a40console.model.figures import Estimated, Missing, number
from a40console.tui.bins import Bins
from a40console.tui.past import Past
from a40console.tui.timeline import LIVE
from tests import make_snapshot as make


def test_memory_is_bounded_over_a_long_watch() -> None:
    past = Past()
    for second in range(5000):
        slots = (make.slot(session=f"s{second}", request_id=f"r{second}"),)
        past.observe(make.snapshot(at=make.at(5000 - second), slots=slots))
    assert len(past.speed) <= 1000
    assert len(past.tracks) <= 130


def test_quick_readings_do_not_push_the_chart_out_of_memory() -> None:
    past, began = Past(), make.NOW.timestamp()
    for index in range(5000):
        at = datetime.fromtimestamp(began + 0.05 * index, UTC).isoformat()
        past.observe(make.snapshot(at=at, interval_s=0.05, slots=(make.slot(request_id="a"),)))
    assert past.known_from_s == pytest.approx(began)
    assert len(past.speed) <= 501
    assert len(past.tracks["a"]) <= 501


def test_what_ended_keeps_no_spark() -> None:
    past = Past()
    past.observe(make.snapshot(slots=(make.slot(request_id="r1"),)))
    track = past.tracks["r1"]
    track.spark(past.now_s, 12)
    bins = sum(isinstance(held, Bins) for held in gc.get_referents(track))
    past.observe(make.snapshot(slots=(), recent=(make.recent(request_id="r1"),)))
    assert (bins, sum(isinstance(held, Bins) for held in gc.get_referents(track))) == (1, 0)


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
    speeds = {key: [speed for _, speed in past.tracks[key].speeds()] for key in ("a", "b")}
    assert speeds == {"a": [400.0], "b": [20.0]}


def test_only_events_that_explain_speed_are_marked_and_each_once() -> None:
    past = Past()
    past.mark(make.events())
    past.mark(make.events())
    labels = [mark.label for mark in past.marks]
    assert labels == ["serving", "service started", "adopted", "command failed"]
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


def seen(*phases: tuple[str, float]) -> Past:
    """A request that was seen in these phases at these ages, each a second apart at least."""
    past = Past()
    for phase, age_s in phases:
        row = make.slot(request_id="a", phase=phase, age_s=age_s)
        past.observe(make.snapshot(at=make.at(100 - age_s), slots=(row,), recent=()))
    return past


def test_the_time_that_a_request_waited_is_told_from_the_phases_that_were_seen() -> None:
    track = seen(("held", 0.5), ("queued", 1.5), ("queued", 4.5), ("decode", 5.5)).tracks["a"]
    assert isinstance(track.waited_s, Estimated)
    assert track.waited_s.value == pytest.approx(4.5)
    assert [(phase.name, round(phase.seconds, 1)) for phase in track.phases] == [
        ("held", 0.5),
        ("queued", 4.0),
        ("decode", 1.0),
    ]


def test_a_request_never_seen_waiting_waited_no_longer_than_its_first_token_took() -> None:
    track = seen(("prefill", 0.8), ("decode", 1.8)).tracks["a"]
    assert isinstance(track.waited_s, Missing)
    assert track.waited_at_most_s == 0.31


def test_a_request_older_than_the_console_has_no_queue_time() -> None:
    track = seen(("decode", 400.0), ("decode", 401.0)).tracks["a"]
    assert track.waited_s == Missing("it was not seen from its arrival on")
    assert track.waited_at_most_s is None


def test_a_long_request_is_thinned_out_and_keeps_its_ends() -> None:
    past = seen(*(("decode", float(second)) for second in range(3000)))
    track = past.tracks["a"]
    assert len(track) <= 601
    times = [at_s for at_s, _ in track.speeds()]
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(2999, abs=1)
    assert track.recent_peak == pytest.approx(412.6, abs=0.1)


def test_a_finished_request_keeps_what_was_seen_of_it() -> None:
    past = seen(("decode", 1.0), ("decode", 2.0))
    done = make.recent(request_id="a", ended_at=make.at(97))
    past.observe(make.snapshot(at=make.at(96), slots=(), recent=(done,)))
    track = past.tracks["a"]
    assert track.ended == done
    assert track.slot is not None
    assert track.slot.prompt_tokens == 31204
    past.now_s = make.NOW.timestamp()
    assert past.ended_within(LIVE) == [done]
    assert past.ended_within(replace(LIVE, end_s=past.now_s - 2000)) == []


def test_a_second_request_with_the_id_of_one_that_is_over_is_another() -> None:
    """A client chooses its ids: what one waited must not be told of the next."""
    past = Past()
    first = make.slot(request_id="again", phase="queued", age_s=1.0)
    past.observe(make.snapshot(at=make.at(300), slots=(first,)))
    past.observe(
        make.snapshot(at=make.at(299), slots=(), recent=(make.recent(request_id="again"),))
    )
    second = make.slot(request_id="again", phase="queued", age_s=0.5)
    past.observe(make.snapshot(at=make.at(100), slots=(second,)))
    assert past.tracks["again"].ended is None
    assert number(past.tracks["again"].waited_s) == pytest.approx(0.5, abs=0.01)


def test_older_events_that_are_read_later_take_their_place() -> None:
    past = Past()
    past.mark([Event(9200, make.at(10), "engine.serving", "serves")])
    past.mark(make.events())
    times = [mark.at_s for mark in past.marks]
    assert times == sorted(times)
    assert len(times) == 5
    assert past.oldest_event is not None
    assert past.oldest_event.id == 9120
