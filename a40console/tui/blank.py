"""A snapshot in which nothing is known: what the screen shows before the first one arrives."""

from __future__ import annotations

from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.snapshot import (
    PROTOCOL_VERSION,
    SCHEMA_VERSION,
    Cost,
    EngineInfo,
    Host,
    KvCache,
    Latency,
    Limit,
    PrefixCache,
    Requests,
    ServiceInfo,
    Snapshot,
    SpeculationInfo,
    Throughput,
    UsdPerMillion,
)


def blank_snapshot(reason: str) -> Snapshot:
    """A snapshot whose every figure is missing for the one reason."""
    unknown = Missing(reason)
    return Snapshot(
        schema=SCHEMA_VERSION,
        protocol=PROTOCOL_VERSION,
        seq=0,
        at="",
        monotonic_s=0.0,
        interval_s=1.0,
        simulated=False,
        service=ServiceInfo(version="", pid=0, uptime_s=0.0, home="", read_only=False),
        engine=_engine(unknown),
        slots=unknown,
        recent=(),
        sessions=unknown,
        throughput=Throughput(
            window_s=5.0,
            source="",
            age_s=unknown,
            generation_tokens_per_s=unknown,
            prefill_tokens_per_s=unknown,
            passes_per_s=unknown,
            sequences_per_pass=unknown,
        ),
        requests=Requests(
            source="",
            age_s=unknown,
            held=0,
            waiting=unknown,
            waiting_by_reason={},
            running=unknown,
            max_running=unknown,
            aborted=unknown,
            failed=unknown,
            preemptions=unknown,
        ),
        latency=Latency(window_s=60.0, ttft_s=unknown, pass_s=unknown, queue_s=unknown),
        prefix_cache=_prefix_cache(unknown),
        speculation=_speculation(unknown),
        kv_cache=_kv_cache(unknown),
        gpus=unknown,
        host=_host(unknown),
        cost=Cost(
            kind="hourly",
            usd_per_hour=unknown,
            includes_disk=False,
            usd_so_far=unknown,
            since="",
            usd_per_million=UsdPerMillion(now=unknown, session=unknown, since_rent=unknown),
            counted="generated",
        ),
        limit=Limit(cause="unknown", text=reason, evidence=(), ruled_out=()),
        findings=(),
        events_last_id=0,
        sources=(),
    )


def _engine(unknown: Missing) -> EngineInfo:
    return EngineInfo(
        id=unknown,
        kind=unknown,
        state=EngineState.ABSENT,
        phase=unknown,
        phase_s=unknown,
        eta_s=unknown,
        profile=unknown,
        model=unknown,
        served_name=unknown,
        version=unknown,
        listen=unknown,
        pid=unknown,
        session_id=unknown,
        uptime_s=unknown,
        restarts=0,
        exit=unknown,
        max_model_len=unknown,
        paused=unknown,
        argv_digest=unknown,
        effective=unknown,
    )


def _prefix_cache(unknown: Missing) -> PrefixCache:
    return PrefixCache(
        window_s=60.0,
        source="",
        age_s=unknown,
        hit_ratio=unknown,
        hit_tokens=unknown,
        queried_tokens=unknown,
        prompts=unknown,
        reusable_ratio=unknown,
        hit_ratio_since_start=unknown,
        last_loss=unknown,
    )


def _speculation(unknown: Missing) -> SpeculationInfo:
    return SpeculationInfo(
        window_s=60.0,
        source="",
        age_s=unknown,
        mode=unknown,
        control="none",
        started_with=unknown,
        depth=unknown,
        depth_max=unknown,
        method=unknown,
        tokens_per_pass=unknown,
        accepted_per_draft=unknown,
        acceptance_ratio=unknown,
        accepted_ratio_per_position=unknown,
        drafts=unknown,
        tail_verdict=unknown,
        locked_reason=None,
        off_tokens_per_s_at_this_load=unknown,
    )


def _kv_cache(unknown: Missing) -> KvCache:
    return KvCache(
        source="",
        age_s=unknown,
        held_tokens=unknown,
        reusable_tokens=unknown,
        free_tokens=unknown,
        capacity_tokens=unknown,
        held_ratio=unknown,
        fits_more=unknown,
    )


def _host(unknown: Missing) -> Host:
    return Host(
        source="",
        age_s=unknown,
        cpu_quota_vcpu=unknown,
        quota_origin="host",
        cpu_used_vcpu=unknown,
        throttled_ms_per_s=unknown,
        busiest_engine_thread=unknown,
        memory_used_bytes=unknown,
        memory_limit_bytes=unknown,
        shm_used_bytes=unknown,
        shm_total_bytes=unknown,
        disk_free_bytes=unknown,
    )
