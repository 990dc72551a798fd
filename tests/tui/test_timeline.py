"""Which part of time is looked at, what is fetched for it, and where its instants stand."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.control import History, HistoryPoint
from a40console.model.figures import Missing
from a40console.tui.bins import Bins
from a40console.tui.past import Past
from a40console.tui.time_axis import clock_span, labels, ticks
from a40console.tui.timeline import LIVE, PAGE_POINTS, SPANS_S, Page, Timeline, TimeView
from tests import make_snapshot as make

NOW_S = make.NOW.timestamp()
DAY = [(Page(86_400.0, int(NOW_S // 86_400) - 1), NOW_S // 86_400 * 86_400)]
DAY += [(Page(86_400.0, int(NOW_S // 86_400)), NOW_S)]
"""The pages of the last 24 hours, and how far they reach."""


def point(at_s: float, speed: float = 100.0) -> HistoryPoint:
    return HistoryPoint(
        at_s=at_s, generation_tokens_per_s=speed, prefill_tokens_per_s=0.0, running=1, waiting=0
    )


def answer(since_s: float, until_s: float, step_s: float) -> History:
    count = int((until_s - since_s) / step_s)
    return History(
        since_s=since_s,
        until_s=until_s,
        step_s=step_s,
        oldest_s=since_s,
        points=tuple(point(since_s + number * step_s) for number in range(count)),
        retention=(),
        trouble=None,
    )


def filled(
    timeline: Timeline,
    view: TimeView,
    known_from_s: float | None,
    *,
    step_s: float | None = None,
) -> int:
    """Answer every page that is asked for; how many those were."""
    for number in range(20):
        needed = timeline.needed(view, NOW_S, known_from_s)
        if needed is None:
            return number
        page, until_s = needed
        each_s = step_s or max(1.0, page.span_s / PAGE_POINTS)
        timeline.put(page, until_s, answer(page.since_s, until_s, each_s))
    raise AssertionError("it asks without end")


def test_the_span_goes_from_five_minutes_to_a_day_and_no_further() -> None:
    view = LIVE
    spans = [view.span_s]
    for _ in range(9):
        view = view.longer()
        spans.append(view.span_s)
    assert spans[0] == 900.0
    assert spans[-1] == 86_400.0
    for _ in range(9):
        view = view.shorter()
    assert view.span_s == 300.0
    assert view.live


def test_back_leaves_the_present_and_forward_returns_to_it() -> None:
    view = LIVE.back(NOW_S)
    assert not view.live
    assert view.window(NOW_S) == (NOW_S - 1050.0, NOW_S - 150.0)
    # Time that passes does not move what is looked at.
    assert view.window(NOW_S + 60) == view.window(NOW_S)
    assert view.forward(NOW_S).live
    assert view.back(NOW_S).forward(NOW_S) == view


def test_back_stops_at_the_oldest_reading() -> None:
    view = LIVE
    for _ in range(100):
        view = view.back(NOW_S, oldest_s=NOW_S - 2000)
    assert view.end_s == NOW_S - 2000 + 150
    assert LIVE.back(NOW_S, oldest_s=NOW_S - 10).window(NOW_S)[1] <= NOW_S


def test_an_instant_is_shown_with_a_little_of_what_came_after() -> None:
    view = LIVE.around(NOW_S - 5000, NOW_S)
    since_s, end_s = view.window(NOW_S)
    assert since_s < NOW_S - 5000 < end_s
    assert LIVE.around(NOW_S - 20, NOW_S).live


@pytest.mark.parametrize("span_s", SPANS_S)
def test_what_is_seen_here_is_not_fetched_and_what_is_fetched_not_again(span_s: float) -> None:
    timeline = Timeline()
    assert timeline.needed(TimeView(span_s), NOW_S, NOW_S - span_s) is None
    asked = filled(timeline, TimeView(span_s), NOW_S - 200)
    assert 1 <= asked <= 2
    assert timeline.needed(TimeView(span_s), NOW_S, NOW_S - 200) is None
    # When the console's own memory has moved on, the page of the present is fetched anew.
    later = timeline.needed(TimeView(span_s), NOW_S + span_s / 3, NOW_S + span_s / 4)
    assert later is not None


def test_pages_are_bounded() -> None:
    timeline = Timeline()
    for number in range(40):
        view = TimeView(900.0, NOW_S - 900.0 * number)
        filled(timeline, view, None)
        assert sum(1 for _ in timeline.points(view, NOW_S)) >= PAGE_POINTS - 2
    assert len(timeline._pages) <= 8


@pytest.mark.parametrize("span_s", SPANS_S)
@pytest.mark.parametrize("cells", [33, 80, 140])
def test_no_cell_of_a_whole_history_is_empty(span_s: float, cells: int) -> None:
    past = Past()
    past.now_s = NOW_S
    past.speed.extend(point(NOW_S - 200 + second) for second in range(200))
    view = TimeView(span_s)
    filled(past.timeline, view, past.known_from_s)
    values = past.series("generation_tokens_per_s", view, cells)
    assert len(values) == cells
    assert None not in values[1:]


def test_a_hole_in_the_history_stays_a_hole() -> None:
    past = Past()
    past.now_s = NOW_S
    past.recall([point(NOW_S - 900 + s) for s in range(900) if not 300 <= s < 420])
    values = past.series("generation_tokens_per_s", LIVE, 90)
    assert values.count(None) == pytest.approx(12, abs=1)


def test_a_new_second_moves_the_series_as_reading_it_all_anew_would() -> None:
    past, again = Past(), Past()
    for second in range(400):
        snapshot = make.snapshot(
            at=make.at(400 - second), throughput=make.throughput(float(second % 37))
        )
        past.observe(snapshot)
        again.observe(snapshot)
        kept = past.series("generation_tokens_per_s", LIVE, 60)
        again._bins_of = None
        assert kept == again.series("generation_tokens_per_s", LIVE, 60)


def test_a_frozen_memory_does_not_move() -> None:
    past = Past()
    past.observe(make.snapshot())
    still = past.frozen()
    before = still.series("generation_tokens_per_s", LIVE, 50)
    spark = still.tracks["req-7f3a-0127"].spark(still.now_s, 12)
    past.observe(replace(make.snapshot(slots=()), at=make.at(-30)))
    past.mark(make.events())
    assert still.now_s == NOW_S
    assert still.series("generation_tokens_per_s", LIVE, 50) == before
    assert still.tracks["req-7f3a-0127"].spark(still.now_s, 12) == spark
    assert not still.marks


def test_the_figures_of_an_instant_are_those_of_the_reading_before_it() -> None:
    past = Past()
    past.now_s = NOW_S
    past.recall(make.history())
    then = past.point_at(replace(LIVE, end_s=NOW_S - 100.5))
    assert then is not None
    assert then.at_s == NOW_S - 101
    assert past.point_at(replace(LIVE, end_s=NOW_S - 5000)) is None


@given(
    span_s=st.sampled_from(SPANS_S),
    end_s=st.floats(min_value=1.7e9, max_value=1.9e9),
    cells=st.integers(min_value=1, max_value=200),
)
def test_clock_times_stand_at_their_places(span_s: float, end_s: float, cells: int) -> None:
    marks = ticks(end_s - span_s, end_s, cells)
    places = [mark.cell for mark in marks]
    assert places == sorted(places)
    assert all(0 <= place < cells for place in places)
    written = labels(marks, cells)
    assert len(written) == cells
    assert written.split() == [mark.label for mark in marks] or cells < 12


def test_a_span_is_named_by_its_clock_times() -> None:
    assert clock_span(NOW_S - 900, NOW_S, NOW_S) == "13:52–14:07"
    assert clock_span(NOW_S - 300, NOW_S, NOW_S) == "14:02–14:07:31"
    assert clock_span(NOW_S - 900, NOW_S, NOW_S + 86_400) == "29 Nov 13:52–14:07"
    assert clock_span(NOW_S - 86_400, NOW_S - 60, NOW_S) == "28 Nov 14:07–14:06"


@given(
    st.lists(
        st.tuples(
            st.floats(min_value=0, max_value=100), st.none() | st.floats(min_value=0, max_value=9)
        ),
        max_size=60,
    )
)
def test_bins_hold_what_was_put_in(values: list[tuple[float, float | None]]) -> None:
    bins = Bins(10.0)
    for at_s, value in values:
        bins.add(at_s, value)
    highest = bins.values(105.0, 11, "highest")
    for at_s, value in values:
        top = highest[int(at_s // 10)]
        assert value is None or (top is not None and top >= value)
    means = bins.values(105.0, 11)
    assert [value is None for value in means] == [value is None for value in highest]


def test_bins_lie_on_a_fixed_grid() -> None:
    bins = Bins(10.0)
    for second in range(100):
        bins.add(float(second), float(second))
    assert bins.values(99.0, 4) == [64.5, 74.5, 84.5, 94.5]
    # A second later nothing moves but the last span.
    bins.add(100.0, 100.0)
    assert bins.values(100.0, 4) == [74.5, 84.5, 94.5, 100.0]


def test_the_highest_of_a_bin_keeps_bursts() -> None:
    bins = Bins(10.0)
    for second in range(100):
        bins.add(float(second), 1000.0 if second == 95 else 0.0)
    assert bins.values(99.0, 2, "highest") == [0.0, 1000.0]


def binned(*points: tuple[float, float | None], reach_s: float) -> list[float | None]:
    """Five cells of a second."""
    bins = Bins(1.0)
    for at_s, value in points:
        bins.add(at_s, value)
    return bins.bridged(4.5, 5, reach_s)


def test_only_cells_between_neighbours_are_bridged() -> None:
    assert binned((0.9, 1.0), (2.1, 3.0), reach_s=1.5) == [1.0, 2.0, 3.0, None, None]
    assert binned((0.1, 1.0), (2.9, 3.0), reach_s=1.5) == [1.0, None, 3.0, None, None]
    assert binned((0.9, 1.0), (1.5, None), (2.1, 3.0), reach_s=1.5) == [1.0, None, 3.0, None, None]
    assert binned((0.5, 1.0), (0.9, None), (2.1, 3.0), reach_s=1.5) == [1.0, None, 3.0, None, None]
    assert binned((1.0, 1.0), reach_s=9.0) == [None, 1.0, None, None, None]


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("cells", [193, 220, 283, 300])
def test_a_hole_of_one_point_in_a_day_is_no_speed(cells: int, recorded: bool) -> None:
    """Five minutes without a service: the history tells it as a gap, or has no point at all."""
    past, view = Past(), TimeView(86_400.0, NOW_S)
    past.now_s = NOW_S
    past.speed.extend(point(NOW_S - 400 + second) for second in range(400))
    filled(past.timeline, view, past.known_from_s, step_s=300.0)
    assert None not in past.series("generation_tokens_per_s", view, cells)[1:]
    width_s = 86_400 / cells
    times = [one.at_s for one in past.points(view)][30:-500]
    lost_s = next(
        b
        for a, b, c in zip(times, times[1:], times[2:], strict=False)
        if a // width_s < b // width_s < c // width_s
    )
    nothing = Missing("the service did not run")
    lost = (replace(point(lost_s), generation_tokens_per_s=nothing),) if recorded else ()
    for page, until_s in DAY:
        whole = answer(page.since_s, until_s, 300.0)
        kept = (lost if one.at_s == lost_s else (one,) for one in whole.points)
        past.timeline.put(page, until_s, replace(whole, points=tuple(chain(*kept))))
    values = past.series("generation_tokens_per_s", view, cells)
    at = int(lost_s // width_s - NOW_S // width_s) + cells - 1
    assert values[at] is None
    assert 1 <= values[1:].count(None) <= 3
    assert set(values[1 : at - 1]) == set(values[at + 2 :]) == {100.0}


def test_readings_that_came_between_two_drawings_all_count() -> None:
    past = Past()
    for second in range(60):
        past.observe(make.snapshot(at=make.at(100 - second)))
        if second % 3 == 0:
            past.series("generation_tokens_per_s", LIVE, 900)
    assert past.series("generation_tokens_per_s", LIVE, 900).count(None) == 840


def test_nothing_is_made_up_where_the_history_is_silent() -> None:
    past = Past()
    past.now_s = NOW_S
    lost = Missing("the service did not run")
    past.recall([replace(point(NOW_S - 5), generation_tokens_per_s=lost)])
    assert past.series("generation_tokens_per_s", LIVE, 40) == [None] * 40
