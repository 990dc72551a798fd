"""A snapshot in which nothing is known: what the screen shows before the first one arrives."""

from __future__ import annotations

from a40console.model import blank
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.service_info import ServiceInfo
from a40console.model.snapshot import (
    PROTOCOL_VERSION,
    SCHEMA_VERSION,
    Cost,
    EngineInfo,
    Host,
    Limit,
    Snapshot,
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
        throughput=blank.throughput(unknown),
        requests=blank.requests(unknown),
        latency=blank.latency(unknown),
        prefix_cache=blank.prefix_cache(unknown),
        speculation=blank.speculation(unknown),
        kv_cache=blank.kv_cache(unknown),
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


def _host(unknown: Missing) -> Host:
    return Host(
        source=blank.NO_SOURCE,
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
