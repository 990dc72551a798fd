"""Each cause speaks where its figures hold and stays silent where they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from a40console.advisor.limit import explain, limit
from a40console.model.busiest_thread import BusiestThread
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.figures import Estimated, Missing
from a40console.model.snapshot import Limit, Snapshot
from tests.advisor.scenes import GONE, MakeSlot, Scene

ALL = {"vcpu", "kv", "queue", "clocks", "gate", "prefill", "memory"}
"""What the healthy snapshot rules out; of the rest it tells too little."""


def read(snapshot: Snapshot) -> Limit:
    return limit(explain(snapshot))


def test_plain_decoding_is_its_own_limit_and_says_what_it_is_not(scene: Scene) -> None:
    found = read(scene())
    assert (found.cause, found.text) == ("decode", "decode: 1 request, 23 passes/s, nothing waits")
    assert "413 tok/s (5 s)" in found.evidence
    assert "23 passes/s (5 s)" in found.evidence
    assert set(found.ruled_out) == ALL


@pytest.mark.parametrize(
    "state", [state for state in EngineState if state is not EngineState.SERVING]
)
def test_an_engine_that_does_not_serve_is_the_cause(scene: Scene, state: EngineState) -> None:
    found = read(scene(engine={"state": state}))
    assert found.cause == "not-serving"
    assert found.ruled_out == ()


def test_a_start_tells_its_phase_and_what_is_left(scene: Scene) -> None:
    starting = {"state": EngineState.STARTING, "phase": "load", "phase_s": 43.0, "eta_s": 19.6}
    found = read(scene(engine=starting))
    assert found.text == "the engine is starting: load"
    assert found.evidence == ("state starting", "for 43 s", "≈ 20 s left")


def test_a_failed_engine_tells_its_cause_and_a_paused_one_that_it_is(scene: Scene) -> None:
    end = EngineEnd(code=1, signal=GONE, cause="out of GPU memory", at="t")
    found = read(scene(engine={"state": EngineState.FAILED, "exit": end}))
    assert found.text == "the engine has failed: out of GPU memory"
    assert read(scene(engine={"paused": True})).text == "the engine is paused"
    assert read(scene(engine={"state": EngineState.ABSENT})).text == "no engine runs"


def test_no_request_anywhere_is_idle(scene: Scene) -> None:
    found = read(scene(requests={"running": 0}, slots=()))
    assert found.cause == "idle"
    assert "413 tok/s over the last 5 s" in found.evidence


@pytest.mark.parametrize(
    "requests",
    [{"running": 0, "waiting": 1}, {"running": 0, "held": 1}, {"running": GONE}, {"age_s": 60.0}],
)
def test_idle_is_silent_where_a_request_is_or_may_be(
    scene: Scene, requests: dict[str, object]
) -> None:
    assert read(scene(requests=requests, slots=())).cause != "idle"


def test_idle_is_silent_while_a_slot_works_though_the_gauge_is_behind(
    scene: Scene, make_slot: MakeSlot
) -> None:
    assert read(scene(requests={"running": 0}, slots=(make_slot(),))).cause != "idle"
    assert read(scene(requests={"running": 0}, slots=(make_slot("idle"),))).cause == "idle"


def test_throttled_vcpu_speaks_with_its_figures(scene: Scene) -> None:
    found = read(scene(host={"throttled_ms_per_s": 340.0, "cpu_used_vcpu": 5.9}))
    assert found.cause == "vcpu"
    assert found.text == "throttled vCPU: 340 ms/s"
    assert "5.9 of 9.0 vCPU used (cgroup2)" in found.evidence
    assert "vcpu" not in found.ruled_out


def test_throttled_vcpu_outranks_the_queue_and_the_prefill_it_slows(
    scene: Scene, make_slot: MakeSlot
) -> None:
    slots = (make_slot("prefill", cached_tokens=0),)
    throttled = {"throttled_ms_per_s": 340.0}
    assert read(scene(host=throttled, slots=slots, requests={"waiting": 3})).cause == "vcpu"


@pytest.mark.parametrize(
    ("host", "cause"),
    [
        ({"throttled_ms_per_s": 3.0}, "decode"),
        ({"throttled_ms_per_s": GONE}, "unknown"),
        ({"throttled_ms_per_s": 340.0, "age_s": 30.0}, "unknown"),
        ({"busiest_engine_thread": BusiestThread(name="EngineCore", ratio=1.0)}, "decode"),
    ],
)
def test_vcpu_is_silent_without_throttling_even_with_a_thread_at_the_top(
    scene: Scene, host: dict[str, object], cause: str
) -> None:
    assert read(scene(host=host)).cause == cause


def test_vcpu_is_silent_while_nothing_is_worked_on(scene: Scene) -> None:
    throttled = {"throttled_ms_per_s": 340.0}
    assert read(scene(host=throttled, requests={"running": 0}, slots=())).cause == "idle"


def test_a_thread_at_the_top_is_shown_as_a_candidate(scene: Scene) -> None:
    thread = BusiestThread(name="EngineCore", ratio=0.98)
    found = read(scene(host={"busiest_engine_thread": thread}))
    assert found.evidence[-1] == "thread EngineCore at 98 % of a core: a candidate, no proof"


def test_without_a_quota_all_cores_in_use_are_the_wall(scene: Scene) -> None:
    cores = {"cpu_quota_vcpu": 2.0, "quota_origin": "host", "throttled_ms_per_s": GONE}
    assert read(scene(host=cores | {"cpu_used_vcpu": 1.98})).text == "all 2.0 vCPU are in use"
    free = read(scene(host=cores | {"cpu_used_vcpu": 0.4}))
    assert free.cause == "decode"
    assert "vcpu" in free.ruled_out


def test_a_queue_behind_max_running_or_a_full_cache_says_which(scene: Scene) -> None:
    busy = read(scene(requests={"waiting": 4, "running": 64}))
    assert (busy.cause, busy.text) == ("queue", "4 requests waiting: max_running 64 is reached")
    assert "queue" not in busy.ruled_out
    assert "kv" in busy.ruled_out
    full = read(scene(requests={"waiting": 1}, kv_cache={"held_ratio": 0.97}))
    assert (full.cause, full.text) == ("kv", "1 request waiting: the KV cache is full")
    assert "KV 97 % held" in full.evidence
    assert "kv" not in full.ruled_out


def test_a_queue_without_a_known_reason_still_speaks(scene: Scene) -> None:
    waiting = {"waiting": 2, "waiting_by_reason": {"capacity": 2, "deferred": 0}}
    found = read(scene(requests=waiting))
    assert found.text == "2 requests waiting in the engine"
    assert found.evidence[-1] == "2 for capacity"


def test_requests_at_our_gate_are_told_apart_from_the_engines_queue(scene: Scene) -> None:
    found = read(scene(requests={"held": 3}))
    assert (found.cause, found.text) == ("gate", "3 requests held at the gate")
    assert "gate" not in found.ruled_out


def test_the_queue_is_silent_when_nothing_waits_or_nothing_is_known(scene: Scene) -> None:
    assert read(scene()).cause == "decode"
    unknown = read(scene(requests={"waiting": GONE}))
    assert unknown.cause == "unknown"
    assert unknown.evidence[-1] == "queue not judged: not known in this test"
    assert "queue" not in unknown.ruled_out


def test_prefill_names_the_largest_prompt_and_what_is_left(
    scene: Scene, make_slot: MakeSlot
) -> None:
    slots = (
        make_slot(),
        make_slot("prefill", agent="Explore", prompt_tokens=20000, cached_tokens=1010),
        make_slot("prefill", agent="main", prompt_tokens=900, cached_tokens=0),
    )
    found = read(scene(slots=slots, throughput={"prefill_tokens_per_s": 9495.0}))
    assert found.cause == "prefill"
    assert found.text == "prefill of 18,990 tokens (Explore), ≈ 2 s left"
    assert "2 prompts in prefill" in found.evidence
    assert "prefill" not in found.ruled_out


def test_what_is_done_of_a_prefill_is_taken_off(scene: Scene, make_slot: MakeSlot) -> None:
    slot = make_slot("prefill", prompt_tokens=2000, cached_tokens=0, prefill_ratio=0.5, agent=GONE)
    assert read(scene(slots=(slot,))).text == "prefill of 1,000 tokens (7f3a)"


def test_a_prompt_whose_cached_part_is_not_known_has_a_bound_and_no_estimate(
    scene: Scene, make_slot: MakeSlot
) -> None:
    slot = make_slot("prefill", prompt_tokens=15549, cached_tokens=GONE, agent=GONE, age_s=4.5)
    found = read(scene(slots=(slot,), throughput={"prefill_tokens_per_s": 1000.0}))
    assert found.text == "prefill of at most 15,549 tokens (7f3a), at most 16 s left"
    young = replace(slot, age_s=0.3)
    found = read(scene(slots=(young,), throughput={"prefill_tokens_per_s": 216.0}))
    assert found.cause == "unknown", "it may be cached but for its last tokens"
    assert "prefill" not in found.ruled_out


@pytest.mark.parametrize(
    ("decoding", "age_s", "known"),
    [
        ({}, 1.5, False),
        ({"age_s": 60.0, "ttft_s": 3.0}, 1.5, False),
        ({"age_s": 4.5, "ttft_s": 3.2}, 1.5, True),
        ({"age_s": 4.5, "ttft_s": GONE}, 1.5, False),
        ({}, 4.0, True),
    ],
)
def test_a_mean_over_a_window_mostly_without_prefill_is_no_speed_of_prefill(
    scene: Scene, make_slot: MakeSlot, decoding: dict[str, Any], age_s: float, known: bool
) -> None:
    prompt = make_slot("prefill", prompt_tokens=15549, cached_tokens=0, age_s=age_s)
    slots = (make_slot(**decoding), prompt)
    found = read(scene(slots=slots, throughput={"prefill_tokens_per_s": 216.0}))
    assert found.cause == "prefill"
    assert found.text.endswith("≈ 1 m 12 s left") is known
    assert ("216 prompt tok/s computed (5 s)" in found.evidence) is known


def test_prefill_explains_a_waiting_request_when_the_engine_has_room(
    scene: Scene, make_slot: MakeSlot
) -> None:
    slots = (make_slot("prefill", cached_tokens=0),)
    assert read(scene(slots=slots, requests={"waiting": 1})).cause == "prefill"


def test_prefill_is_silent_for_a_short_young_prompt_and_while_decoding(
    scene: Scene, make_slot: MakeSlot
) -> None:
    short = make_slot("prefill", prompt_tokens=40, cached_tokens=0, age_s=0.1)
    found = read(scene(slots=(short,)))
    assert found.cause == "unknown"
    assert "prefill" not in found.ruled_out, "there is one, though it is small"
    assert found.evidence[-1] == "prefill not judged: 1 prompt in prefill, below 512 tokens and 1 s"
    assert read(scene(slots=(make_slot(),))).cause == "decode"
    assert read(scene(slots=(make_slot(), short))).cause == "decode"


def test_a_short_prompt_that_takes_long_is_a_limit(scene: Scene, make_slot: MakeSlot) -> None:
    slow = make_slot("prefill", prompt_tokens=300, cached_tokens=GONE, age_s=3.0)
    assert read(scene(slots=(slow,))).cause == "prefill"


def test_without_slots_only_pure_prefill_is_called_so(scene: Scene) -> None:
    pure = {"prefill_tokens_per_s": 3957.0, "generation_tokens_per_s": 0.0}
    assert read(scene(slots=GONE, throughput=pure)).cause == "prefill"
    mixed = read(scene(slots=GONE, throughput={"prefill_tokens_per_s": 3957.0}))
    assert mixed.cause == "unknown"
    assert "prefill" not in mixed.ruled_out


@pytest.mark.parametrize(
    ("blocks", "name"),
    [
        ({"host": {"throttled_ms_per_s": GONE}}, "vcpu"),
        ({"host": {"cpu_used_vcpu": GONE}}, "vcpu"),
        ({"host": {"cpu_used_vcpu": 8.7}}, "vcpu"),
        ({"host": {"age_s": 60.0}}, "vcpu"),
        ({"kv_cache": {"held_ratio": GONE}}, "kv"),
        ({"kv_cache": {"held_ratio": Estimated(0.93)}}, "kv"),
        ({"requests": {"waiting": GONE}}, "queue"),
        ({"gpus": GONE}, "clocks"),
        ({"gpus": ()}, "clocks"),
        ({"gpu": {"throttle_reasons": GONE}}, "clocks"),
        ({"gpu": {"throttle_reasons": ("power cap",)}}, "clocks"),
        ({"gpu": {"age_s": 45.0}}, "clocks"),
        ({"slots": GONE, "throughput": {"prefill_tokens_per_s": GONE}}, "prefill"),
    ],
)
def test_a_figure_that_is_missing_old_or_high_rules_nothing_out(
    scene: Scene, blocks: dict[str, dict[str, object]], name: str
) -> None:
    found = read(scene(**blocks))
    # What holds the clocks down works within the passes, as cores do that are in use.
    full = blocks.get("host", {}).get("cpu_used_vcpu") == 8.7
    assert found.cause == ("decode" if full or name == "clocks" else "unknown")
    assert not full or found.evidence[-1] == "8.7 of 9.0 vCPU used"
    assert name not in found.ruled_out
    of_the_host = {"memory"} if "age_s" in blocks.get("host", {}) else set()
    assert set(found.ruled_out) == ALL - {name} - of_the_host


@pytest.mark.parametrize(
    "blocks",
    [
        {"requests": {"held": 1}},
        {"requests": {"waiting": 1}},
        {"throughput": {"age_s": 60.0}},
        {"throughput": {"generation_tokens_per_s": 0.0}},
        {"throughput": {"passes_per_s": GONE}},
        {"kv_cache": {"held_ratio": 0.93}},
        {"slots": ()},
        {"slots": GONE, "throughput": {"prefill_tokens_per_s": 900.0}},
        {"engine": {"paused": True}},
        {"host": {"throttled_ms_per_s": 340.0}},
        {"host": {"throttled_ms_per_s": 40.0}},
        {"host": {"cpu_used_vcpu": GONE}},
        {"host": {"age_s": 60.0}},
    ],
)
def test_decode_is_silent_where_time_may_go_elsewhere(scene: Scene, blocks: dict[str, Any]) -> None:
    assert read(scene(**blocks)).cause != "decode"


def test_without_slots_decode_rests_on_the_counters(scene: Scene) -> None:
    found = read(scene(slots=GONE, throughput={"prefill_tokens_per_s": 0.0}))
    assert found.text == "decode: 2 requests, 23 passes/s, nothing waits"


@pytest.mark.parametrize(
    ("slot", "speaks"),
    [
        ({"age_s": 1.0, "ttft_s": 0.3, "generated_tokens": 20}, True),
        ({"age_s": 9.0, "ttft_s": 0.3, "generated_tokens": 20}, False),
        ({"age_s": 1.0, "ttft_s": GONE, "generated_tokens": 20}, False),
        ({"age_s": 1.0, "ttft_s": 0.3, "generated_tokens": 0}, False),
    ],
)
def test_before_the_counters_move_only_a_request_that_has_just_begun_decodes(
    scene: Scene, make_slot: MakeSlot, slot: dict[str, Any], speaks: bool
) -> None:
    still = {"generation_tokens_per_s": 0.0, "passes_per_s": GONE}
    found = read(scene(slots=(make_slot(**slot),), throughput=still))
    told = "decode: 1 request, just begun, nothing waits"
    assert found.text == (told if speaks else "unknown: no figure here explains the speed")


def test_what_holds_the_clocks_down_is_cited(scene: Scene) -> None:
    found = read(scene(gpu={"throttle_reasons": ("power cap",)}))
    assert "GPU 0: power cap" in found.evidence


def test_unknown_says_why_when_the_engine_does_not_tell(scene: Scene) -> None:
    found = read(scene(requests={"running": Missing("HTTP 500"), "waiting": GONE}, slots=GONE))
    assert found.text == "unknown: HTTP 500"
    assert found.evidence == ()
    late = read(scene(requests={"age_s": 75.0}, throughput={"age_s": 75.0}, slots=GONE))
    assert late.text == "unknown: the engine's figures are old"
