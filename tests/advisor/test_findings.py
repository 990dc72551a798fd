"""Each finding appears with its evidence and its command, and is silent on a healthy engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from a40console.advisor.evidence import (
    Evidence,
    LoggedSpeed,
    ProfileEdit,
    Shift,
    Stalls,
    Survivor,
    Trends,
    UnfitParser,
)
from a40console.advisor.machine_findings import GPU_SOURCE
from a40console.model.busiest_thread import BusiestThread
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Missing
from a40console.model.snapshot import DepthSpeed, Difference, SourceStatus
from a40console.telemetry.gpu_figures import THROTTLE_REASONS
from a40console.telemetry.nvml import GpuSampler
from tests.advisor.scenes import END, GONE, HUNG, Scene, codes, only

LEFT = (Survivor(901, "VLLM::EngineCore"), Survivor(902, "VLLM::Worker"))


def test_a_healthy_engine_has_none(scene: Scene) -> None:
    moving = Evidence(generation_flat_s=0.2, steps_flat_s=0.1, health_status=200)
    assert codes(scene(), moving) == []
    assert codes(scene(), Evidence()) == []


def test_an_orphaned_engine_lists_pids_and_the_memory_they_hold(scene: Scene) -> None:
    snapshot = scene(engine={"state": EngineState.ORPHANED})
    found = only(snapshot, Evidence(survivors=LEFT))
    assert found.code == "engine-orphaned"
    assert "VLLM::EngineCore (pid 901), VLLM::Worker (pid 902)" in found.evidence
    assert "GPU 0 holds 41.6 GiB more than before it" in found.evidence
    assert found.command == "engine.clean"


def test_what_a_failed_engine_left_is_found_and_what_a_living_one_has_is_not(scene: Scene) -> None:
    left = Evidence(survivors=LEFT)
    assert codes(scene(engine={"state": EngineState.FAILED}), left) == [
        "engine-orphaned",
        "engine-failed",
    ]
    assert codes(scene(engine={"state": EngineState.STOPPING}), left) == []


def test_unkillable_processes_need_the_pod_restarted(scene: Scene) -> None:
    snapshot = scene(engine={"state": EngineState.ORPHANED})
    found = only(snapshot, Evidence(survivors=LEFT, unkillable=True))
    assert found.code == "unkillable"
    assert "Restart the pod" in found.remedy
    assert found.command is None


def test_a_failed_engine_has_its_own_finding_with_its_own_remedy(scene: Scene) -> None:
    failed = scene(engine={"state": EngineState.FAILED, "exit": END}, gpus=())
    found = only(failed, Evidence(end_evidence="oom", end_remedy="Lower max_model_len."))
    assert (found.code, found.severity) == ("engine-failed", "error")
    assert found.title == "The engine failed: the kernel killed it for want of memory"
    assert found.evidence == "oom · SIGKILL · ended 2026-11-29T14:07:30.000Z"
    assert found.remedy == "Lower max_model_len."
    assert only(failed, Evidence()).remedy, "never without one"
    stopped = scene(engine={"state": EngineState.STOPPED, "exit": END}, gpus=())
    assert codes(stopped, Evidence()) == []


def test_a_failed_start_that_a_profile_mends_leads_to_the_fix(scene: Scene) -> None:
    failed = scene(engine={"state": EngineState.FAILED, "exit": END}, gpus=())
    fix = "max_model_len: 262144 → 116480"
    found = only(failed, Evidence(end_remedy="Set it lower.", end_fix=fix))
    assert found.command == "profile.fix"
    assert found.remedy == f"Set it lower. This change of the profile mends it: {fix}."
    alone = only(failed, Evidence(end_fix=fix))
    assert alone.remedy == f"This change of the profile mends it: {fix}."
    assert only(failed, Evidence(end_remedy="Set it lower.")).command == "engine.start"


UNFIT = UnfitParser(
    cause="no tool call parser is set, and requests with tools are refused",
    evidence="chat template: <function=; asked: none",
    remedy="Set tool_call_parser = 'qwen3_xml' in the profile.",
    fix='tool_call_parser: not set → "qwen3_xml"',
)


def test_an_edited_profile_is_told_with_what_it_takes(scene: Scene) -> None:
    lines = ("a: 1 → 2", "b: 1 → 2", "c: 1 → 2", "d: 1 → 2", "e: 1 → 2")
    found = only(scene(), Evidence(profile_edit=ProfileEdit(profile="mine", changes=lines)))
    assert (found.code, found.severity) == ("profile-edited", "info")
    assert found.command == "engine.apply"
    assert found.title == "5 settings of mine run otherwise than its file says"
    assert "1 more" in found.evidence
    assert "e: 1 → 2" not in found.evidence
    assert "takes no restart" in found.remedy
    one = ProfileEdit(profile="mine", changes=lines[:1], restarts=1)
    found = only(scene(), Evidence(profile_edit=one))
    assert found.title == "1 setting of mine runs otherwise than its file says"
    assert "takes a restart" in found.remedy


def test_a_broken_profile_of_the_running_engine_is_told(scene: Scene) -> None:
    edit = ProfileEdit(profile="mine", fault="mine.toml: max_model_len must be more than 0")
    found = only(scene(), Evidence(profile_edit=edit))
    assert (found.code, found.severity, found.command) == ("profile-edited", "warn", None)
    assert "max_model_len must be more than 0" in found.evidence
    assert "runs on" in found.remedy


def test_parsers_that_do_not_fit_are_told_while_the_engine_lives(scene: Scene) -> None:
    found = only(scene(), Evidence(unfit_parsers=(UNFIT,)))
    assert (found.code, found.severity, found.command) == ("parser-unfit", "warn", "profile.fix")
    assert found.title == "No tool call parser is set, and requests with tools are refused"
    assert found.evidence == UNFIT.evidence
    assert UNFIT.fix in found.remedy
    guess = replace(UNFIT, fix="")
    assert only(scene(), Evidence(unfit_parsers=(guess,))).command is None
    ended = scene(engine={"state": EngineState.STOPPED}, gpus=())
    assert codes(ended, Evidence(unfit_parsers=(UNFIT,))) == []


def test_settings_of_an_ended_engine_do_not_speak(scene: Scene) -> None:
    changed = (Difference(setting="threads", asked=4, effective=2, evidence="n_threads = 2"),)
    running = scene(engine={"effective": changed})
    assert codes(running, Evidence()) == ["setting-not-in-force"]
    failed = scene(engine={"effective": changed, "state": EngineState.FAILED, "exit": END}, gpus=())
    assert codes(failed, Evidence()) == ["engine-failed"]


def test_broken_telemetry_of_a_healthy_engine_is_told_apart(scene: Scene) -> None:
    broken = SourceStatus(name="vllm.metrics", state="failed", age_s=40.0, reason="HTTP 500")
    found = only(scene(sources=(broken,)), Evidence(health_status=200))
    assert found.code == "telemetry-broken"
    assert found.title == "The engine is well, its telemetry is broken"
    assert found.evidence == "vllm.metrics: HTTP 500 · /health says 200"
    assert only(scene(sources=(broken,)), Evidence()).title == "Telemetry is broken"
    starting = scene(sources=(broken,), engine={"state": EngineState.STARTING})
    assert codes(starting, Evidence()) == []


def test_a_source_that_was_never_read_is_not_broken_yet(scene: Scene) -> None:
    fresh = Missing("first sample")
    sources = (
        SourceStatus(name="host", state="stale", age_s=fresh, reason="first sample"),
        SourceStatus(name="nvml", state="absent", age_s=fresh, reason="no NVIDIA driver"),
    )
    assert codes(scene(sources=sources), Evidence()) == []


def test_a_lost_gpu_source_leaves_the_engine_alone(scene: Scene) -> None:
    reason = "driver and library versions differ: restart the pod"
    lost = SourceStatus(name="nvml", state="failed", age_s=GONE, reason=reason)
    found = only(scene(sources=(lost,), gpus=Missing(reason)), Evidence(health_status=200))
    assert found.code == "gpu-degraded"
    assert reason in found.evidence


def test_thermal_slowdown_is_a_fault_and_a_power_cap_is_not(scene: Scene) -> None:
    hot = scene(gpu={"throttle_reasons": ("power cap", "hardware thermal slowdown")})
    found = only(hot, Evidence())
    assert (found.code, found.evidence) == ("gpu-degraded", "GPU 0: hardware thermal slowdown")
    assert codes(scene(gpu={"throttle_reasons": ("power cap",)}), Evidence()) == []


def test_the_rules_speak_of_gpus_as_telemetry_does(scene: Scene) -> None:
    assert GpuSampler.name == GPU_SOURCE
    faults = [
        word
        for word in THROTTLE_REASONS.values()
        if codes(scene(gpu={"throttle_reasons": (word,)}), Evidence())
    ]
    assert faults == [
        "hardware slowdown",
        "software thermal slowdown",
        "hardware thermal slowdown",
        "power brake",
    ]


def test_throttling_is_found_while_the_engine_starts_too(scene: Scene) -> None:
    host = {"throttled_ms_per_s": 340.0, "cpu_used_vcpu": 5.9, "cpu_quota_vcpu": 6.0}
    found = only(scene(host=host), Evidence())
    assert found.code == "vcpu-throttled"
    assert found.evidence == "throttled 340 ms/s · 5.9 of 6.0 vCPU used (cgroup2)"
    compiling = scene(host=host, engine={"state": EngineState.STARTING})
    assert codes(compiling, Evidence()) == ["vcpu-throttled"]
    assert codes(scene(host=host, engine={"state": EngineState.STOPPED}, gpus=()), Evidence()) == []
    assert codes(scene(host={"throttled_ms_per_s": GONE}), Evidence()) == []


def test_a_full_cache_is_found_with_who_waits(scene: Scene) -> None:
    snapshot = scene(
        kv_cache={"held_ratio": Estimated(0.97)}, requests={"waiting": 4, "preemptions": 3}
    )
    found = only(snapshot, Evidence())
    assert found.code == "kv-full"
    assert found.evidence == "≈ 97 % held · 4 waiting · 3 preemptions"
    assert codes(scene(kv_cache={"held_ratio": 0.5}), Evidence()) == []


def test_settings_that_run_otherwise_than_asked_are_listed(scene: Scene) -> None:
    differences = (
        Difference(
            setting="max_num_batched_tokens", asked=16384, effective=2048, evidence="log line"
        ),
        Difference(setting="graphs", asked=True, effective=Missing("not told"), evidence="-"),
        Difference(setting="async_scheduling", asked=None, effective=False, evidence="log line"),
    )
    found = only(scene(engine={"effective": differences}), Evidence())
    assert found.code == "setting-not-in-force"
    assert found.title == "1 setting of the profile not in force"
    assert found.evidence == "max_num_batched_tokens: asked 16384, runs 2048 (log line)"
    assert codes(scene(engine={"effective": GONE}), Evidence()) == []
    unasked = scene(engine={"effective": differences[2:]})
    assert codes(unasked, Evidence()) == [], "the engine's own choice breaks no promise"


def test_a_counter_reset_is_told_during_its_grace(scene: Scene) -> None:
    found = only(scene(), Evidence(counters_reset_s=12.0))
    assert (found.code, found.severity) == ("counters-reset", "info")
    assert codes(scene(), Evidence(counters_reset_s=61.0)) == []


def test_the_worst_comes_first(scene: Scene) -> None:
    snapshot = scene(kv_cache={"held_ratio": 0.99})
    extra = replace(HUNG, counters_reset_s=1.0)
    assert codes(snapshot, extra) == ["engine-hung", "kv-full", "counters-reset"]


def test_a_state_that_cannot_be_written_is_told_with_the_reason(scene: Scene) -> None:
    snapshot = scene()
    snapshot = replace(snapshot, service=replace(snapshot.service, read_only=True))
    found = only(snapshot, Evidence(state_trouble="No space left on device"))
    assert found.code == "state-not-written"
    assert "No space left" in found.evidence


def test_a_history_or_sessions_that_are_not_written_are_told_as_long_as_it_lasts(
    scene: Scene,
) -> None:
    found = only(scene(), Evidence(state_trouble="history: database is locked"))
    assert (found.code, found.severity) == ("state-not-written", "warn")
    assert "history: database is locked" in found.evidence
    assert codes(scene(), Evidence()) == []
    away = scene()
    away = replace(away, service=replace(away.service, home=""))
    assert codes(away, Evidence(state_trouble="x")) == [], "a watcher keeps no state"


def test_a_supervisor_that_is_gone_is_told_as_long_as_it_is(scene: Scene) -> None:
    found = only(scene(), Evidence(unsupervised=True))
    assert (found.code, found.severity) == ("service-unsupervised", "warn")
    assert "nothing brings process 1 back" in found.evidence
    assert "a40console stop" in found.remedy


def test_a_keeper_that_is_gone_is_told_while_its_engine_lives(scene: Scene) -> None:
    found = only(scene(), Evidence(keeper_gone=True))
    assert (found.code, found.severity) == ("keeper-gone", "warn")
    assert found.command == "engine.restart"
    stopped = scene(engine={"state": EngineState.STOPPED})
    assert "keeper-gone" not in codes(stopped, Evidence(keeper_gone=True))


def test_a_watcher_that_keeps_no_state_is_not_judged_for_it(scene: Scene) -> None:
    snapshot = scene(engine={"kind": "sim"})
    service = replace(snapshot.service, read_only=True, home="")
    assert codes(replace(snapshot, service=service), Evidence()) == []


def test_memory_that_somebody_else_holds_is_found_before_a_start_fails(scene: Scene) -> None:
    stopped = scene(engine={"state": EngineState.STOPPED})
    found = only(stopped, Evidence(hidden_processes=2))
    assert found.code == "gpu-memory-held"
    assert found.evidence == "GPU 0: 41.9 GiB used · 2 processes not visible from this pod"
    assert found.command is None, "nothing may be ended by what the driver lists"
    assert "pid" not in found.evidence + found.remedy
    free = scene(engine={"state": EngineState.STOPPED}, gpu={"memory_used_bytes": 280_000_000})
    assert codes(free, Evidence(hidden_processes=2)) == []
    assert codes(scene(), Evidence(hidden_processes=2)) == [], "our own engine holds it"


def test_a_log_that_states_another_speed_is_told_with_both(scene: Scene) -> None:
    logged = LoggedSpeed(
        logged_tokens_per_s=40.0, counted_tokens_per_s=80.0, over_s=10.0, speakers=2
    )
    found = only(scene(), Evidence(logged=logged))
    assert (found.code, found.severity) == ("log-disagrees", "info")
    assert found.evidence == (
        "log 40 tok/s · counters 80 tok/s · over the same 10 s · 2 API servers log"
    )
    assert codes(scene(engine={"state": EngineState.STOPPED}), Evidence(logged=logged)) == [
        "gpu-memory-held"
    ]


SLOWER: dict[str, Any] = {
    "mode": "on",
    "depth": 5,
    "off_tokens_per_s_at_this_load": 497.0,
    "measured_at_this_load": (DepthSpeed(0, 497.0, 180.0), DepthSpeed(5, 412.6, 0.4)),
}


@pytest.mark.parametrize(
    ("code", "blocks", "extra"),
    [
        ("oom-killed", {}, Evidence(trends=Trends(oom_kills=1))),
        ("kv-preempts", {}, Evidence(trends=Trends(preemptions=3))),
        ("memory-short", {"host": {"memory_used_bytes": 53_000_000_000}}, Evidence()),
        ("memory-short", {"host": {"shm_used_bytes": 24_600_000_000}}, Evidence()),
        ("disk-short", {"host": {"disk_free_bytes": 1_200_000_000}}, Evidence()),
        (
            "disk-slow",
            {},
            Evidence(stalls=Stalls(origin="container", io_some_ratio=0.6, io_full_ratio=0.5)),
        ),
        (
            "thread-pinned",
            {"host": {"busiest_engine_thread": BusiestThread(name="EngineCore", ratio=0.99)}},
            Evidence(trends=Trends(passes_per_s=Shift(41, 59), power_w=Shift(198, 283))),
        ),
        (
            "spec-loses-at-load",
            {"speculation": SLOWER},
            Evidence(),
        ),
        (
            "prefix-cache-lost",
            {
                "prefix_cache": {
                    "hit_ratio": 0.1,
                    "queried_tokens": 60_000,
                    "reusable_ratio": 0.9,
                }
            },
            Evidence(),
        ),
    ],
)
def test_what_costs_speed_is_found_while_it_serves_and_only_then(
    scene: Scene, code: str, blocks: dict[str, object], extra: Evidence
) -> None:
    assert only(scene(**blocks), extra).code == code
    absent = scene(**blocks, engine={"state": EngineState.ABSENT}, gpus=())
    lasting = {"oom-killed", "memory-short", "disk-short"}
    assert codes(absent, extra) == ([code] if code in lasting else [])


def test_what_speculation_costs_says_both_speeds_and_when_it_was_measured(scene: Scene) -> None:
    found = only(scene(speculation=SLOWER), Evidence())
    assert found.title == "Speculation costs 17 % at this load"
    told = "413 tok/s with it, 497 without (measured at this load, 2 requests, 3 m ago)"
    assert found.evidence.split(" · ")[0] == told
    assert (found.severity, found.command) == ("warn", "engine.speculation")
    assert found.remedy == "Turn speculation off while so many work at once."
    speeds = (*SLOWER["measured_at_this_load"], DepthSpeed(3, 610.0, 90.0))
    better = only(scene(speculation=SLOWER | {"measured_at_this_load": speeds}), Evidence())
    assert better.remedy == "Set its depth to 3: 610 tok/s at this load, 1 m 30 s ago."
    for unfit in (DepthSpeed(3, 610.0, 3_601.0), DepthSpeed(3, 610.0, 9.0, is_rough=True)):
        speeds = (*SLOWER["measured_at_this_load"], unfit)
        found = only(scene(speculation=SLOWER | {"measured_at_this_load": speeds}), Evidence())
        assert found.remedy == "Turn speculation off while so many work at once."


@pytest.mark.parametrize(
    "speeds",
    [
        (DepthSpeed(0, 497.0, 180.0), DepthSpeed(5, 448.0, 0.4)),
        (DepthSpeed(0, 497.0, 180.0, is_rough=True), DepthSpeed(5, 412.6, 0.4)),
        (DepthSpeed(0, 497.0, 180.0), DepthSpeed(5, 412.6, 300.0)),
        (DepthSpeed(0, 497.0, 180.0), DepthSpeed(24, 44.8, 0.4)),
        (DepthSpeed(5, 412.6, 0.4),),
        (),
    ],
    ids=["scatter", "other contexts", "old", "of another depth", "never without", "nothing"],
)
def test_only_a_present_speed_of_this_depth_convicts_speculation(
    scene: Scene, speeds: tuple[DepthSpeed, ...]
) -> None:
    of_old = {"generation_tokens_per_s": 60.0}  # a window that began before anything ran
    known = SLOWER | {"measured_at_this_load": speeds}
    assert codes(scene(speculation=known, throughput=of_old), Evidence()) == []


def test_a_weak_hint_is_no_finding(scene: Scene) -> None:
    pinned = {"busiest_engine_thread": BusiestThread(name="EngineCore", ratio=1.0)}
    assert codes(scene(host=pinned), Evidence()) == []
    poor = {"mode": "on", "drafts": 900, "tokens_per_pass": 1.05, "acceptance_ratio": 0.02}
    assert codes(scene(speculation=poor), Evidence()) == []
    new_agent = {"hit_ratio": 0.0, "queried_tokens": 18_990, "hit_ratio_since_start": 0.92}
    assert codes(scene(prefix_cache=new_agent), Evidence()) == []
    neighbours = Stalls(origin="machine", io_some_ratio=0.9, io_full_ratio=0.9)
    assert codes(scene(), Evidence(stalls=neighbours)) == []
