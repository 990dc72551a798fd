"""One reading of an engine, frozen: counters, gauges, histograms, settings and request rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from a40console.model.request import EngineRow

CounterName = Literal[
    "generated_tokens",
    "prompt_tokens",
    "computed_prompt_tokens",
    "cached_prompt_tokens",
    "queried_tokens",
    "hit_tokens",
    "passes",
    "prefill_passes",
    "pass_samples",
    "sequence_passes",
    "first_tokens",
    "started",
    "aborted",
    "errors",
    "preemptions",
    "drafts",
    "draft_tokens",
    "accepted_tokens",
    "read_bytes",
    "charged_prompt_tokens",
    "charged_cached_tokens",
    "charged_generated_tokens",
    "charged_untold_requests",
]
"""What only grows while an engine lives; see `aliases` for the series behind each."""

GaugeName = Literal[
    "running",
    "waiting",
    "max_running",
    "idle_slots",
    "awake",
    "process_start_s",
    "kv_usage_ratio",
    "kv_held_tokens",
    "kv_reusable_tokens",
    "kv_capacity_tokens",
    "kv_blocks",
    "kv_block_tokens",
    "kv_pools",
]
"""What goes up and down, or stays."""

HistogramName = Literal["pass_s", "queue_s", "ttft_s"]

Setting = str | int | float | bool
"""A setting that the engine says is in force."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram as exposed: how many samples lie at or below each bound."""

    bounds: tuple[float, ...]
    """Upper bounds, ascending; the last is infinity."""

    counts: tuple[float, ...]
    """Cumulative, one a bound."""

    sum: float | None
    """Sum of all samples; None where it is not a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveDepth:
    """The depth of speculation that an engine's worker reports."""

    tokens: int
    """Draft tokens of the passes to come; 0 is off."""

    deepest: int
    """What it was started with."""

    method: str
    changeable: bool
    """Whether it can be changed while the engine runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReading:
    """All that one source said at one instant; what it does not expose is not in the mappings."""

    source: str
    at_s: float
    """Monotonic clock of this machine."""

    counters: Mapping[CounterName, float] = field(default_factory=dict)
    gauges: Mapping[GaugeName, float] = field(default_factory=dict)
    histograms: Mapping[HistogramName, Histogram] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    """Counters and histograms that are there but no numbers, or whose value is not known."""

    estimated: frozenset[CounterName] = frozenset()
    """Counters that were worked out from a rounded figure."""

    waiting_by_reason: Mapping[str, float] = field(default_factory=dict)
    accepted_per_position: tuple[float, ...] | None = None
    """Accepted draft tokens by position, since start."""

    drafted_per_position: tuple[float, ...] | None = None
    """Drafts long enough to propose each position; None where only their total is known."""

    settings: Mapping[str, Setting] = field(default_factory=dict)
    rows: tuple[EngineRow, ...] | None = None
    """Running and queued requests; None where the source does not list them."""

    ended: tuple[EngineRow, ...] = ()
    """Requests that ended since the previous reading."""

    paused: bool | None = None
    speculating: bool | None = None
    """Whether the engine was started with speculation; None where it does not say."""

    live_depth: LiveDepth | None = None
    """None where the source does not tell."""

    controls: Mapping[str, str] | None = None
    """Why each control that cannot be used cannot; None where the source does not tell."""

    boot: str | None = None
    """Changes when the engine's process does; None where nothing tells."""
