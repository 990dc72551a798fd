"""A simulated engine's speeds never set the scale of real ones, nor stand unlabelled anywhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Size

from a40console.model.control import HistoryPoint
from a40console.model.figures import Missing
from a40console.tui.engine_kinds import kinds, value_of
from a40console.tui.keymap import resolve
from a40console.tui.panels.event_strip import strip, strip_heading
from a40console.tui.panels.speed import compact_speed, peak_of, speed_chart, speed_heading
from a40console.tui.panels.trends import TRENDS
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from a40console.tui.timeline import LIVE, TimeView
from tests import make_snapshot as make
from tests.tui.drawing import text

NOW_S = make.NOW.timestamp()
SIMULATED_SPEED, REAL_SPEED = 575.0, 48.0
NO_ENGINE = Missing("no engine runs")


def point(age_s: int, *, simulated: bool, speed: float | None = None) -> HistoryPoint:
    base = make.history(1)[0]
    own = SIMULATED_SPEED if simulated else REAL_SPEED
    told = own if speed is None else speed
    return replace(
        base,
        at_s=NOW_S - age_s,
        generation_tokens_per_s=told,
        generation_peak_tokens_per_s=told,
        simulated=simulated,
        **{
            trend.figure: told
            for trend in TRENDS
            if trend.top is None and trend.figure != "generation_tokens_per_s"
        },
    )


def gone(age_s: int) -> HistoryPoint:
    return replace(
        point(age_s, simulated=False),
        generation_tokens_per_s=NO_ENGINE,
        generation_peak_tokens_per_s=NO_ENGINE,
    )


def history(*, first_simulated: bool, then: str) -> list[HistoryPoint]:
    """Ten minutes of one kind, then five of the other, of none, or of the same."""
    before = [point(age, simulated=first_simulated) for age in range(850, 300, -1)]
    after = {
        "other": lambda age: point(age, simulated=not first_simulated),
        "none": gone,
        "same": lambda age: point(age, simulated=first_simulated),
    }[then]
    return [*before, *map(after, range(300, 0, -1))]


def reading_of(points: list[HistoryPoint], *, simulated: bool, view: TimeView = LIVE) -> Reading:
    past = Past()
    past.recall(points)
    snapshot = make.snapshot(at=datetime.fromtimestamp(NOW_S, UTC).isoformat(), simulated=simulated)
    newest = points[-1].generation_tokens_per_s
    speed = replace(snapshot.throughput, generation_tokens_per_s=newest)
    past.observe(replace(snapshot, throughput=speed))
    return Reading(
        snapshot=snapshot,
        age_s=0.0,
        link=Link("live"),
        past=past,
        keymap=resolve({}),
        unread=0,
        view=view,
    )


CASES = [
    (True, "other", False, REAL_SPEED, "SIMULATED history not drawn"),
    (False, "other", True, SIMULATED_SPEED, "real history not drawn"),
    (True, "none", False, SIMULATED_SPEED, "SIMULATED"),
    (True, "same", True, SIMULATED_SPEED, ""),
    (False, "none", False, REAL_SPEED, ""),
    (False, "same", False, REAL_SPEED, ""),
]


@pytest.mark.parametrize(("first", "then", "now", "peak", "said"), CASES)
def test_the_scale_is_one_kinds_and_what_is_not_real_is_labelled(
    first: bool, then: str, now: bool, peak: float, said: str
) -> None:
    reading = reading_of(history(first_simulated=first, then=then), simulated=now)
    assert peak_of(reading, 100) == peak
    heading = text(speed_heading(reading, Size(160, 1)))
    assert f"peak {peak:.0f}" in heading
    assert said in heading
    assert ("SIMULATED" in heading) is ("SIMULATED" in said)
    other = SIMULATED_SPEED if peak == REAL_SPEED else REAL_SPEED
    assert f"{other:.0f}" not in text(speed_chart(reading, Size(160, 12)))
    for width in (80, 120):
        compact = text([compact_speed(reading, width)])
        assert f"peak {peak:.0f}" in compact
        assert said in compact
        assert ("SIMULATED" in compact) is ("SIMULATED" in said)
    if then == "other":
        for trend in TRENDS:
            assert other not in reading.past.series(trend.figure, LIVE, 850, "highest")


@pytest.mark.parametrize(("first", "then", "now", "peak", "said"), CASES)
def test_the_days_strip_keeps_the_kinds_apart_too(
    first: bool, then: str, now: bool, peak: float, said: str
) -> None:
    points = history(first_simulated=first, then=then)
    heading = text([strip_heading(points, (), 160)])
    assert f"peak {peak:.0f}" in heading
    label = said or ("SIMULATED" if now else "")
    assert label in heading
    assert ("SIMULATED" in heading) is (now or "SIMULATED" in said)
    assert strip(points, (), now_s=NOW_S, chosen_s=None, width=160, rows=3)


def test_a_span_of_the_past_is_of_the_kind_that_ran_at_its_end() -> None:
    points = history(first_simulated=True, then="other")
    reading = reading_of(points, simulated=False, view=TimeView(300.0, NOW_S - 400))
    assert peak_of(reading, 100) == SIMULATED_SPEED
    assert "SIMULATED" in text(speed_heading(reading, Size(160, 1)))


@given(st.lists(st.sampled_from(["real", "simulated", "none"]), max_size=30))
def test_of_any_history_only_the_newest_kind_is_drawn(history: list[str]) -> None:
    points = [
        gone(age) if kind == "none" else point(age, simulated=kind == "simulated")
        for age, kind in zip(range(len(history), 0, -1), history, strict=True)
    ]
    found = kinds(points)
    spoken = [kind for kind in history if kind != "none"]
    assert found.simulated is (bool(spoken) and spoken[-1] == "simulated")
    assert found.mixed is (len(set(spoken)) == 2)
    drawn = {
        value_of(each, "generation_tokens_per_s", simulated=found.simulated) for each in points
    }
    assert drawn - {None} <= {SIMULATED_SPEED if found.simulated else REAL_SPEED}
