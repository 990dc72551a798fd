"""One point of the past from a snapshot, the same for the service's record and a console's own.

Its speeds are the means that a screen shows; the service's record puts each interval's own in their
place, and a console fetches those.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from a40console.model.control import HistoryPoint
from a40console.model.figures import Figure, Missing, number, total
from a40console.model.freshness import present
from a40console.model.snapshot import Gpu, Snapshot

SILENT = Missing("its source had fallen silent")
NO_FIRST_TOKEN = Missing("no request got its first token yet")


def history_point(snapshot: Snapshot, at_s: float) -> HistoryPoint:
    """What a chart keeps of a snapshot: a gap, not the last value, where its source was old.

    Args:
        snapshot: The snapshot.
        at_s: Unix time of it.
    """
    now = partial(_present, interval_s=snapshot.interval_s)
    speed, requests, host = snapshot.throughput, snapshot.requests, snapshot.host
    cache, speculation, kv = snapshot.prefix_cache, snapshot.speculation, snapshot.kv_cache
    generation = now(speed.generation_tokens_per_s, speed.age_s)
    gpus = partial(_of_gpus, snapshot.gpus, interval_s=snapshot.interval_s)
    return HistoryPoint(
        at_s=at_s,
        generation_tokens_per_s=generation,
        generation_peak_tokens_per_s=generation,
        prefill_tokens_per_s=now(speed.prefill_tokens_per_s, speed.age_s),
        passes_per_s=now(speed.passes_per_s, speed.age_s),
        tokens_per_pass=now(speculation.tokens_per_pass, speculation.age_s),
        running=now(requests.running, requests.age_s),
        waiting=now(requests.waiting, requests.age_s),
        held=requests.held,
        cache_hit_ratio=now(cache.hit_ratio, cache.age_s),
        kv_held_ratio=now(kv.held_ratio, kv.age_s),
        acceptance_ratio=now(speculation.acceptance_ratio, speculation.age_s),
        ttft_s=_last_first_token(snapshot),
        cpu_used_vcpu=now(host.cpu_used_vcpu, host.age_s),
        throttled_ms_per_s=now(host.throttled_ms_per_s, host.age_s),
        gpu_memory_used_bytes=gpus(lambda gpu: gpu.memory_used_bytes, total),
        gpu_utilization_ratio=gpus(lambda gpu: gpu.utilization_ratio, _highest),
        gpu_power_w=gpus(lambda gpu: gpu.power_w, total),
        usd_so_far=snapshot.cost.usd_so_far,
        known_ratio=0.0 if isinstance(generation, Missing) else 1.0,
        simulated=snapshot.simulated,
    )


def _present(figure: Figure, age_s: Figure, *, interval_s: float) -> Figure:
    """The figure, or why it is no present one, in words that do not change with its age."""
    shown = present(figure, age_s, interval_s=interval_s)
    return SILENT if isinstance(shown, Missing) and number(figure) is not None else shown


def _of_gpus(
    gpus: tuple[Gpu, ...] | Missing,
    read: Callable[[Gpu], Figure],
    together: Callable[[list[Figure]], Figure],
    *,
    interval_s: float,
) -> Figure:
    if isinstance(gpus, Missing):
        return gpus
    if not gpus:
        return Missing("there is no GPU")
    return together([_present(read(gpu), gpu.age_s, interval_s=interval_s) for gpu in gpus])


def _highest(figures: list[Figure]) -> Figure:
    """The highest that is known; the first reason where none is."""
    known = [figure for figure in figures if number(figure) is not None]
    return max(known, key=lambda figure: number(figure) or 0.0) if known else figures[0]


def _last_first_token(snapshot: Snapshot) -> Figure:
    first = snapshot.latency.ttft_s
    if isinstance(first, Missing):
        return first
    return first.last[-1] if first.last else NO_FIRST_TOKEN
