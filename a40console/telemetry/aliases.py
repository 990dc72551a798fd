"""The one table of metric names: vLLM 0.27 to 0.33 and older, Rust front end, vllm.cpp, llama.cpp.

Newer names come first and win, so an engine that exposes both is not counted twice. Series that
differ by the `engine` label are summed for counters and maxed for gauges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite, nan
from typing import TypeVar

from prometheus_client.samples import Sample

from a40console.telemetry.exposition import Samples
from a40console.telemetry.reading import (
    CounterName,
    EngineReading,
    GaugeName,
    Histogram,
    HistogramName,
    Setting,
)


@dataclass(frozen=True, slots=True)
class Series:
    """One metric name, with the label that picks its series where it has several meanings."""

    name: str
    label: tuple[str, str] | None = None


def _counter(*names: str) -> tuple[Series, ...]:
    """Names of a counter, with and without the suffix that client libraries add."""
    return tuple(Series(full) for name in names for full in (f"{name}_total", name))


COUNTERS: Mapping[CounterName, tuple[Series, ...]] = {
    "generated_tokens": _counter("vllm:generation_tokens", "llamacpp:tokens_predicted"),
    "prompt_tokens": _counter("vllm:prompt_tokens"),
    "computed_prompt_tokens": (
        Series("vllm:prompt_tokens_by_source_total", ("source", "local_compute")),
        *_counter("llamacpp:prompt_tokens"),
    ),
    "cached_prompt_tokens": _counter("vllm:prompt_tokens_cached", "llamacpp:prompt_tokens_cached"),
    "queried_tokens": _counter("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    "hit_tokens": _counter("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    "passes": (Series("vllm:iteration_tokens_total_count"), *_counter("llamacpp:n_decode")),
    "pass_samples": (
        Series("vllm:inter_token_latency_seconds_count"),
        Series("vllm:time_per_output_token_seconds_count"),
    ),
    "first_tokens": (Series("vllm:time_to_first_token_seconds_count"),),
    "errors": (Series("vllm:request_success_total", ("finished_reason", "error")),),
    "preemptions": _counter("vllm:num_preemptions"),
    "drafts": _counter("vllm:spec_decode_num_drafts", "llamacpp:spec_decode_num_drafts"),
    "draft_tokens": _counter(
        "vllm:spec_decode_num_draft_tokens", "llamacpp:spec_decode_num_draft_tokens"
    ),
    "accepted_tokens": _counter(
        "vllm:spec_decode_num_accepted_tokens", "llamacpp:spec_decode_num_accepted_tokens"
    ),
    "read_bytes": _counter("vllm:estimated_read_bytes_per_gpu"),
    "charged_prompt_tokens": _counter("a40console:charged_prompt_tokens"),
    "charged_cached_tokens": _counter("a40console:charged_cached_tokens"),
    "charged_generated_tokens": _counter("a40console:charged_generated_tokens"),
    "charged_untold_requests": _counter("a40console:charged_untold_requests"),
}

GAUGES: Mapping[GaugeName, tuple[Series, ...]] = {
    "running": (
        Series("vllm:num_requests_running"),
        Series("llamacpp:requests_processing"),
        Series("a40console:requests_running"),
    ),
    "waiting": (Series("vllm:num_requests_waiting"), Series("llamacpp:requests_deferred")),
    "kv_usage_ratio": (Series("vllm:kv_cache_usage_perc"), Series("vllm:gpu_cache_usage_perc")),
    "awake": (Series("vllm:engine_sleep_state", ("sleep_state", "awake")),),
    "process_start_s": (Series("process_start_time_seconds"),),
}

HISTOGRAMS: Mapping[HistogramName, tuple[str, ...]] = {
    "pass_s": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "queue_s": ("vllm:request_queue_time_seconds",),
    "ttft_s": ("vllm:time_to_first_token_seconds",),
}

ACCEPTED_PER_POSITION = _counter(
    "vllm:spec_decode_num_accepted_tokens_per_pos",
    "llamacpp:spec_decode_num_accepted_tokens_per_pos",
)
WAITING_BY_REASON = (Series("vllm:num_requests_waiting_by_reason"),)
CACHE_CONFIG = (Series("vllm:cache_config_info"),)
FORWARDER = "forwarder.metrics"
"""The source of an attached endpoint: its forwarder counts what was charged, and no more."""

MEAN_BUSY_SLOTS = "llamacpp:n_busy_slots_per_decode"

WANTED: tuple[str, ...] = tuple(
    dict.fromkeys(
        [
            *(series.name for names in COUNTERS.values() for series in names),
            *(series.name for names in GAUGES.values() for series in names),
            *(name for names in HISTOGRAMS.values() for name in names),
            *(series.name for series in (*ACCEPTED_PER_POSITION, *WAITING_BY_REASON)),
            *(series.name for series in CACHE_CONFIG),
            MEAN_BUSY_SLOTS,
        ]
    )
)
"""Beginnings of the sample names that the table reads."""

_TABLE: Mapping[str, tuple[Series, ...]] = {
    **{str(name): series for name, series in COUNTERS.items()},
    **{str(name): series for name, series in GAUGES.items()},
    **{str(name): tuple(map(Series, names)) for name, names in HISTOGRAMS.items()},
}


def why_absent(name: CounterName | GaugeName | HistogramName, reading: EngineReading) -> str:
    """Why a reading has no such figure: which metric is not exposed, or what is not counted."""
    plain = name.replace("_", " ")
    if not reading.source.endswith("metrics"):
        return f"{reading.source} does not count {plain}"
    llama = reading.source.startswith("llamacpp")
    if llama and name == "generated_tokens":
        return "llama.cpp counts tokens when a request ends, and its slots are not readable"
    if reading.source == FORWARDER:
        return f"an endpoint somewhere else does not tell its {plain}"
    prefix = "llamacpp:" if llama else "vllm:"
    known = [series.name for series in _TABLE.get(name, ()) if series.name.startswith(prefix)]
    return f"{known[0]} is not exposed" if known else f"the engine does not count {plain}"


def read_samples(samples: Samples, *, source: str, at_s: float) -> EngineReading:
    """An exposition's samples as a reading; a value that is no number costs its own figure only."""
    counters = _scalars(samples, COUNTERS, sum)
    unreadable: set[str] = {
        name for name in COUNTERS if name not in counters and _is_there(samples, name)
    }
    _derive(samples, counters)
    settings = _settings(samples)
    gauges = _scalars(samples, GAUGES, max)
    gauges |= _kv_pool(samples)
    accepted = _by_label(_pick(samples, ACCEPTED_PER_POSITION), "position")
    started = gauges.get("process_start_s")
    histograms = {name: _histogram(samples, names) for name, names in HISTOGRAMS.items()}
    unreadable |= {
        name
        for name, names in HISTOGRAMS.items()
        if histograms[name] is None and any(f"{series}_bucket" in samples for series in names)
    }
    return EngineReading(
        source=source,
        at_s=at_s,
        counters=counters,
        gauges=gauges,
        histograms={name: found for name, found in histograms.items() if found is not None},
        unreadable=frozenset(unreadable),
        waiting_by_reason=_by_label(_pick(samples, WAITING_BY_REASON), "reason", max),
        accepted_per_position=_positions(accepted),
        settings=settings,
        speculating=None
        if _is_llama(samples) or source == FORWARDER
        else _is_there(samples, "drafts"),
        boot=None if started is None else str(started),
    )


Name = TypeVar("Name", bound=str)
Fold = Callable[[list[float]], float]


def _is_there(samples: Samples, name: CounterName) -> bool:
    return bool(_pick(samples, COUNTERS[name]))


def _is_llama(samples: Samples) -> bool:
    return any(name.startswith("llamacpp:") for name in samples)


def _scalars(
    samples: Samples, table: Mapping[Name, tuple[Series, ...]], fold: Fold
) -> dict[Name, float]:
    found: dict[Name, float] = {}
    for name, candidates in table.items():
        values = [sample.value for sample in _pick(samples, candidates)]
        if values and all(map(isfinite, values)):
            found[name] = float(fold(values))
    return found


def _pick(samples: Samples, candidates: Iterable[Series]) -> list[Sample]:
    """The series of the first name that is exposed."""
    for candidate in candidates:
        series = samples.get(candidate.name, [])
        if candidate.label is not None:
            key, value = candidate.label
            series = [sample for sample in series if sample.labels.get(key) == value]
        if series:
            return series
    return []


def _derive(samples: Samples, counters: dict[CounterName, float]) -> None:
    """What follows from several series of one exposition."""
    prompt, cached = counters.get("prompt_tokens"), counters.get("cached_prompt_tokens")
    if "computed_prompt_tokens" not in counters and prompt is not None and cached is not None:
        counters["computed_prompt_tokens"] = prompt - cached
    computed = counters.get("computed_prompt_tokens")
    if _is_llama(samples) and computed is not None and cached is not None:
        counters["queried_tokens"], counters["hit_tokens"] = computed + cached, cached
    rest, first = counters.get("pass_samples"), counters.get("first_tokens")
    if rest is not None and first is not None:
        # The first token comes out of a pass too, but only the later ones are latency samples.
        counters["sequence_passes"] = rest + first


def _histogram(samples: Samples, names: Iterable[str]) -> Histogram | None:
    for name in names:
        if buckets := samples.get(f"{name}_bucket"):
            return _fold_buckets(buckets, samples.get(f"{name}_sum", []))
    return None


def _fold_buckets(buckets: list[Sample], sums: list[Sample]) -> Histogram | None:
    counts: dict[float, float] = {}
    for bucket in buckets:
        bound = float(bucket.labels["le"])
        counts[bound] = counts.get(bound, 0.0) + bucket.value
    if inf not in counts or not all(map(isfinite, counts.values())):
        return None
    total = sum(sample.value for sample in sums)
    bounds = _shared(tuple(sorted(counts)))
    return Histogram(
        bounds=bounds,
        counts=tuple(counts[bound] for bound in bounds),
        sum=total if sums and isfinite(total) else None,
    )


@lru_cache(maxsize=64)
def _shared(bounds: tuple[float, ...]) -> tuple[float, ...]:
    """One tuple for all readings that are kept: a histogram's bounds stay the same."""
    return bounds


def _by_label(series: list[Sample], label: str, fold: Fold = sum) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for sample in series:
        values.setdefault(sample.labels.get(label, ""), []).append(sample.value)
    return {
        key: float(fold(listed)) for key, listed in values.items() if all(map(isfinite, listed))
    }


def _positions(accepted: Mapping[str, float]) -> tuple[float, ...] | None:
    """Counts by position, in order; the Rust front end lists the positions in any order.

    A position whose count is no number is NaN here, so that it alone is missing.
    """
    numbered = {int(key): value for key, value in accepted.items() if key.isdigit()}
    if not numbered:
        return None
    return tuple(numbered.get(position, nan) for position in range(max(numbered) + 1))


def _settings(samples: Samples) -> dict[str, Setting]:
    series = _pick(samples, CACHE_CONFIG)
    if not series:
        return {}
    return {
        key: _typed(value)
        for key, value in series[0].labels.items()
        if value != "None" and key != "engine" and not key.startswith("_")
    }


def _typed(text: str) -> Setting:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _kv_pool(samples: Samples) -> dict[GaugeName, float]:
    """Capacity of the KV cache in tokens, and in blocks where the engine tells them."""
    series = _pick(samples, CACHE_CONFIG)
    pool: dict[GaugeName, float] = {}
    capacity = 0.0
    for sample in series:
        labels = {key: _typed(value) for key, value in sample.labels.items()}
        blocks, size = labels.get("num_gpu_blocks"), labels.get("block_size")
        tokens = labels.get("kv_cache_size_tokens")
        if isinstance(blocks, int) and isinstance(size, int):
            pool["kv_blocks"], pool["kv_block_tokens"] = float(blocks), float(size)
            capacity += tokens if isinstance(tokens, int) else blocks * size
        elif isinstance(tokens, int):
            capacity += tokens
    if capacity:
        pool["kv_capacity_tokens"], pool["kv_pools"] = capacity, float(len(series))
    return pool
