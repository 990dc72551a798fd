"""A snapshot of a healthy engine that decodes for two clients, to be changed by each test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from a40console.model.busiest_thread import BusiestThread
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.latency import Latency
from a40console.model.request import Phase
from a40console.model.service_info import ServiceInfo
from a40console.model.snapshot import (
    Cost,
    EngineInfo,
    Gpu,
    Host,
    KvCache,
    Limit,
    PrefixCache,
    Requests,
    Slot,
    Snapshot,
    SourceStatus,
    SpeculationInfo,
    Throughput,
    UsdPerMillion,
)
from tests.advisor.scenes import MakeSlot, Scene

NOT_HERE = Missing("not part of this test")


def _slot(phase: Phase = "decode", **figures: Any) -> Slot:
    slot = Slot(
        slot=0,
        request_id="r1",
        session="7f3a",
        agent="main",
        client="claude-code",
        model="m",
        direct=False,
        phase=phase,
        prompt_tokens=31204,
        cached_tokens=29956,
        reread_tokens=0,
        generated_tokens=0 if phase == "prefill" else 120,
        max_tokens=8192,
        prefill_ratio=NOT_HERE,
        tokens_per_s=40.0,
        passes_per_s=20.0,
        tokens_per_pass=2.0,
        window_tokens_per_s=40.0,
        ttft_s=0.3,
        age_s=4.0,
        method="engine",
    )
    return replace(slot, **figures)


def _engine() -> EngineInfo:
    return EngineInfo(
        id="run-1",
        kind="vllm",
        state=EngineState.SERVING,
        phase="ready",
        phase_s=100.0,
        eta_s=Missing("ready"),
        profile="p",
        model="m",
        served_name="m",
        version="0.33.0",
        listen="socket",
        pid=900,
        session_id=900,
        uptime_s=1000.0,
        restarts=0,
        exit=Missing("running"),
        max_model_len=262144,
        paused=False,
        argv_digest="d",
        effective=(),
    )


def _gpu() -> Gpu:
    return Gpu(
        source="nvml",
        age_s=0.3,
        index=0,
        name="NVIDIA A40",
        memory_used_bytes=44_990_000_000,
        memory_total_bytes=48_305_799_168,
        memory_baseline_bytes=280_000_000,
        utilization_ratio=0.97,
        power_w=283.0,
        power_limit_w=300.0,
        temperature_c=67,
        sm_clock_mhz=1740,
        throttle_reasons=(),
        read_bytes_per_s=NOT_HERE,
        peak_bytes_per_s=696e9,
    )


def _host() -> Host:
    return Host(
        source="cgroup2",
        age_s=0.2,
        cpu_quota_vcpu=9.0,
        quota_origin="cgroup2",
        cpu_used_vcpu=3.1,
        throttled_ms_per_s=0.0,
        busiest_engine_thread=BusiestThread(name="EngineCore", ratio=0.88),
        memory_used_bytes=22_870_000_000,
        memory_limit_bytes=53_687_091_200,
        shm_used_bytes=214_000_000,
        shm_total_bytes=24_696_061_952,
        disk_free_bytes=61_000_000_000,
    )


def _requests() -> Requests:
    return Requests(
        source="vllm.metrics",
        age_s=0.4,
        held=0,
        waiting=0,
        waiting_by_reason={},
        running=2,
        max_running=64,
        aborted=0,
        failed=0,
        preemptions=0,
        resent=0,
        gate=None,
    )


def _throughput() -> Throughput:
    return Throughput(
        window_s=5.0,
        source="vllm.metrics",
        age_s=0.4,
        generation_tokens_per_s=412.6,
        prefill_tokens_per_s=0.0,
        passes_per_s=22.7,
        sequences_per_pass=2.0,
    )


def _kv_cache() -> KvCache:
    return KvCache(
        source="vllm.metrics",
        age_s=0.4,
        held_tokens=51000,
        reusable_tokens=NOT_HERE,
        free_tokens=NOT_HERE,
        capacity_tokens=450112,
        held_ratio=0.11,
        fits_more=7,
    )


def _healthy() -> Snapshot:
    return Snapshot(
        schema=1,
        protocol=1,
        seq=1,
        at="2026-11-29T14:07:31.120Z",
        monotonic_s=1000.0,
        interval_s=1.0,
        simulated=False,
        service=ServiceInfo(version="0", pid=1, uptime_s=1, home="/h", read_only=False),
        engine=_engine(),
        slots=(_slot(),),
        recent=(),
        sessions=NOT_HERE,
        throughput=_throughput(),
        requests=_requests(),
        latency=Latency(window_s=60, ttft_s=NOT_HERE, pass_s=NOT_HERE, queue_s=NOT_HERE),
        prefix_cache=PrefixCache(
            window_s=60,
            source="vllm.metrics",
            age_s=0.4,
            hit_ratio=NOT_HERE,
            hit_tokens=NOT_HERE,
            queried_tokens=NOT_HERE,
            prompts=NOT_HERE,
            reusable_ratio=NOT_HERE,
            hit_ratio_since_start=NOT_HERE,
            last_loss=NOT_HERE,
        ),
        speculation=SpeculationInfo(
            window_s=60,
            source="vllm.metrics",
            age_s=0.4,
            mode=NOT_HERE,
            control="none",
            started_with=NOT_HERE,
            depth=NOT_HERE,
            depth_max=NOT_HERE,
            method=NOT_HERE,
            tokens_per_pass=NOT_HERE,
            accepted_per_draft=NOT_HERE,
            acceptance_ratio=NOT_HERE,
            accepted_ratio_per_position=NOT_HERE,
            drafts=NOT_HERE,
            tail_verdict=NOT_HERE,
            locked_reason=None,
            off_tokens_per_s_at_this_load=NOT_HERE,
        ),
        kv_cache=_kv_cache(),
        gpus=(_gpu(),),
        host=_host(),
        cost=Cost(
            kind="hourly",
            usd_per_hour=0.44,
            includes_disk=False,
            usd_so_far=1.0,
            since="engine start",
            usd_per_million=UsdPerMillion(now=NOT_HERE, session=NOT_HERE, since_rent=NOT_HERE),
            counted="generated",
        ),
        limit=Limit(cause="unknown", text="", evidence=(), ruled_out=()),
        findings=(),
        events_last_id=0,
        sources=(
            SourceStatus(name="vllm.metrics", state="ok", age_s=0.4, reason=None),
            SourceStatus(name="nvml", state="ok", age_s=0.3, reason=None),
            SourceStatus(name="host", state="ok", age_s=0.2, reason=None),
        ),
    )


@pytest.fixture(scope="session")
def make_slot() -> MakeSlot:
    """Builds one live request of a phase."""
    return _slot


@pytest.fixture(scope="session")
def scene() -> Scene:
    """Builds a snapshot: a mapping changes figures of a block (`gpu`: of the one GPU)."""

    def build(**blocks: Any) -> Snapshot:
        snapshot = _healthy()
        for name, change in blocks.items():
            if name == "gpu":
                snapshot = replace(snapshot, gpus=(replace(_gpu(), **change),))
            elif isinstance(change, Mapping):
                block = replace(getattr(snapshot, name), **change)
                snapshot = replace(snapshot, **{name: block})
            else:
                snapshot = replace(snapshot, **{name: change})
        return snapshot

    return build
