"""Puts one snapshot together from what each part knows at this instant. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from a40console.advisor.advice import FindingClock, advise
from a40console.advisor.evidence import Evidence
from a40console.advisor.limit import explain
from a40console.advisor.limit import limit as limit_of
from a40console.advisor.readings import fresh
from a40console.gateway.meter import RequestCounts
from a40console.model import blank
from a40console.model.engine import EngineState, is_simulated
from a40console.model.figures import Figure, Missing, number
from a40console.model.freshness import present
from a40console.model.profile import Profile, Speculation
from a40console.model.service_info import ServiceInfo
from a40console.model.snapshot import (
    PROTOCOL_VERSION,
    SCHEMA_VERSION,
    EngineInfo,
    Gpu,
    Host,
    Limit,
    PrefixCache,
    Requests,
    Slot,
    Snapshot,
    SourceStatus,
    SpeculationInfo,
    Throughput,
)
from a40console.service.cost import Account, Spending, cost
from a40console.service.sessions import SessionsBlock
from a40console.telemetry.view import EngineView

HUNG_CODE = "engine-hung"
OFF = Missing("speculation is off")
SEVERAL_GPUS = Missing("which of the GPUs are the engine's is not known")
SESSIONS_NOT_FOLLOWED = Missing("client sessions are not followed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a snapshot is made, and which one it is."""

    seq: int
    at: str
    monotonic_s: float
    interval_s: float
    events_last_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a snapshot is put together from."""

    moment: Moment
    service: ServiceInfo
    engine: EngineInfo
    view: EngineView | None
    """None while no engine answers."""

    gateway: RequestCounts | None
    """None where no gateway of ours is involved."""

    host: Host
    gpus: tuple[Gpu, ...] | Missing
    sources: tuple[SourceStatus, ...]
    profile: Profile | None
    account: Account
    evidence: Evidence
    sessions: SessionsBlock | None = None
    """None where no gateway of ours is involved."""

    waiting: tuple[Slot, ...] = ()
    """What is held at the gateway while no engine answers."""

    gate: str | None = None
    """Why the gateway holds requests."""


def assemble(parts: Parts, clock: FindingClock) -> Snapshot:
    """The snapshot of this moment, with the advisor's verdicts on it."""
    draft = _draft(parts)
    limit, findings = advise(draft, parts.evidence, clock)
    engine, speed = draft.engine, draft.throughput
    # An engine whose /health says no hangs only where no token shows the contrary.
    flows = fresh(speed.age_s, speed.generation_tokens_per_s)
    named = any(finding.code == HUNG_CODE for finding in findings)
    if engine.state is EngineState.SERVING and named and not flows:
        hung_s = parts.evidence.generation_flat_s
        engine = replace(engine, state=EngineState.HUNG, phase_s=hung_s)
        draft = replace(draft, engine=engine)
        limit = limit_of(explain(draft, parts.evidence))
    return replace(draft, limit=limit, findings=findings)


def _draft(parts: Parts) -> Snapshot:
    view, engine = parts.view, parts.engine
    why = Missing(engine.state.sentence)
    throughput = view.throughput if view else blank.throughput(why)
    sessions = parts.sessions
    return Snapshot(
        schema=SCHEMA_VERSION,
        protocol=PROTOCOL_VERSION,
        seq=parts.moment.seq,
        at=parts.moment.at,
        monotonic_s=parts.moment.monotonic_s,
        interval_s=parts.moment.interval_s,
        simulated=engine.kind == "sim" or is_simulated(engine.version),
        service=parts.service,
        engine=engine,
        slots=view.slots if view else parts.waiting or why,
        recent=view.recent if view else (),
        sessions=sessions.sessions if sessions else SESSIONS_NOT_FOLLOWED,
        throughput=throughput,
        requests=_requests(
            view.requests if view else replace(blank.requests(why), held=len(parts.waiting)),
            parts,
        ),
        latency=view.latency if view else blank.latency(why),
        prefix_cache=_prefix_cache(
            view.prefix_cache if view else blank.prefix_cache(why), sessions
        ),
        speculation=speculation_block(view.speculation, parts.profile)
        if view
        else replace(blank.speculation(why), locked_reason=why.reason),
        kv_cache=view.kv_cache if view else blank.kv_cache(why),
        gpus=with_bandwidth(parts.gpus, view.read_bytes_per_s if view else why),
        host=parts.host,
        cost=cost(
            Spending(
                account=parts.account,
                uptime_s=number(engine.uptime_s),
                charged=view.charged if view else None,
                charged_lately=view.charged_lately if view else None,
                generation_tokens_per_s=_present_rate(view, throughput, parts.moment.interval_s),
                session_usd_per_million=sessions.usd_per_million
                if sessions
                else SESSIONS_NOT_FOLLOWED,
            )
        ),
        limit=Limit(cause="unknown", text="", evidence=(), ruled_out=()),
        findings=(),
        events_last_id=parts.moment.events_last_id,
        sources=(view.sources if view else ()) + parts.sources,
    )


def works(slots: tuple[Slot, ...] | Missing) -> bool:
    """Whether a request is known to be read or answered at this instant."""
    known = () if isinstance(slots, Missing) else slots
    return any(slot.phase in ("prefill", "decode") for slot in known)


def _present_rate(view: EngineView | None, speed: Throughput, interval_s: float) -> Figure:
    """What is generated now: nothing once the last request has ended, whatever the window holds.

    In the first seconds of generation it is not known: the window is not filled yet.
    """
    rate = present(speed.generation_tokens_per_s, speed.age_s, interval_s=interval_s)
    if view is None or isinstance(rate, Missing):
        return rate
    requests = view.requests
    running = number(present(requests.running, requests.age_s, interval_s=interval_s))
    return 0.0 if running == 0 and not works(view.slots) else view.steady_tokens_per_s


def _requests(block: Requests, parts: Parts) -> Requests:
    """The engine's requests with what only the gateway counts."""
    counts = parts.gateway
    if counts is None:
        return block
    aborted = block.aborted if number(block.aborted) is not None else counts.aborted
    return replace(
        block, aborted=aborted, failed=counts.failed, resent=counts.resent, gate=parts.gate
    )


def _prefix_cache(block: PrefixCache, sessions: SessionsBlock | None) -> PrefixCache:
    """The cache's figures with what only the sessions tell."""
    if sessions is None:
        return block
    reusable = sessions.reusable_ratio
    if not isinstance(block.hit_ratio, Missing) and not isinstance(reusable, Missing):
        block = replace(block, reusable_ratio=reusable)
    return replace(block, last_loss=sessions.last_loss)


def gpus_of(
    view: EngineView | None, driver: tuple[Gpu, ...] | Missing
) -> tuple[Gpu, ...] | Missing:
    """The engine's cards: a simulated engine's own, never this machine's in their place."""
    return driver if view is None or view.gpus is None else view.gpus


def with_bandwidth(
    gpus: tuple[Gpu, ...] | Missing, read_bytes_per_s: Figure
) -> tuple[Gpu, ...] | Missing:
    """The GPUs with what the engine estimates that each of its own reads.

    NVML counts no such thing, and of several GPUs the engine does not say which are its own.
    """
    if isinstance(gpus, Missing):
        return gpus
    if len(gpus) > 1 and number(read_bytes_per_s) is not None:
        read_bytes_per_s = SEVERAL_GPUS
    return tuple(replace(gpu, read_bytes_per_s=read_bytes_per_s) for gpu in gpus)


def speculation_block(block: SpeculationInfo, profile: Profile | None) -> SpeculationInfo:
    """What telemetry measured of a living engine, with what it was started with.

    Whether speculation is on the engine tells; only where it does not, the profile does. Where its
    worker tells the depth, nothing of that is the profile's word.
    """
    asked = profile.speculation if profile else None
    if asked is None:
        reason = "the profile has none" if profile else "what was asked is not known"
        return replace(block, control="none", locked_reason=reason)
    if block.control != "none":
        return _lockable(block, asked)
    block = replace(
        block,
        mode=_mode(block, asked),
        control="restart",
        started_with=asked.tokens if asked.ready else OFF,
        depth_max=asked.tokens,
    )
    if block.mode == "off":
        return _lockable(replace(block, depth=OFF, method=OFF), asked)
    if asked.ready and not isinstance(block.mode, Missing):
        block = replace(block, depth=asked.start_tokens or asked.tokens, method=asked.method)
    return _lockable(block, asked)  # else by own arguments: what it runs the engine alone knows


def _mode(block: SpeculationInfo, asked: Speculation) -> Literal["off", "on", "auto"] | Missing:
    """Whether drafts are made, without the worker's word."""
    if isinstance(block.mode, Missing):
        return "on" if asked.start_tokens else "off"
    if block.mode == "on" and asked.ready and asked.start_tokens != asked.tokens:
        # Its counters are there from the start: only drafts show that some are made.
        return "on" if number(block.drafts) else Missing("the plugin does not tell the depth")
    return block.mode


def _lockable(block: SpeculationInfo, asked: Speculation) -> SpeculationInfo:
    """The block, without any control where the profile is locked."""
    if asked.locked is None:
        return block
    return replace(block, control="none", locked_reason=asked.locked)
