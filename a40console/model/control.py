"""What the control API answers with, besides snapshots and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from a40console.model.engine import EngineEnd
from a40console.model.event import Event, Severity
from a40console.model.figures import NOT_TOLD, Figure, Missing, Text

NOT_RECORDED = Missing("not recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Who answers on the socket: compared before anything else is asked."""

    version: str
    schema: int
    protocol: int
    pid: int
    gateway_url: str | None
    """Where clients reach the models; None while the gateway is not listening."""

    events_last_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSummary:
    """A profile as the picker lists it."""

    name: str
    title: str
    kind: str
    model: str
    origin: str
    """`shipped`, or the file it was read from."""

    speculation: str | None
    """`ngram 24, off`; None where the profile has none."""

    usd_per_hour: float | None
    ready: bool
    """Whether this machine has what it needs."""

    why_not: str | None
    """What is missing, and the line that mends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """A piece of the engine's output."""

    path: str | None
    """The file it comes from; None where there is no engine."""

    text: str
    next_offset: int
    """Where the next read continues, in bytes; smaller than before after a rotation."""

    size_bytes: int = 0
    """How long the file is now."""

    skipped_lines: int = 0
    """Lines that were left out before the text, because more was waiting than was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPoint:
    """A span of the past, for charts: a second, or what a coarser step keeps of its seconds.

    Rates are the mean of what was known in the span, what presses for a moment (`peak`, queues,
    cache and memory held, throttling, time to first token) its highest. Where nothing was known a
    figure is missing with the reason.
    """

    at_s: float
    """Unix time at which the span begins; how long it is says the `History` it stands in."""

    generation_tokens_per_s: Figure
    prefill_tokens_per_s: Figure
    running: Figure
    waiting: Figure
    """Queued in the engine, at most."""

    generation_peak_tokens_per_s: Figure = NOT_RECORDED
    passes_per_s: Figure = NOT_RECORDED
    tokens_per_pass: Figure = NOT_RECORDED
    held: Figure = NOT_RECORDED
    """Held at the gateway, at most."""

    cache_hit_ratio: Figure = NOT_RECORDED
    kv_held_ratio: Figure = NOT_RECORDED
    acceptance_ratio: Figure = NOT_RECORDED
    ttft_s: Figure = NOT_RECORDED
    """Of the last request that got its first token; the longest of a coarser span."""

    cpu_used_vcpu: Figure = NOT_RECORDED
    throttled_ms_per_s: Figure = NOT_RECORDED
    gpu_memory_used_bytes: Figure = NOT_RECORDED
    """Of all GPUs together."""

    gpu_utilization_ratio: Figure = NOT_RECORDED
    """Of the busiest GPU."""

    gpu_power_w: Figure = NOT_RECORDED
    """Of all GPUs together."""

    usd_so_far: Figure = NOT_RECORDED
    """As the cost block had it at the span's end; it begins again where the engine does."""

    known_ratio: float = 1.0
    """Share of the span in which the generation rate was known: below 1 it has a gap within."""

    simulated: bool = False
    """Whether a simulated engine is in it: its figures are no measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long readings of one resolution are kept."""

    step_s: float
    span_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The past between two instants, in points of equal length; gaps are points too."""

    since_s: float
    """Unix time."""

    until_s: float
    """Unix time."""

    step_s: float
    """Seconds that each point spans."""

    oldest_s: Figure
    """Unix time of the oldest reading that is kept."""

    points: tuple[HistoryPoint, ...]
    """Oldest first."""

    retention: tuple[Retention, ...]
    """What is kept, the finest first."""

    trouble: str | None
    """Why the disk takes no history, so that it ends with the service; None while it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPhase:
    """A phase of a start that is over."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStart:
    """One engine start that the state folder still knows."""

    id: str
    profile: str
    kind: str
    model: str
    argv_digest: str
    started_at: str
    """ISO 8601, UTC."""

    phases: tuple[StartPhase, ...] | Missing
    """In their order, `ready` apart."""

    ready_after_s: Figure
    """Seconds from its start until it served."""

    ended_at: Text
    """ISO 8601, UTC; missing while it runs."""

    end: EngineEnd | Missing
    served_s: Figure
    """Seconds it served, until now where it runs."""

    argv: tuple[str, ...] | Missing = NOT_RECORDED
    """The command line, anything secret on it covered."""

    simulated: bool = False
    """Whether the engine was a simulated one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingSpan:
    """A finding that came, and perhaps went."""

    code: str
    severity: Severity
    title: str
    began_at: str
    """ISO 8601, UTC."""

    ended_at: Text
    """ISO 8601, UTC; missing while it lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What happened between two instants, for an operator who was away."""

    since_s: float
    """Unix time."""

    until_s: float
    """Unix time."""

    counted_since_s: float
    """Unix time from which tokens, requests, dollars and busy seconds count: a full minute at or
    before the begin, beyond a day back a full hour."""

    since_event: int
    """The window begins after this event's id."""

    until_event: int
    complete: bool
    """Whether the journal and the history still reach back to the window's begin."""

    starts: tuple[EngineStart, ...]
    """Engines that were started in the window, oldest first."""

    ends: tuple[EngineStart, ...]
    """Engines that ended in the window, oldest first."""

    findings: tuple[FindingSpan, ...]
    """Findings that began or ended in the window, oldest first."""

    notes: tuple[Event, ...]
    warnings: int
    errors: int
    """Events of that severity."""

    requests_finished: Figure
    """Through the gateway, answered to their end."""

    requests_failed: Figure
    requests_aborted: Figure
    generated_tokens: Figure
    busy_s: Figure
    """Seconds in which prompts were read or something was generated."""

    usd_spent: Figure
    longest_gap_s: Figure
    """The longest time in which no engine's speed was known."""

    longest_gap_at_s: Figure
    """Unix time at which it began."""

    peak_tokens_per_s: Figure
    peak_at_s: Figure
    """Unix time of the span that has the peak."""

    simulated: bool = False
    """Whether a simulated engine ran in the window: speeds and starts may be its own. Tokens,
    requests, dollars and busy seconds never are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMark:
    """Up to where the operator has read the journal."""

    event: int
    """Id of the last event that was read; 0 before the first."""

    at: Text
    """When it was last set, ISO 8601, UTC: somebody was here then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingHour:
    """One hour of the clock, in UTC: dollars and what they bought."""

    at_s: float
    """Unix time at which the hour begins."""

    observed_s: float
    """Seconds of it that the service saw or can account for."""

    usd: Figure
    generated_tokens: Figure
    busy_s: Figure
    """Seconds in which prompts were read or something was generated."""

    usd_per_million: Figure
    priced_tokens: Figure = NOT_TOLD
    """Of the tokens those that its dollars paid for: the price is of them alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingReport:
    """Dollars and tokens by the hour, and together; none of them a simulated engine's."""

    since_s: float
    """Unix time, a full hour."""

    until_s: float
    hours: tuple[SpendingHour, ...]
    """Oldest first; an hour that was not seen is there, its figures missing."""

    usd: Figure
    generated_tokens: Figure
    busy_s: Figure
    usd_per_million: Figure
    usd_per_hour: Figure
    """What is paid now."""

    includes_disk: bool
    priced_usd: Figure = NOT_TOLD
    """Dollars of the hours whose dollars and tokens are both known: the price is theirs alone."""

    priced_tokens: Figure = NOT_TOLD
    """Tokens that these dollars paid for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAddress:
    """One way by which clients reach the gateway."""

    kind: Literal["loopback", "link", "tunnel", "network", "tcp", "proxy"]
    url: str
    text: str
    """From where it is reached."""

    limit: str = ""
    """What does not work over it, or what is at stake; empty where nothing is."""

    refused: str = ""
    """Why it is not reached as things are, and what to do; empty where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientEnvironment:
    """What a client must be told to reach the gateway."""

    variables: dict[str, str]
    """For the first of the addresses."""

    addresses: tuple[ClientAddress, ...]
    window_tokens: Figure
    """The engine's `max_model_len`."""

    output_tokens: Figure
    """The longest answer that a client is told to ask for."""

    advice: tuple[str, ...]
    """What else must be known, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An error for the operator: what happened, the evidence, what to do."""

    message: str
    evidence: str = ""
    remedy: str = ""
    exit_code: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command went; read again by id until its state is final."""

    command: str
    id: str
    state: Literal["running", "done", "refused", "failed"]
    result: dict[str, str] = field(default_factory=dict)
    trouble: Trouble | None = None
    events: tuple[Event, ...] = ()
    """What happened while it ran."""
