"""What the panels say: within their width, aligned, and nothing made up."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Size

from a40console.model.engine import EngineState
from a40console.model.figures import Figure, Missing
from a40console.model.snapshot import DepthSpeed, SourceStatus
from a40console.tui.blank import blank_snapshot
from a40console.tui.ink import Line, Role, width_of
from a40console.tui.panels import (
    caches,
    compact,
    frame,
    gpus,
    latency,
    machine,
    panel_notes,
    speculation,
    trends,
)
from a40console.tui.panels.engine import engine_facts
from a40console.tui.panels.findings import first_finding
from a40console.tui.panels.recent_events import happened
from a40console.tui.panels.resting import resting
from a40console.tui.panels.slot_detail import request_detail
from a40console.tui.panels.speed import AXIS, cells_of, compact_speed, speed_chart, speed_heading
from a40console.tui.panels.verdict import verdict
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from tests import make_snapshot as make
from tests.draw_screens import STATES
from tests.tui.drawing import read, table, text
from tests.tui.fog import REASON, fogged

DRAWERS: dict[str, Callable[[Reading, Size], Sequence[Line]]] = {
    "verdict": verdict,
    "tabs": lambda reading, size: [
        frame.tabs("view.engine", reading, size.width, screen_width=size.width)
    ],
    "clock": lambda reading, size: [
        frame.clock("view.overview", reading, screen_width=size.width, follows_time=True)
    ],
    "hints": frame.hints,
    "speculation": speculation.speculation,
    "caches": caches.caches,
    "machine": machine.machine,
    "latencies": latency.latencies,
    "queue": latency.queue,
    "gpus": gpus.gpus,
    "trends": trends.trends,
    "load": trends.trend_chart("gpu_utilization_ratio", "cpu_used_vcpu"),
    "events": happened,
    "slot": lambda reading, size: request_detail(reading, "req-7f3a-0127", size.width),
    "compact": compact.compact,
    "chart": speed_chart,
    "chart heading": speed_heading,
    "finding": first_finding,
    "engine": engine_facts,
    "table": lambda reading, size: table(reading, size.width),
    "resting": lambda reading, size: resting(reading, size.width),
}
NOTES = (
    panel_notes.speed_notes,
    panel_notes.latency_notes,
    panel_notes.speculation_notes,
    panel_notes.cache_notes,
    panel_notes.machine_notes,
    panel_notes.gpu_notes,
    panel_notes.queue_notes,
)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", DRAWERS)
@pytest.mark.parametrize("size", [(80, 24), (100, 10), (120, 40), (200, 50)])
def test_no_panel_is_wider_than_its_room(state: str, name: str, size: tuple[int, int]) -> None:
    reading = read(STATES[state]())
    for entry in DRAWERS[name](reading, Size(*size)):
        assert width_of(entry) <= size[0], text([entry])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(min_value=0),
    chance=st.sampled_from([0.1, 0.5, 1.0]),
    size=st.sampled_from([(30, 8), (78, 24), (120, 40), (200, 50)]),
    state=st.sampled_from(sorted(STATES)),
)
def test_whatever_is_missing_every_panel_draws_and_shows_no_innards(
    seed: int, chance: float, size: tuple[int, int], state: str
) -> None:
    reading = read(fogged(STATES[state](), chance, seed))
    for name, draw in DRAWERS.items():
        drawn = text(draw(reading, Size(*size)))
        assert not re.search(r"Missing|Estimated|None|nan|inf\b", drawn), name
    for notes in NOTES:
        assert "Missing" not in notes(reading)


def test_what_is_not_known_is_never_shown_as_zero() -> None:
    reading = read(blank_snapshot("nothing came yet"))
    for name, draw in DRAWERS.items():
        if name in {"hints", "tabs", "chart", "chart heading", "clock", "queue"}:
            continue
        drawn = text(draw(reading, Size(120, 40)))
        drawn = re.sub(r"gate 0|0 held|restarts +0", "", drawn)
        assert not re.search(r"(?<![\d.,])0(?![\d.,])", drawn), f"{name}:\n{drawn}"


def test_each_dash_has_its_reason_in_the_notes() -> None:
    reading = read(fogged(make.snapshot(), 1.0, 1))
    assert all(REASON in notes(reading) for notes in NOTES)


def test_the_speculation_panel_says_how_much_is_accepted_and_judges_nothing() -> None:
    drawn = speculation.speculation(read(make.snapshot()), Size(70, 3))
    assert "on n-gram 24, by restart  212 drafts in 60 s" in text(drawn)
    assert "18.2 tok/pass" in text(drawn)
    assert text(drawn).count("51 %") == 1
    said = [span for entry in drawn for span in entry if "last position" in span.text]
    assert [span.role for span in said] == [Role.MUTED]
    assert "without, at this load: – never measured" in text(drawn)


def test_the_speculation_panel_says_what_was_measured_the_other_way_and_when() -> None:
    measured = (DepthSpeed(0, 207.0, 190.0), DepthSpeed(5, 150.0, 40.0), DepthSpeed(24, 44.8, 0.2))
    known = {"off_tokens_per_s_at_this_load": 207.0, "measured_at_this_load": measured}
    on = make.snapshot(speculation=make.speculation(**known))
    drawn = text(speculation.speculation(read(on), Size(70, 3)))
    assert "without, at this load: 207 tok/s, 3 m 10 s ago" in drawn
    off = make.snapshot(speculation=make.speculation(mode="off", **known))
    drawn = text(speculation.speculation(read(off), Size(70, 3)))
    assert "with 5, at this load: 150 tok/s, 40 s ago" in drawn


def test_speculation_that_is_off_says_how_it_is_turned_on() -> None:
    off = Missing("speculation is off")
    snapshot = make.snapshot(speculation=make.speculation(mode="off", started_with=off))
    drawn = text(speculation.speculation(read(snapshot), Size(70, 3)))
    assert "off (by restart)" in drawn


def test_only_an_engine_that_can_be_paused_has_a_line_for_it() -> None:
    silent = Missing("only our plugin tells whether vLLM is paused")
    vllm = make.snapshot(engine=make.engine(paused=silent))
    assert "paused" in text(engine_facts(read(vllm), Size(120, 40)))
    assert "paused" not in text(engine_facts(read(make.sparse()), Size(120, 40)))


def test_an_outlier_is_marked() -> None:
    drawn = text(latency.latencies(read(make.snapshot()), Size(70, 4)))
    assert "0.31 0.29 4.10! 0.33 0.30 s" in drawn


def test_a_block_that_lost_its_source_is_greyed_with_its_age() -> None:
    stale = make.snapshot(host=make.host(age_s=42.0))
    drawn = machine.machine(read(stale), Size(80, 4))
    assert "(42 s old)" in text(drawn)
    assert {span.role for span in drawn[1]} == {"muted"}


def test_every_instrument_that_lost_its_source_says_how_old_it_is() -> None:
    old = make.snapshot(
        throughput=make.throughput(509.0, age_s=42.0),
        requests=make.requests(age_s=42.0),
        prefix_cache=make.prefix_cache(age_s=42.0),
        kv_cache=make.kv_cache(age_s=42.0),
        speculation=make.speculation(age_s=42.0),
        host=make.host(age_s=42.0),
        gpus=(make.gpu(age_s=42.0),),
    )
    reading, size = read(old), Size(100, 8)
    for draw in (speculation.speculation, machine.machine, gpus.gpus, latency.queue):
        assert "(42 s old)" in text([draw(reading, size)[0]])
    for draw in (caches.caches, latency.latencies):
        assert text(draw(reading, size)).count("(42 s old)") == 2
    assert text(compact.compact(reading, Size(120, 7))).count("(42 s old)") == 5


def test_throttling_is_a_word_not_only_a_colour() -> None:
    hot = make.snapshot(gpus=(make.gpu(throttle_reasons=("thermal slowdown",)),))
    for width in (50, 60, 120):
        assert "▲ thermal slowdown" in text(gpus.gpus(read(hot), Size(width, 2)))
    assert "▲ thermal slowdown" in text(compact.compact(read(hot), Size(80, 7)))


def test_each_gpu_has_its_line() -> None:
    several = read(make.snapshot(gpus=make.several_gpus(4)))
    head, *rows = text(gpus.gpus(several, Size(62, 5))).split("\n")
    assert head.split() == ["GPU", "GiB", "use", "W", "°C", "MHz", "throttle", "4", "×", "A40"]
    assert [row.split()[0] for row in rows] == ["0", "1", "2", "3"]
    assert re.search(r"0 +41.9/45.0 +97 % +283/300 +67 +1,740  none", rows[0])
    assert "▲ thermal slowdown" in rows[3]
    assert len({row.index("/300") for row in rows}) == 1


def test_a_small_screen_tells_the_range_of_several_gpus() -> None:
    several = read(make.snapshot(gpus=make.several_gpus(4)))
    last = text(compact.compact(several, Size(100, 7))).split("\n")[-1]
    assert "39.4–41.9 of 4×45.0 GiB  ▲ thermal slowdown (3)  88–97 %  250–283 W" in last


@pytest.mark.parametrize(
    ("used", "quota", "said"),
    [
        (1.234, 6.0, "1.2 of 6.0 vCPU"),
        (0.0, 6.0, "  0 of 6.0 vCPU"),
        (0.000000003, 6.0, "<0.01 of 6.0 vCPU"),
        (0.042, 2.5, "0.04 of 2.5 vCPU"),
        (0.346, 2.5, "0.35 of 2.5 vCPU"),
        (41.7, 64.0, " 42 of 64.0 vCPU"),
        (Missing("one reading so far"), 6.0, "  – of 6.0 vCPU"),
        (1.2, Missing("no quota is set"), "1.2 of – vCPU"),
    ],
)
def test_cpu_has_two_digits_and_its_unit(used: Figure, quota: Figure, said: str) -> None:
    host = make.host(cpu_used_vcpu=used, cpu_quota_vcpu=quota)
    reading = read(make.snapshot(host=host))
    assert said in text(machine.machine(reading, Size(60, 2)))
    assert said in text(compact.compact(reading, Size(80, 7)))


def test_a_share_that_no_gpu_can_have_is_a_dash_with_its_reason() -> None:
    stale = read(make.snapshot(gpus=(make.gpu(utilization_ratio=371.0),)))
    for drawn in (gpus.gpus(stale, Size(62, 2)), compact.compact(stale, Size(80, 7))):
        assert "37,100" not in text(drawn)
        assert "–" in text(drawn)
    assert "the driver said 37,100 %, which no GPU can be" in panel_notes.gpu_notes(stale)


def test_a_driver_that_does_not_match_is_told_while_the_engine_is_shown() -> None:
    why = "the NVIDIA driver and its library do not match: restart the pod"
    reading = read(make.snapshot(gpus=Missing(why)))
    assert why in " ".join(text(gpus.gpus(reading, Size(62, 2))).split())
    assert why in panel_notes.gpu_notes(reading)
    assert "the NVIDIA driver and its library" in text(compact.compact(reading, Size(80, 7)))
    assert "509 tok/s" in text(verdict(reading, Size(80, 3)))


def test_a_gpu_that_is_no_longer_read_is_greyed_with_its_age() -> None:
    old = read(make.snapshot(gpus=(make.gpu(age_s=42.0),)))
    drawn = gpus.gpus(old, Size(80, 2))
    assert "(42 s old)" in text(drawn)
    assert {span.role for span in drawn[1]} == {"muted"}
    assert "(42 s old)" in text(compact.compact(old, Size(100, 7)))


def test_the_finding_names_the_key_that_mends_it() -> None:
    drawn = text(first_finding(read(make.orphaned()), Size(140, 1)))
    assert "✖ engine-orphaned  The engine is gone, but processes of it live on" in drawn
    assert "[K] clean up  [w] evidence" in drawn


def test_the_gravest_finding_comes_first() -> None:
    both = make.snapshot(findings=make.findings() + make.failed().findings)
    drawn = text(first_finding(read(both), Size(140, 1)))
    assert "✖ engine-failed" in drawn
    assert "+1 more" in drawn


def test_events_stand_on_the_time_axis_at_their_time() -> None:
    width = 100
    axis, times = text(speed_chart(read(make.snapshot()), Size(width, 8))).split("\n")[-2:]
    place = axis.index("·adopted") - AXIS
    seconds_ago = (1 - place / cells_of(width)) * 900
    assert seconds_ago == pytest.approx(655, abs=12)
    assert "▲command failed" in axis
    middle = times.index("14:00") + 2 - AXIS
    assert (1 - middle / cells_of(width)) * 900 == pytest.approx(451, abs=12)


def test_the_chart_is_an_area_whose_crest_stands_out() -> None:
    drawn = speed_chart(read(make.snapshot()), Size(100, 12))
    roles = {span.role for row in drawn[:-2] for span in row if "█" in span.text}
    assert {Role.SERIES, Role.RULE} <= roles
    assert "◂509" in text(drawn)


def test_zero_is_drawn_and_a_gap_is_not() -> None:
    past = Past()
    past.recall(make.history())
    past.now_s = make.NOW.timestamp()
    reading = replace(read(make.snapshot()), past=past)
    bottom = text(speed_chart(reading, Size(200, 12))).split("\n")[-3][AXIS:]
    second = cells_of(200) / 900
    assert bottom[int(520 * second)] == "▁"
    assert bottom[int(402 * second)] == " "


def test_further_figures_stand_on_the_charts_time_axis() -> None:
    rows = text(trends.trends(read(make.snapshot()), Size(100, 6))).split("\n")
    names = [row[:AXIS].strip() for row in rows]
    assert names == ["prefill", "running", "GPU use", "KV held", "queued", "CPU"]
    assert {len(row.rstrip()) > AXIS + cells_of(100) for row in rows} == {True}
    assert "↑4.0k" in rows[0]


def test_no_speed_at_all_says_so() -> None:
    reading = replace(read(make.snapshot()), past=Past())
    drawn = text(speed_chart(reading, Size(80, 8)))
    assert "– no speed was measured in 15 min" in drawn


def test_asked_and_in_force_are_listed_side_by_side() -> None:
    drawn = text(engine_facts(read(make.snapshot()), Size(120, 40)))
    assert re.search(r"max_num_batched_tokens +16,384 +2,048  log: chunked", drawn)
    assert re.search(r"async_scheduling +on +off", drawn)


def test_a_source_that_failed_shows_its_reason() -> None:
    why = "cpu.stat was not readable"
    lost = SourceStatus(name="cgroup", state="stale", age_s=12.0, reason=why)
    drawn = text(engine_facts(read(make.snapshot(sources=(lost,))), Size(120, 40)))
    assert re.search(r"▲ stale +cgroup +12 s old", drawn)
    assert why in drawn


def test_only_useful_keys_are_hinted() -> None:
    serving = text(frame.hints(read(make.snapshot()), Size(120, 1)))
    assert "S start" not in serving
    assert "X stop" in serving
    orphaned = text(frame.hints(read(make.orphaned()), Size(120, 1)))
    assert "K clean up" in orphaned
    assert "X stop" not in orphaned


def test_help_and_leave_are_hinted_whatever_the_width() -> None:
    for width in (30, 80, 200):
        assert "? help" in text(frame.hints(read(make.snapshot()), Size(width, 1)))
        assert "q leave" in text(frame.hints(read(make.snapshot()), Size(width, 1)))


def test_the_phases_of_a_start_are_remembered_while_it_is_watched() -> None:
    past = Past()
    base = make.starting()
    for phase, seconds in (("download", 12.0), ("load", 5.0), ("load", 42.0)):
        engine = replace(base.engine, phase=phase, phase_s=seconds)
        past.observe(replace(base, engine=engine))
    reading = replace(read(base), past=past)
    drawn = text(resting(reading, 100))
    assert re.search(r"● fetching the model +12 s", drawn)
    assert re.search(r"◐ loading the weights +42 s +≈ 35 s left", drawn)


def test_an_unknown_state_of_the_engine_is_not_invented() -> None:
    reading = read(blank_snapshot("no snapshot yet"), link=Link("connecting"))
    drawn = text(verdict(reading, Size(120, 3)))
    assert "CONNECTING" in drawn
    assert "SERVING" not in drawn
    assert make.idle().engine.state is EngineState.SERVING


def test_every_size_of_screen_tells_the_same_peak() -> None:
    reading = read(make.snapshot())
    second = replace(make.history()[-1], generation_tokens_per_s=1234.0)
    reading.past.recall([replace(second, generation_peak_tokens_per_s=1234.0)])
    told = {
        match[1]
        for size in (Size(30, 8), Size(60, 8), Size(120, 12), Size(300, 12))
        for drawn in (speed_heading(reading, size), [compact_speed(reading, size.width)])
        if (match := re.search(r"peak ([\d,]+)", text(drawn)))
    }
    assert told == {"1,234"}
