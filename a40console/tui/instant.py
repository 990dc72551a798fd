"""A past instant as a snapshot: what the history kept of it, and why the rest is not known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from a40console.model.control import HistoryPoint
from a40console.model.figures import Figure, Missing, Text, total
from a40console.model.latency import FirstToken
from a40console.model.snapshot import Gpu, Host, Snapshot
from a40console.tui.blank import blank_snapshot
from a40console.tui.reading import Reading

NOT_KEPT = "the history does not keep it"
NOTHING = "the history has nothing of this instant"
SOURCE = "history"


def at_instant(reading: Reading) -> Reading:
    """The reading as it was at the end of the span that is looked at; itself where that is now."""
    if reading.view.live:
        return reading
    point = reading.past.point_at(reading.view)
    live = reading.snapshot
    if point is None:
        _, end_s = reading.view.window(reading.past.now_s)
        nothing = blank_snapshot(NOTHING)
        return replace(reading, snapshot=_framed(nothing, live, end_s), age_s=0.0)
    return replace(reading, snapshot=snapshot_at(point, live), age_s=0.0)


def held(reading: Reading) -> Figure:
    """Requests held at the gateway: a snapshot has a count of them, of the past it may be lost."""
    if reading.view.live:
        return reading.snapshot.requests.held
    point = reading.past.point_at(reading.view)
    return Missing(NOTHING) if point is None else point.held


def first_token(reading: Reading) -> FirstToken | Figure:
    """Time to first token: the block of now, of the past the one figure that the history keeps.

    The history takes it from the requests listed one by one, so it is the gateway's.
    """
    if reading.view.live:
        return reading.snapshot.latency.ttft_s
    point = reading.past.point_at(reading.view)
    return Missing(NOTHING) if point is None else point.ttft_s


def snapshot_at(point: HistoryPoint, live: Snapshot) -> Snapshot:
    """The snapshot that a point of the history makes: everything else is missing.

    What its form cannot hold without a claim stays out: `held` and `first_token` have it, and the
    state of the engine is not kept. Sizes that belong to the machine (GPU memory, power limit,
    quota) are those of now.
    """
    blank = _framed(blank_snapshot(NOT_KEPT), live, point.at_s)
    return replace(
        blank,
        simulated=point.simulated,
        throughput=replace(
            blank.throughput,
            source=SOURCE,
            age_s=0.0,
            generation_tokens_per_s=point.generation_tokens_per_s,
            prefill_tokens_per_s=point.prefill_tokens_per_s,
            passes_per_s=point.passes_per_s,
        ),
        requests=replace(
            blank.requests,
            source=SOURCE,
            age_s=0.0,
            running=point.running,
            waiting=point.waiting,
        ),
        prefix_cache=replace(
            blank.prefix_cache, source=SOURCE, age_s=0.0, hit_ratio=point.cache_hit_ratio
        ),
        speculation=replace(
            blank.speculation,
            source=SOURCE,
            age_s=0.0,
            tokens_per_pass=point.tokens_per_pass,
            acceptance_ratio=point.acceptance_ratio,
        ),
        kv_cache=replace(
            blank.kv_cache,
            source=SOURCE,
            age_s=0.0,
            held_ratio=point.kv_held_ratio,
            capacity_tokens=live.kv_cache.capacity_tokens,
        ),
        gpus=_gpus(point, live),
        host=_host(point, live, blank.host),
    )


def _framed(blank: Snapshot, live: Snapshot, at_s: float) -> Snapshot:
    """What does not change with the instant."""
    return replace(
        blank,
        seq=live.seq,
        at=datetime.fromtimestamp(at_s, UTC).isoformat(),
        interval_s=live.interval_s,
        simulated=live.simulated,
        service=live.service,
        events_last_id=live.events_last_id,
    )


def _host(point: HistoryPoint, live: Snapshot, blank: Host) -> Host:
    return replace(
        blank,
        source=SOURCE,
        age_s=0.0,
        cpu_used_vcpu=point.cpu_used_vcpu,
        throttled_ms_per_s=point.throttled_ms_per_s,
        cpu_quota_vcpu=live.host.cpu_quota_vcpu,
        quota_origin=live.host.quota_origin,
        memory_limit_bytes=live.host.memory_limit_bytes,
        shm_total_bytes=live.host.shm_total_bytes,
    )


def _gpus(point: HistoryPoint, live: Snapshot) -> tuple[Gpu, ...] | Missing:
    """All GPUs as one: the history keeps their memory and power together, and the highest use."""
    used = point.gpu_memory_used_bytes
    known = () if isinstance(live.gpus, Missing) else live.gpus
    if isinstance(used, Missing) and isinstance(point.gpu_utilization_ratio, Missing):
        return used
    unknown = Missing(NOT_KEPT)
    name: Text = f"{len(known)} together" if len(known) > 1 else known[0].name if known else unknown
    return (
        Gpu(
            source=SOURCE,
            age_s=0.0,
            index=0,
            name=name,
            memory_used_bytes=used,
            memory_total_bytes=total((gpu.memory_total_bytes for gpu in known), reason=NOT_KEPT),
            memory_baseline_bytes=unknown,
            utilization_ratio=point.gpu_utilization_ratio,
            power_w=point.gpu_power_w,
            power_limit_w=total((gpu.power_limit_w for gpu in known), reason=NOT_KEPT),
            temperature_c=unknown,
            sm_clock_mhz=unknown,
            throttle_reasons=unknown,
            read_bytes_per_s=unknown,
            peak_bytes_per_s=unknown,
        ),
    )
