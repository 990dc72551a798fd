"""What the status line says of a focused panel: its source, window and age, and its dashes."""

from __future__ import annotations

from a40console.model.blank import NO_SOURCE
from a40console.model.figures import Figure, Missing, number
from a40console.model.latency import FirstToken
from a40console.tui import format as fmt
from a40console.tui.instant import first_token, held
from a40console.tui.panels.gpus import valid_share
from a40console.tui.panels.slot_notes import reasons
from a40console.tui.reading import Reading


def _origin(source: str, window_s: float | None, age_s: Figure) -> str:
    parts = ["no source" if source == NO_SOURCE else source]
    if window_s:
        parts.append(f"window {fmt.window(window_s)}")
    age = number(age_s)
    if age is not None:
        parts.append(f"{fmt.age(age)} old" if age >= 1 else "fresh")
    return ", ".join(parts)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def speed_notes(reading: Reading) -> str:
    """Of the chart."""
    throughput = reading.snapshot.throughput
    return _joined(
        "Speed: " + _origin(throughput.source, throughput.window_s, throughput.age_s),
        reasons(
            (
                ("gen", throughput.generation_tokens_per_s),
                ("prefill", throughput.prefill_tokens_per_s),
                ("passes", throughput.passes_per_s),
            )
        ),
    )


def latency_notes(reading: Reading) -> str:
    """Of the latencies and the request counts."""
    snapshot = reading.snapshot
    latency, requests = snapshot.latency, snapshot.requests
    first, steps = first_token(reading), latency.pass_s
    return _joined(
        "Latency: " + _origin(requests.source, latency.window_s, requests.age_s),
        reasons(
            (
                ("first token", first),
                ("p50", first.p50 if isinstance(first, FirstToken) else first),
                ("pass", steps),
                ("p95", steps if isinstance(steps, Missing) else steps.p95),
                ("running", requests.running),
                ("of", requests.max_running),
                ("preempted", requests.preemptions),
                ("aborted", requests.aborted),
                ("failed", requests.failed),
            )
        ),
    )


def speculation_notes(reading: Reading) -> str:
    """Of speculation."""
    info = reading.snapshot.speculation
    return _joined(
        "Speculation: " + _origin(info.source, info.window_s, info.age_s),
        reasons(
            (
                ("mode", info.mode),
                ("depth", info.depth),
                ("tok/pass", info.tokens_per_pass),
                ("curve", info.accepted_ratio_per_position),
                ("verdict", info.tail_verdict),
                ("without", info.off_tokens_per_s_at_this_load),
            )
        ),
    )


def cache_notes(reading: Reading) -> str:
    """Of the prefix cache and the KV cache."""
    cache, kv = reading.snapshot.prefix_cache, reading.snapshot.kv_cache
    return _joined(
        "Caches: " + _origin(cache.source, cache.window_s, cache.age_s),
        reasons(
            (
                ("hits", cache.hit_ratio),
                ("reusable share", cache.reusable_ratio),
                ("since start", cache.hit_ratio_since_start),
                ("held", kv.held_tokens),
                ("reusable", kv.reusable_tokens),
                ("capacity", kv.capacity_tokens),
                ("more fit", kv.fits_more),
            )
        ),
    )


def machine_notes(reading: Reading) -> str:
    """Of the container and its GPUs."""
    host, gpus = reading.snapshot.host, reading.snapshot.gpus
    named: list[tuple[str, object]] = [
        ("quota", host.cpu_quota_vcpu),
        ("vCPU", host.cpu_used_vcpu),
        ("throttled", host.throttled_ms_per_s),
        ("hottest thread", host.busiest_engine_thread),
        ("RAM", host.memory_used_bytes),
        ("RAM limit", host.memory_limit_bytes),
        ("shm", host.shm_used_bytes),
        ("disk", host.disk_free_bytes),
        ("GPU", gpus),
    ]
    origin = _origin(host.source, None, host.age_s)
    return _joined(f"Machine: {origin}, quota from {host.quota_origin}", reasons(named))


def gpu_notes(reading: Reading) -> str:
    """Of the GPUs: where the figures come from, and why one is a dash."""
    gpus = reading.snapshot.gpus
    if isinstance(gpus, Missing):
        return f"GPUs: {gpus.reason}"
    named: list[tuple[str, object]] = []
    for gpu in gpus:
        card = f"GPU {gpu.index} " if len(gpus) > 1 else ""
        named += [
            (f"{card}memory", gpu.memory_used_bytes),
            (f"{card}use", valid_share(gpu.utilization_ratio)),
            (f"{card}power", gpu.power_w),
            (f"{card}limit", gpu.power_limit_w),
            (f"{card}heat", gpu.temperature_c),
            (f"{card}clock", gpu.sm_clock_mhz),
            (f"{card}throttle", gpu.throttle_reasons),
            (f"{card}reads", gpu.read_bytes_per_s),
        ]
    origin = _origin(gpus[0].source, None, gpus[0].age_s) if gpus else "none"
    return _joined(f"GPUs: {origin}", reasons(named))


def queue_notes(reading: Reading) -> str:
    """Of what waits."""
    requests, waited = reading.snapshot.requests, reading.snapshot.latency.queue_s
    return _joined(
        "Queue: " + _origin(requests.source, None, requests.age_s),
        reasons((("held", held(reading)), ("in the engine", requests.waiting), ("waited", waited))),
    )


def trend_notes(reading: Reading) -> str:
    """Of the sparks below the chart."""
    timeline = reading.past.timeline
    step_s = timeline.step_s(reading.view, reading.past.now_s)
    told = "Over time: the history of the service, and what this console saw"
    return _joined(told, f"a reading every {fmt.window(step_s)}", timeline.trouble)
