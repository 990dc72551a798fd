"""The text of `/metrics`: vLLM's names, labels and histograms over what the core counted. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from a40console.sim.core import Core
from a40console.sim.counters import Histogram, grown

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What the metrics name."""

    model_name: str
    started_unix_s: float
    cache_dtype: str = "auto"
    gpu_memory_utilization: float = 0.92
    models_bandwidth: bool = False
    """Whether `--enable-mfu-metrics` was given: the estimates stay 0 without it."""


class Exposition:
    """One scrape."""

    def __init__(self, core: Core, identity: Identity, *, odd: Mapping[str, str]) -> None:
        self._core = core
        self._identity = identity
        self._odd = odd
        self._labels = f'engine="0",model_name="{identity.model_name}"'
        self._lines: list[str] = []

    def text(self) -> str:
        """The body."""
        self._plain("process_start_time_seconds", self._identity.started_unix_s)
        self._speculation()
        self._gauges()
        self._counters()
        for name, histogram in self._histograms():
            self._histogram(name, histogram)
        return "\n".join([*self._lines, ""])

    def _gauges(self) -> None:
        core = self._core
        waiting = len(core.waiting) + len(core.arriving)
        self._gauge("num_requests_running", len(core.running))
        self._gauge("num_requests_waiting", waiting)
        self._series(
            "num_requests_waiting_by_reason",
            "gauge",
            [('reason="capacity"', waiting), ('reason="deferred"', 0)],
        )
        states = ("awake", "weights_offloaded", "discard_all")
        self._series(
            "engine_sleep_state",
            "gauge",
            [(f'sleep_state="{state}"', state == states[core.sleep_level]) for state in states],
        )
        self._gauge("kv_cache_usage_perc", core.pool.held / core.pool.size)
        self._series("cache_config_info", "gauge", [(self._cache_labels(), 1)])

    def _cache_labels(self) -> str:
        core, identity = self._core, self._identity
        tokens = core.pool.size * core.pool.block_tokens
        values = {
            "block_size": core.pool.block_tokens,
            "cache_dtype": identity.cache_dtype,
            "enable_prefix_caching": core.options.prefix_caching,
            "gpu_memory_utilization": identity.gpu_memory_utilization,
            "kv_cache_size_tokens": tokens,
            "kv_cache_max_concurrency": round(tokens / core.options.max_model_len, 2),
            "num_gpu_blocks": core.pool.size,
        }
        return ",".join(f'{name}="{value}"' for name, value in values.items())

    def _counters(self) -> None:
        counted = self._core.statistics
        self._counter("prefix_cache_queries", counted.queried_tokens)
        self._counter("prefix_cache_hits", counted.hit_tokens)
        self._counter("num_preemptions", counted.preemptions)
        self._counter("prompt_tokens", counted.prompt_tokens)
        sources = (
            ("local_compute", counted.computed_prompt_tokens),
            ("local_cache_hit", counted.cached_tokens),
            ("external_kv_transfer", 0),
        )
        self._series(
            "prompt_tokens_by_source_total",
            "counter",
            [(f'source="{name}"', value) for name, value in sources],
        )
        self._counter("prompt_tokens_cached", counted.cached_tokens)
        self._counter("generation_tokens", counted.generated_tokens)
        reasons = ("stop", "length", "abort", "error", "repetition")
        self._series(
            "request_success_total",
            "counter",
            [(f'finished_reason="{name}"', counted.ended.get(name, 0)) for name in reasons],
        )
        read = counted.read_bytes if self._identity.models_bandwidth else 0.0
        self._counter("estimated_read_bytes_per_gpu", read)

    def _speculation(self) -> None:
        """Exposed only where speculation is configured, as vLLM does."""
        depth, counted = self._core.options.depth, self._core.statistics
        if not depth:
            return
        self._counter("spec_decode_num_drafts", counted.drafts)
        self._counter("spec_decode_num_draft_tokens", counted.draft_tokens)
        self._counter("spec_decode_num_accepted_tokens", counted.accepted_tokens)
        accepted = grown(counted.accepted_per_position, depth)
        self._series(
            "spec_decode_num_accepted_tokens_per_pos_total",
            "counter",
            [(f'position="{index}"', value) for index, value in enumerate(accepted)],
        )

    def _histograms(self) -> Iterator[tuple[str, Histogram]]:
        counted = self._core.statistics
        yield "request_prompt_tokens", counted.request_prompt_tokens
        yield "request_generation_tokens", counted.request_generated_tokens
        yield "iteration_tokens_total", counted.pass_tokens
        yield "time_to_first_token_seconds", counted.first_token_s
        yield "inter_token_latency_seconds", counted.between_tokens_s
        yield "request_time_per_output_token_seconds", counted.per_token_s
        yield "e2e_request_latency_seconds", counted.whole_s
        yield "request_queue_time_seconds", counted.queue_s
        yield "request_prefill_time_seconds", counted.prefill_s
        yield "request_decode_time_seconds", counted.decode_s

    def _counter(self, name: str, value: float) -> None:
        self._series(f"{name}_total", "counter", [("", value)])
        created = self._identity.started_unix_s
        self._series(f"{name}_created", "gauge", [("", created)])

    def _gauge(self, name: str, value: float) -> None:
        self._series(name, "gauge", [("", value)])

    def _series(self, name: str, kind: str, values: Sequence[tuple[str, float]]) -> None:
        self._head(f"vllm:{name}", kind)
        for labels, value in values:
            self._sample(f"vllm:{name}", labels, value)

    def _histogram(self, name: str, histogram: Histogram) -> None:
        full = f"vllm:{name}"
        self._head(full, "histogram")
        for bound, count in (*histogram.cumulated(), (inf, histogram.count)):
            text = "+Inf" if bound == inf else str(float(bound))
            self._sample(f"{full}_bucket", f'le="{text}"', count)
        self._sample(f"{full}_count", "", histogram.count)
        self._sample(f"{full}_sum", "", histogram.total)

    def _plain(self, name: str, value: float) -> None:
        self._head(name, "gauge")
        self._lines.append(f"{name} {value!r}")

    def _head(self, name: str, kind: str) -> None:
        self._lines.append(f"# HELP {name} Simulated.")
        self._lines.append(f"# TYPE {name} {kind}")

    def _sample(self, name: str, labels: str, value: float) -> None:
        every = f"{self._labels},{labels}" if labels else self._labels
        odd = next((text for start, text in self._odd.items() if name.startswith(start)), None)
        self._lines.append(f"{name}{{{every}}} {odd or float(value)!r}")
