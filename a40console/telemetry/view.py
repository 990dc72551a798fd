"""What telemetry says of the engine at one instant: the engine's blocks of a snapshot and more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from a40console.model.engine import EngineKind
from a40console.model.figures import Figure, Missing, Text
from a40console.model.latency import Latency
from a40console.model.request import EngineRow
from a40console.model.snapshot import (
    Gpu,
    KvCache,
    PrefixCache,
    RecentRequest,
    Requests,
    Slot,
    SourceStatus,
    SpeculationInfo,
    Throughput,
)
from a40console.telemetry.progress import Progress
from a40console.telemetry.reading import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """Tokens that an endpoint charged for: since its forwarder began, or in a window."""

    prompt_tokens: Figure
    """The cached ones among them."""

    cached_tokens: Figure
    generated_tokens: Figure
    untold_requests: Figure
    """Answers that said nothing of their tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineView:
    """The engine as its sources and the gateway's rows show it."""

    kind: EngineKind
    """What answers; for a foreign engine as found out."""

    slots: tuple[Slot, ...] | Missing
    recent: tuple[RecentRequest, ...]
    throughput: Throughput
    latest_throughput: Throughput
    """The same since the reading that the view before this one showed; window 0: none since."""

    steady_tokens_per_s: Figure
    """The speed of `throughput` where generation filled its window: what a price may rest on."""

    requests: Requests

    latency: Latency
    prefix_cache: PrefixCache
    speculation: SpeculationInfo
    """Control and what was asked are the caller's to fill in."""

    kv_cache: KvCache
    sources: tuple[SourceStatus, ...]
    version: Text
    served_names: tuple[str, ...]
    """Empty while not known."""

    max_model_len: Figure
    paused: bool | Missing
    asleep: bool | Missing
    settings: Mapping[str, Setting]
    """What the engine says is in force."""

    progress: Progress
    generated_tokens: Figure
    """Since the engine began."""

    charged: Charged | None
    """What an attached endpoint said it charged for; None of an engine that is not paid so."""

    charged_lately: Charged | None
    """The same of the last minute."""

    ended_tokens_per_s: Figure
    """What requests that ended within the window emitted: with the slots' it is the rate."""

    read_bytes_per_s: Figure
    """By each GPU, as the engine estimates it."""

    counters_reset_s: Figure
    """Seconds since the counters were last seen to begin again."""

    gpus: tuple[Gpu, ...] | Missing | None
    """The cards that a simulated engine pretends to have; None: the driver tells."""

    plugin_counts: bool
    """Whether the plugin counts requests, so that the gateway need not; true until it fails."""

    controls: Mapping[str, str] | None = None
    """Why each control that cannot be used cannot; None where the engine does not tell."""

    told: Mapping[str, EngineRow] = field(default_factory=dict)
    """The engine's own rows of the gateway's requests, by request id."""
