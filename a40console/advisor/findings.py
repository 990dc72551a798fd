"""What is wrong or worth knowing: one rule a code, each citing its figures."""

from __future__ import annotations

from collections.abc import Callable

from a40console.advisor.evidence import NOT_ASKED, Evidence
from a40console.advisor.hang import hang_evidence, is_hung, silent_s
from a40console.advisor.readings import (
    KV_FULL_RATIO,
    THROTTLED_MS_PER_S,
    LimitEvidence,
    Readings,
)
from a40console.advisor.wording import brief, count, duration, gibibytes, percent, sentence, whole
from a40console.model.engine import EngineState
from a40console.model.event import Finding, Severity
from a40console.model.figures import Missing, is_estimate, number
from a40console.model.snapshot import Difference, Snapshot, SourceStatus

Rule = Callable[[Snapshot, Evidence], Finding | None]

GPU_SOURCE = "nvml"
RESET_GRACE_S = 60.0
"""How long after a reset figures over the engine's life say little."""

_LIVING = frozenset(
    {
        EngineState.STARTING,
        EngineState.SERVING,
        EngineState.DRAINING,
        EngineState.STOPPING,
        EngineState.HUNG,
        EngineState.ASLEEP,
    }
)
_FAULTY_CLOCKS = ("thermal", "hardware slowdown", "power brake")
"""Throttle reasons that are a fault of the machine; a power cap under load is not."""


def findings(snapshot: Snapshot, extra: Evidence) -> tuple[Finding, ...]:
    """Everything that the rules find, worst first; `since` is this snapshot's time."""
    found = [finding for rule in RULES if (finding := rule(snapshot, extra))]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.severity]))


_ORDER: dict[Severity, int] = {"error": 0, "warn": 1, "info": 2}


def _unkillable(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    if not (extra.survivors and extra.unkillable):
        return None
    return Finding(
        code="unkillable",
        severity="error",
        title="Processes of the engine cannot be ended: the kernel holds them",
        evidence=sentence([f"{_names(extra)} outlived KILL", _gpu_memory_left(snapshot)]),
        since=snapshot.at,
        remedy="Restart the pod: nothing inside it can end them.",
    )


def _engine_orphaned(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    orphaned = snapshot.engine.state is EngineState.ORPHANED
    left = bool(extra.survivors) and snapshot.engine.state not in _LIVING
    if extra.unkillable or not (orphaned or left):
        return None
    return Finding(
        code="engine-orphaned",
        severity="error",
        title="The engine is gone, but processes of it live on",
        evidence=sentence([_names(extra), _gpu_memory_left(snapshot)]),
        since=snapshot.at,
        remedy="End exactly these processes; nothing can start before.",
        command="engine.clean",
    )


def _engine_hung(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    hung = is_hung(snapshot.engine, snapshot.requests, snapshot.slots, extra)
    unhealthy = isinstance(extra.health_status, int) and extra.health_status >= 500
    serving = snapshot.engine.state in (EngineState.SERVING, EngineState.HUNG)
    asked = isinstance(extra.health_status, Missing) and extra.health_status != NOT_ASKED
    silent = silent_s(snapshot.engine, snapshot.sources) if asked else None
    if not hung and silent is None and not (serving and unhealthy):
        return None
    flat_s = number(extra.generation_flat_s)
    title = "The engine says that it is not healthy"
    if hung and flat_s is not None:
        title = f"The engine hangs: no token for {duration(flat_s)}"
    elif silent is not None:
        title = f"The engine hangs: no answer for {duration(silent)}"
    gpus = Readings(LimitEvidence.of(snapshot)).fresh_gpus
    uses = [(gpu.index, number(gpu.utilization_ratio)) for gpu in gpus]
    shown = [f"GPU {index} at {percent(use)}" for index, use in uses if use is not None]
    return Finding(
        code="engine-hung",
        severity="error",
        title=title,
        evidence=sentence([*hang_evidence(snapshot.requests, extra), *shown]),
        since=snapshot.at,
        remedy="Restart the engine; open requests are lost, their clients retry.",
        command="engine.restart",
    )


def _engine_failed(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    engine = snapshot.engine
    if engine.state is not EngineState.FAILED:
        return None
    title, shown = "The engine failed", [extra.end_evidence]
    if not isinstance(end := engine.exit, Missing):
        title = f"{title}: {end.cause}"
        shown += ["" if isinstance(end.code, Missing) else f"exit code {end.code}"]
        shown += ["" if isinstance(end.signal, Missing) else end.signal, f"ended {end.at}"]
    return Finding(
        code="engine-failed",
        severity="error",
        title=title,
        evidence=sentence(shown),
        since=snapshot.at,
        remedy=extra.end_remedy or "Read the engine's log, then start it again.",
        command="engine.start",
    )


def _start_stalled(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    engine, stall = snapshot.engine, extra.stall
    if stall is None or engine.state not in (EngineState.FETCHING, EngineState.STARTING):
        return None
    phase = "" if isinstance(engine.phase, Missing) else f"phase {engine.phase}"
    return Finding(
        code="start-stalled",
        severity="warn",
        title=f"The start is stuck for {duration(stall.for_s)}: {stall.cause}",
        evidence=sentence([phase, f"last: {stall.evidence}" if stall.evidence else ""]),
        since=snapshot.at,
        remedy=stall.remedy,
        command="engine.restart",
    )


def _telemetry_broken(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    if snapshot.engine.state not in (EngineState.SERVING, EngineState.HUNG):
        return None
    # Health has a finding of its own: the engine may answer it with 503 and be read all the same.
    others = (
        s for s in snapshot.sources if s.name != GPU_SOURCE and not s.name.endswith(".health")
    )
    broken = [source for source in others if _lost(source)]
    if not broken:
        return None
    healthy = extra.health_status == 200
    return Finding(
        code="telemetry-broken",
        severity="warn",
        title="The engine is well, its telemetry is broken" if healthy else "Telemetry is broken",
        evidence=sentence([*map(_source_text, broken), "/health says 200" if healthy else ""]),
        since=snapshot.at,
        remedy="Requests are served; figures of these sources are old until they answer again."
        if healthy
        else "Figures of these sources are old until they answer again; see the engine's log.",
    )


def _state_not_written(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    if not snapshot.service.read_only or snapshot.engine.kind == "foreign":
        return None
    return Finding(
        code="state-not-written",
        severity="error",
        title="The service cannot write its state",
        evidence=sentence([extra.state_trouble, f"home {snapshot.service.home}"]),
        since=snapshot.at,
        remedy="Free space or permission there: events are kept in memory until then.",
    )


def _gpu_degraded(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    lost = [source for source in snapshot.sources if source.name == GPU_SOURCE and _lost(source)]
    words = Readings(LimitEvidence.of(snapshot)).throttle_words or ()
    faults = [word for word in words if any(fault in word for fault in _FAULTY_CLOCKS)]
    if not lost and not faults:
        return None
    remedy = "The machine cools or feeds its GPU badly: rent another if it stays."
    if lost:
        remedy = "Engine figures go on; follow the reason, it is tried again by itself."
    return Finding(
        code="gpu-degraded",
        severity="warn",
        title="The GPU cannot be read" if lost else "The GPU is slowed down by its machine",
        evidence=sentence([*map(_source_text, lost), *faults]),
        since=snapshot.at,
        remedy=remedy,
    )


def _vcpu_throttled(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    readings = Readings(LimitEvidence.of(snapshot))
    throttled = readings.throttled_ms_per_s
    if snapshot.engine.state not in _LIVING or throttled is None or throttled < THROTTLED_MS_PER_S:
        return None
    used, quota = readings.vcpu_used, readings.vcpu_quota
    use = ""
    if used is not None and quota is not None:
        use = f"{brief(used)} of {brief(quota)} vCPU used ({snapshot.host.quota_origin})"
    return Finding(
        code="vcpu-throttled",
        severity="warn",
        title="The pod's CPU quota slows the engine down",
        evidence=sentence([f"throttled {brief(throttled)} ms/s", use]),
        since=snapshot.at,
        remedy="Rent a pod with more vCPU, or lower the profile's threads.",
    )


def _kv_full(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    readings = Readings(LimitEvidence.of(snapshot))
    held = readings.kv_held_ratio
    if not readings.serving or held is None or held < KV_FULL_RATIO:
        return None
    preempted = number(snapshot.requests.preemptions)
    waiting = readings.waiting
    return Finding(
        code="kv-full",
        severity="warn",
        title="The KV cache is full",
        evidence=sentence(
            [
                f"{'≈ ' if is_estimate(snapshot.kv_cache.held_ratio) else ''}{percent(held)} held",
                f"{whole(waiting)} waiting" if waiting is not None else "",
                count(preempted, "preemption") if preempted is not None else "",
            ]
        ),
        since=snapshot.at,
        remedy="Fewer sessions at once, a smaller max_model_len, or an fp8 KV cache.",
    )


def _setting_not_in_force(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    if snapshot.engine.state not in _LIVING:
        return None
    listed = () if isinstance(snapshot.engine.effective, Missing) else snapshot.engine.effective
    known = [entry for entry in listed if not isinstance(entry.effective, Missing)]
    if not known:
        return None
    return Finding(
        code="setting-not-in-force",
        severity="warn",
        title=f"{count(len(known), 'setting')} of the profile not in force",
        evidence=sentence(map(_difference_text, known)),
        since=snapshot.at,
        remedy="Measure nothing by what was asked: change the profile to what the engine accepts.",
    )


def _counters_reset(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    ago_s = number(extra.counters_reset_s)
    if ago_s is None or ago_s > RESET_GRACE_S:
        return None
    return Finding(
        code="counters-reset",
        severity="info",
        title="The engine's counters began again",
        evidence=f"{duration(ago_s)} ago; the gap is left out of every rate",
        since=snapshot.at,
        remedy="Nothing to do: hit rates and totals since start say little for a minute.",
    )


RULES: tuple[Rule, ...] = (
    _unkillable,
    _engine_orphaned,
    _engine_failed,
    _engine_hung,
    _start_stalled,
    _telemetry_broken,
    _state_not_written,
    _gpu_degraded,
    _vcpu_throttled,
    _kv_full,
    _setting_not_in_force,
    _counters_reset,
)


def _names(extra: Evidence) -> str:
    return ", ".join(f"{survivor.name} (pid {survivor.pid})" for survivor in extra.survivors)


def _gpu_memory_left(snapshot: Snapshot) -> str:
    """What GPUs hold beyond what they held before the engine: its processes' share."""
    parts = []
    for gpu in Readings(LimitEvidence.of(snapshot)).fresh_gpus:
        used, baseline = number(gpu.memory_used_bytes), number(gpu.memory_baseline_bytes)
        if used is not None and baseline is not None and used > baseline:
            parts.append(f"GPU {gpu.index} holds {gibibytes(used - baseline)} more than before it")
    return ", ".join(parts)


def _lost(source: SourceStatus) -> bool:
    """Failed, or read before and late now; one that was never read yet is only beginning."""
    return source.state == "failed" or (
        source.state == "stale" and not isinstance(source.age_s, Missing)
    )


def _source_text(source: SourceStatus) -> str:
    return f"{source.name}: {source.reason or source.state}"


def _difference_text(entry: Difference) -> str:
    asked = "the engine's choice" if entry.asked is None else entry.asked
    return f"{entry.setting}: asked {asked}, runs {entry.effective} ({entry.evidence})"
