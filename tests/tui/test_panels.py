"""What the panels say: within their width, aligned, and nothing made up."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Size

from a40console.model.control import Trouble
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.snapshot import Snapshot, SourceStatus
from a40console.tui.blank import blank_snapshot
from a40console.tui.ink import Line, Role, width_of
from a40console.tui.keymap import resolve
from a40console.tui.panels import (
    caches,
    compact,
    frame,
    gpus,
    latency,
    machine,
    panel_notes,
    slots,
    speculation,
    trends,
)
from a40console.tui.panels.engine import engine_facts
from a40console.tui.panels.findings import first_finding
from a40console.tui.panels.recent_events import happened
from a40console.tui.panels.resting import resting
from a40console.tui.panels.slot_columns import CURSOR, layout
from a40console.tui.panels.slot_detail import request_detail
from a40console.tui.panels.slot_notes import row_notes
from a40console.tui.panels.speed import AXIS, cells_of, compact_speed, speed_chart, speed_heading
from a40console.tui.panels.texts import manual
from a40console.tui.panels.verdict import verdict
from a40console.tui.past import Past
from a40console.tui.reading import Link, Reading
from tests import make_snapshot as make
from tests.draw_screens import STATES
from tests.make_session import session
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


def read(snapshot: Snapshot, *, link: Link | None = None, age_s: float = 0.0) -> Reading:
    past = Past()
    past.recall(make.history())
    past.mark(make.events())
    past.observe(snapshot)
    return Reading(
        snapshot=snapshot,
        link=link or Link("live"),
        age_s=age_s,
        unread=3,
        past=past,
        keymap=resolve({}),
    )


def table(reading: Reading, width: int) -> list[Line]:
    form = layout(width)
    body = [slots.draw(row, form, reading) for row in slots.rows(reading)]
    return [slots.header(form), *body, slots.sum_line(reading, form)]


def text(lines: Sequence[Line]) -> str:
    return "\n".join("".join(span.text for span in entry) for entry in lines)


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


def test_the_verdict_says_how_fast_for_how_many() -> None:
    lines = text(verdict(read(make.snapshot()), Size(120, 3))).split("\n")
    assert lines[0].startswith(" ● SERVING")
    assert "509 tok/s" in lines[0]
    assert "2 decoding · 1 prefill · 1 queued · 0 held" in lines[0]
    assert lines[1].startswith(" LIMIT       prefill of 5,507 tokens (7f3a)")
    assert "ruled out: vCPU  KV  clocks  gate" in lines[1]
    assert "$0.31/1M now   $0.454/h   $1.45 so far, since engine start" in lines[2]


def test_no_figure_is_said_to_be_since_the_rent() -> None:
    for state in STATES.values():
        assert "rent" not in text(verdict(read(state()), Size(200, 3)))
    assert "since rent" not in text(manual(resolve({}), 80))


def test_a_rate_whose_source_fell_silent_is_no_present_speed() -> None:
    silent = make.snapshot(throughput=make.throughput(509.0, age_s=42.0))
    assert "– tok/s" in text(verdict(read(silent), Size(120, 3)))


def test_the_verdict_of_a_start_is_its_phase_seconds_and_eta() -> None:
    first = text(verdict(read(make.starting()), Size(120, 3))).split("\n")[0]
    assert "STARTING  loading the weights  42 s   ≈ 35 s left" in first


def test_what_the_engine_does_instead_of_serving_is_said_once() -> None:
    lines = text(verdict(read(make.starting()), Size(120, 3))).split("\n")
    assert lines[1] == " LIMIT       – known only while an engine serves"


def test_a_start_without_eta_says_why() -> None:
    base = make.starting()
    unknown = replace(base.engine, eta_s=Missing("first start of this profile"))
    first = text(verdict(read(replace(base, engine=unknown)), Size(120, 3)))
    assert "ETA – (first start of this profile)" in first


def test_the_verdict_of_a_failure_is_its_cause_and_remedy() -> None:
    lines = text(verdict(read(make.failed()), Size(120, 3))).split("\n")
    assert "✖ FAILED" in lines[0]
    assert "out of GPU memory while the KV cache was allocated  exit 1  14:05:56" in lines[0]
    assert "REMEDY      Lower max_model_len to 131072" in lines[1]


@pytest.mark.parametrize("state", [make.failed, make.orphaned, make.hung])
def test_a_remedy_for_something_else_is_none_for_the_engine(
    state: Callable[[], Snapshot],
) -> None:
    other = replace(make.findings()[0], severity="error")
    known, own = state(), state().findings
    both = text(verdict(read(replace(known, findings=(other, *own))), Size(120, 3)))
    assert f"REMEDY      {own[0].remedy}" in both
    alone = text(verdict(read(replace(known, findings=(other,))), Size(120, 3)))
    assert "REMEDY" not in alone
    assert other.remedy not in alone


def test_without_a_service_the_verdict_says_so_above_the_last_one() -> None:
    lost = Link("lost", Trouble(message="No service answers"))
    lines = text(verdict(read(make.snapshot(), link=lost, age_s=12), Size(120, 3))).split("\n")
    assert "NO SERVICE reconnecting, last seen 12 s ago" in lines[0]
    assert "SERVING" in lines[1]


def test_a_silent_service_is_called_silent() -> None:
    first = text(verdict(read(make.snapshot(), age_s=9.0), Size(120, 3))).split("\n")[0]
    assert "the service has gone silent, last seen 9 s ago" in first


def test_another_protocol_is_told_with_its_remedy() -> None:
    trouble = Trouble(
        message="The running service is version 9 and speaks another protocol",
        remedy="Restart it: a40console stop",
    )
    reading = read(make.snapshot(), link=Link("lost", trouble))
    first = text(verdict(reading, Size(140, 3))).split("\n")[0]
    assert "version 9" in first
    assert "a40console stop" in first


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_simulated_stands_in_the_first_line_at_every_width(state: str, width: int) -> None:
    simulated = replace(STATES[state](), simulated=True)
    for link in (Link("live"), Link("lost", Trouble(message="No service answers"))):
        first = text(verdict(read(simulated, link=link), Size(width, 3))).split("\n")[0]
        assert "SIMULATED" in first
        assert "SIMULATED" not in text(verdict(read(STATES[state](), link=link), Size(width, 3)))


def test_a_decoding_row_has_its_figures() -> None:
    row = text(table(read(make.snapshot()), 120)).split("\n")[1]
    assert re.search(
        r"7f3a +claude-code +decode +31,204 +96 % +– +1,204 +413 = +22\.7 × 18\.2", row
    )


def test_figures_stand_under_their_titles() -> None:
    for width in (80, 100, 120, 160, 200):
        head, first, *_ = text(table(read(make.snapshot()), width)).split("\n")
        cursor = 2
        assert head.index("gen") + 3 - cursor == first.index(" 1,204") + 6
        assert head.index("tok/s") + 5 - cursor == first.index("413") + 3


def test_a_prefill_shows_its_progress_and_a_dash_for_each_speed() -> None:
    row = text(table(read(make.snapshot()), 120)).split("\n")[2]
    assert "▓" in row
    assert "71 %" in row
    assert row.count("–") == 2  # re-read, first token


def test_estimates_are_marked_one_by_one() -> None:
    row = text(table(read(make.snapshot()), 120)).split("\n")[3]
    assert "≈96.4 =  ≈22.7 × ≈4.25" in row


def test_a_session_whose_client_has_the_turn_is_a_row() -> None:
    waiting = session(session="a91c")
    drawn = text(table(read(make.snapshot(sessions=(waiting,))), 120))
    assert re.search(r"a91c +claude-code +client's turn: Bash running 3 m", drawn)


def test_what_did_not_come_through_the_gateway_is_called_direct() -> None:
    assert re.search(r"direct +– +queued", text(table(read(make.snapshot()), 120)))


def test_rows_keep_their_place_when_others_end() -> None:
    past = Past()
    first = make.snapshot(slots=make.many_slots(6))
    past.observe(first)
    second = replace(first, slots=tuple(reversed(make.many_slots(6)[2:])))
    past.observe(second)
    reading = replace(read(second), past=past)
    live = [row for row in slots.rows(reading) if slots.is_live(row)]
    assert [slots.key_of(row) for row in live] == [
        slot.request_id for slot in make.many_slots(6)[2:]
    ]


def test_parallel_requests_of_one_session_are_rows_of_their_own() -> None:
    pair = (make.slot(request_id="a"), make.slot(request_id="b", slot=1))
    keys = [slots.key_of(row) for row in slots.rows(read(make.snapshot(slots=pair)))]
    assert keys[:2] == ["a", "b"]


@pytest.mark.parametrize(
    ("counter", "said"),
    [
        (509.0, "Σ ≈509 ✓ counter"),
        (600.0, "Σ ≈509 ≠ counter 600: 91.0 not in a row"),
        (400.0, "Σ ≈509 ≠ counter 400: 109 too many"),
        (Estimated(509.4), "Σ ≈509 ✓ counter"),
        (Missing("the counter was reset"), "Σ ≈509 counter –"),
    ],
)
def test_the_sum_is_checked_against_the_counter(counter: float, said: str) -> None:
    snapshot = make.snapshot(throughput=make.throughput(counter))
    assert said in text(table(read(snapshot), 120))


def test_tokens_of_a_request_that_just_ended_are_no_mismatch() -> None:
    lately = make.snapshot(
        throughput=make.throughput(600.0), recent=(make.recent(ended_at=make.at(2)),)
    )
    assert "+ ≈91.0 just ended" in text(table(read(lately), 120))


def test_rows_without_a_count_are_named_beside_the_sum() -> None:
    blind = make.slot(window_tokens_per_s=Missing("no plugin"))
    snapshot = make.snapshot(slots=(*make.four_slots(), blind))
    assert "Σ ≈509 ✓ counter (1 row not counted)" in text(table(read(snapshot), 120))


def test_a_missing_list_of_slots_says_why() -> None:
    snapshot = make.snapshot(slots=Missing("llama-server sleeps"))
    reading = read(snapshot)
    assert "Σ – llama-server sleeps" in text(table(reading, 120))
    assert "3 running · 1 queued" in text(verdict(reading, Size(120, 3)))


def test_the_row_note_names_the_reason_of_each_dash() -> None:
    note = row_notes(make.prefill_slot())
    assert "TTFT –: no token yet" in note
    assert "tok/s, pass/s, tok/pass –: in prefill" in note


def test_an_ended_request_is_not_said_to_wait_for_a_token() -> None:
    [ended, *_] = make.snapshot().recent
    note = row_notes(replace(ended, ttft_s=Missing("no token yet")))
    assert "TTFT –: not known: it was not streamed" in note


def test_the_speculation_panel_says_how_much_is_accepted_and_judges_nothing() -> None:
    drawn = speculation.speculation(read(make.snapshot()), Size(70, 3))
    assert "on n-gram 24, by restart  212 drafts in 60 s" in text(drawn)
    assert "18.2 tok/pass" in text(drawn)
    assert text(drawn).count("51 %") == 1
    said = [span for entry in drawn for span in entry if "last position" in span.text]
    assert [span.role for span in said] == [Role.MUTED]
    assert "without, at this load: – never measured" in text(drawn)


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


@pytest.mark.parametrize(("waited_s", "told"), [(4, "≈4.00"), (38, "≈38.0"), (162, "≈162")])
def test_the_column_of_the_queue_is_in_seconds(waited_s: int, told: str) -> None:
    past = Past()
    for age_s in range(waited_s + 1):
        row = make.slot(request_id="a", phase="held", age_s=float(age_s))
        past.observe(make.snapshot(at=make.at(waited_s - age_s), slots=(row,), recent=()))
    drawn = slots.draw(row, layout(200), replace(read(make.snapshot()), past=past))
    title = text([slots.header(layout(200))])
    end = title.index("queue s") + len("queue s") - CURSOR
    assert text([drawn])[:end].endswith(f" {told}")
    assert past.tracks["a"].waited_s == Estimated(float(waited_s))


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
