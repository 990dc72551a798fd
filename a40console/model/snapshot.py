"""Everything the console knows at one instant: the contract of `status --json` and the screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a40console.model.busiest_thread import BusiestThread
from a40console.model.engine import EngineEnd, EngineKind, EngineState
from a40console.model.event import Finding
from a40console.model.figures import NOT_TOLD, Figure, Missing, Text
from a40console.model.latency import Latency
from a40console.model.request import Method, Phase
from a40console.model.service_info import ServiceInfo
from a40console.model.session import SessionPhase
from a40console.model.switching import NO_SWITCH, SwitchInfo

SCHEMA_VERSION = 1
PROTOCOL_VERSION = 2
NO_PLACEMENTS = Missing("the profile has no placements")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A setting that runs otherwise than asked."""

    setting: str
    asked: str | int | float | bool | None
    effective: str | int | float | bool | Missing
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """The engine: identity, state, and what it runs against what was asked."""

    id: Text
    kind: EngineKind | Missing
    state: EngineState
    phase: Text
    phase_s: Figure
    eta_s: Figure
    profile: Text
    model: Text
    served_name: Text
    version: Text
    listen: Text
    pid: Figure
    session_id: Figure
    uptime_s: Figure
    restarts: int
    exit: EngineEnd | Missing
    max_model_len: Figure
    paused: bool | Missing
    argv_digest: Text
    effective: tuple[Difference, ...] | Missing
    placement: Text = NO_PLACEMENTS
    """Which rung of the profile's ladder it was started on."""

    switch: SwitchInfo | Missing = NO_SWITCH
    controls: dict[str, str] | Missing = NOT_TOLD
    """Why each control of the running engine that cannot be used cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A live request, whoever sent it."""

    slot: int
    request_id: str
    session: Text
    agent: Text
    client: Text
    model: Text
    direct: bool
    """Not through our gateway."""

    phase: Phase
    prompt_tokens: Figure
    cached_tokens: Figure
    reread_tokens: Figure
    generated_tokens: Figure
    max_tokens: Figure
    prefill_ratio: Figure
    tokens_per_s: Figure
    passes_per_s: Figure
    tokens_per_pass: Figure
    window_tokens_per_s: Figure
    ttft_s: Figure
    age_s: Figure
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRequest:
    """A finished request."""

    request_id: str
    session: Text
    finish_reason: Text
    generated_tokens: Figure
    tokens_per_s: Figure
    ttft_s: Figure
    ended_at: str
    client: Text = NOT_TOLD
    model: Text = NOT_TOLD
    queue_s: Figure = NOT_TOLD
    """Seconds held at the gateway and queued in the engine."""

    prefill_s: Figure = NOT_TOLD
    decode_s: Figure = NOT_TOLD
    """Seconds from the first token to the last."""

    agent: Text = NOT_TOLD
    prompt_tokens: Figure = NOT_TOLD
    cached_tokens: Figure = NOT_TOLD
    reread_tokens: Figure = NOT_TOLD
    max_tokens: Figure = NOT_TOLD
    method: Text = NOT_TOLD
    """How its tokens were counted, as a live request's."""

    age_s: Figure = NOT_TOLD
    """Seconds from its arrival to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A client's session: its requests added up."""

    session: str
    client: Text
    phase: SessionPhase
    tool: Text
    phase_s: Figure
    turns: int
    requests: int
    context_tokens: Figure
    window_tokens: Figure
    prompt_tokens: Figure
    reused_tokens: Figure
    reread_tokens: Figure
    generated_tokens: Figure
    hit_ratio: Figure
    sustained_tokens_per_s: Figure
    cost_usd: Figure
    started_at: str
    last_at: str
    """The end of its last answer, of a first request under way its arrival: ISO 8601, UTC."""

    tokens_per_s: Figure
    """Now, all its slots together."""

    ttft_last_s: Figure
    """Of its newest turn that has begun to answer."""

    ttft_median_s: Figure
    """Of its turns that are kept."""

    compacts_at_tokens: Figure
    """Context at which the client sums its history up by itself."""

    capturing: bool
    """Whether the text of its requests and answers is written to files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The engine's speed, from its counters."""

    window_s: float
    source: str
    age_s: Figure
    generation_tokens_per_s: Figure
    prefill_tokens_per_s: Figure
    passes_per_s: Figure
    sequences_per_pass: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """How many requests are where, and how many ended badly; `gate` says why any are held."""

    source: str
    age_s: Figure
    held: int
    waiting: Figure
    waiting_by_reason: dict[str, Figure]
    running: Figure
    max_running: Figure
    aborted: Figure
    failed: Figure
    preemptions: Figure
    resent: Figure
    gate: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLoss:
    """A prefix that was lost: whose, when, why."""

    session: str
    turn: int
    tokens: Figure
    cause: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixCache:
    """Hits of the prefix cache over the prompts admitted in the window."""

    window_s: float
    source: str
    age_s: Figure
    hit_ratio: Figure
    hit_tokens: Figure
    queried_tokens: Figure
    prompts: Figure
    reusable_ratio: Figure
    hit_ratio_since_start: Figure
    last_loss: CacheLoss | Missing


@dataclass(frozen=True, slots=True)
class DepthSpeed:
    """How fast all requests together decoded at one depth of speculation, steadily."""

    depth: int
    """0 is without speculation."""

    tokens_per_s: Figure
    age_s: float
    """Since it was last measured."""

    is_rough: bool = False
    """Whether contexts were only about as long as they are now: it is an estimate then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationInfo:
    """Speculative decoding: what runs, and what it brings."""

    window_s: float
    source: str
    age_s: Figure
    mode: Literal["off", "on", "auto"] | Missing
    control: Literal["live", "restart", "none"]
    started_with: Figure
    depth: Figure
    depth_max: Figure
    method: Text
    tokens_per_pass: Figure
    accepted_per_draft: Figure
    acceptance_ratio: Figure
    accepted_ratio_per_position: tuple[Figure, ...] | Missing
    drafts: Figure
    tail_verdict: Text
    locked_reason: str | None
    off_tokens_per_s_at_this_load: Figure
    measured_at_this_load: tuple[DepthSpeed, ...] = ()
    """By depth, in this engine start: as many requests, with contexts of about this length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """Where the KV cache's tokens are."""

    source: str
    age_s: Figure
    held_tokens: Figure
    reusable_tokens: Figure
    free_tokens: Figure
    capacity_tokens: Figure
    held_ratio: Figure
    fits_more: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU, each reading on its own."""

    source: str
    age_s: Figure
    index: int
    name: Text
    memory_used_bytes: Figure
    memory_total_bytes: Figure
    memory_baseline_bytes: Figure
    utilization_ratio: Figure
    power_w: Figure
    power_limit_w: Figure
    temperature_c: Figure
    sm_clock_mhz: Figure
    throttle_reasons: tuple[str, ...] | Missing
    read_bytes_per_s: Figure
    peak_bytes_per_s: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The container's share of the machine, never the host's own size unless it says so."""

    source: str
    age_s: Figure
    cpu_quota_vcpu: Figure
    quota_origin: Literal["cgroup2", "cgroup1", "affinity", "host"]
    cpu_used_vcpu: Figure
    throttled_ms_per_s: Figure
    busiest_engine_thread: BusiestThread | Missing
    memory_used_bytes: Figure
    memory_limit_bytes: Figure
    shm_used_bytes: Figure
    shm_total_bytes: Figure
    disk_free_bytes: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class UsdPerMillion:
    """Dollars a million tokens, by three spans: never one of them alone."""

    now: Figure
    session: Figure
    since_rent: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the engine costs."""

    kind: Literal["hourly", "per_token"]
    usd_per_hour: Figure
    includes_disk: bool
    usd_so_far: Figure
    since: str
    usd_per_million: UsdPerMillion
    counted: Literal["generated", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What bounds the present speed, with its evidence, and what was ruled out."""

    cause: str
    text: str
    evidence: tuple[str, ...]
    ruled_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """One telemetry source and how fresh it is."""

    name: str
    state: Literal["ok", "stale", "failed", "absent"]
    age_s: Figure
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The console's whole knowledge at one instant."""

    schema: int
    protocol: int
    seq: int
    at: str
    monotonic_s: float
    interval_s: float
    simulated: bool
    service: ServiceInfo
    engine: EngineInfo
    slots: tuple[Slot, ...] | Missing
    recent: tuple[RecentRequest, ...]
    sessions: tuple[Session, ...] | Missing
    throughput: Throughput
    requests: Requests
    latency: Latency
    prefix_cache: PrefixCache
    speculation: SpeculationInfo
    kv_cache: KvCache
    gpus: tuple[Gpu, ...] | Missing
    host: Host
    cost: Cost
    limit: Limit
    findings: tuple[Finding, ...]
    events_last_id: int
    sources: tuple[SourceStatus, ...]
