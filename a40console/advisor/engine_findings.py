"""Findings about the engine's life, its settings, and the figures that it gives of itself."""

from __future__ import annotations

from a40console.advisor.evidence import NOT_ASKED, Evidence
from a40console.advisor.hang import hang_evidence, is_hung, silent_s
from a40console.advisor.machine_findings import GPU_SOURCE, gpu_memory_left, is_lost, source_text
from a40console.advisor.readings import Readings, shown
from a40console.advisor.wording import brief, count, duration, percent, sentence
from a40console.model.engine import EngineState
from a40console.model.event import Finding
from a40console.model.figures import Missing, number
from a40console.model.snapshot import Difference, Snapshot

RESET_GRACE_S = 60.0
"""How long after a reset figures over the engine's life say little."""

LIVING = frozenset(
    {
        EngineState.STARTING,
        EngineState.SERVING,
        EngineState.DRAINING,
        EngineState.STOPPING,
        EngineState.HUNG,
        EngineState.ASLEEP,
    }
)
"""States in which an engine of ours holds the machine."""


def unkillable(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Processes that KILL did not end."""
    if not (extra.survivors and extra.unkillable):
        return None
    return Finding(
        code="unkillable",
        severity="error",
        title="Processes of the engine cannot be ended: the kernel holds them",
        evidence=sentence([f"{_names(extra)} outlived KILL", gpu_memory_left(snapshot)]),
        since=snapshot.at,
        remedy="Restart the pod: nothing inside it can end them.",
    )


def engine_orphaned(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Processes that an engine left behind."""
    orphaned = snapshot.engine.state is EngineState.ORPHANED
    left = bool(extra.survivors) and snapshot.engine.state not in LIVING
    if extra.unkillable or not (orphaned or left):
        return None
    return Finding(
        code="engine-orphaned",
        severity="error",
        title="The engine is gone, but processes of it live on",
        evidence=sentence([_names(extra), gpu_memory_left(snapshot)]),
        since=snapshot.at,
        remedy="End exactly these processes; nothing can start before.",
        command="engine.clean",
    )


def engine_hung(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Open requests, and nothing moves; or no answer at all."""
    hung = is_hung(snapshot.engine, snapshot.requests, snapshot.slots, extra)
    unhealthy = isinstance(extra.health_status, int) and extra.health_status >= 500
    serving = snapshot.engine.state in (EngineState.SERVING, EngineState.HUNG)
    asked = isinstance(extra.health_status, Missing) and extra.health_status != NOT_ASKED
    silent = silent_s(snapshot.engine, snapshot.sources) if asked else None
    if not hung and silent is None and not (serving and unhealthy):
        return None
    title = "The engine says that it is not healthy"
    if hung:
        title = f"The engine hangs: no token for {shown(extra.generation_flat_s, duration)}"
    elif silent is not None:
        title = f"The engine hangs: no answer for {duration(silent)}"
    return Finding(
        code="engine-hung",
        severity="error",
        title=title,
        evidence=sentence(
            [
                *hang_evidence(snapshot.requests, extra),
                *_busy_gpus(snapshot),
                f"log: {extra.silent_words}" if extra.silent_words else "",
            ]
        ),
        since=snapshot.at,
        remedy="Restart the engine; open requests are lost, their clients retry.",
        command="engine.restart",
    )


def engine_failed(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The end of an engine that nobody asked for."""
    engine = snapshot.engine
    if engine.state is not EngineState.FAILED:
        return None
    title, told = "The engine failed", [extra.end_evidence]
    if not isinstance(end := engine.exit, Missing):
        title = f"{title}: {end.cause}"
        told += ["" if isinstance(end.code, Missing) else f"exit code {end.code}"]
        told += ["" if isinstance(end.signal, Missing) else end.signal, f"ended {end.at}"]
    return Finding(
        code="engine-failed",
        severity="error",
        title=title,
        evidence=sentence(told),
        since=snapshot.at,
        remedy=_with_fix(extra.end_remedy, extra.end_fix)
        or "Read the engine's log, then start it again.",
        command="profile.fix" if extra.end_fix else "engine.start",
    )


def start_stalled(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """A start without progress."""
    engine, stall = snapshot.engine, extra.stall
    if stall is None or engine.state not in (EngineState.FETCHING, EngineState.STARTING):
        return None
    phase = "" if isinstance(engine.phase, Missing) else f"phase {engine.phase}"
    return Finding(
        code="start-stalled",
        severity="warn",
        title=f"The start is stuck for {duration(stall.for_s)}: {stall.cause}",
        evidence=sentence(
            [
                phase,
                f"last: {stall.evidence}" if stall.evidence else "",
                *_busy_gpus(snapshot),
            ]
        ),
        since=snapshot.at,
        remedy=_with_fix(stall.remedy, stall.fix),
        command="profile.fix" if stall.fix else "engine.restart",
    )


def telemetry_broken(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Sources of figures that fail while the engine serves."""
    if snapshot.engine.state not in (EngineState.SERVING, EngineState.HUNG):
        return None
    # Health has a finding of its own: the engine may answer it with 503 and be read all the same.
    others = (
        s for s in snapshot.sources if s.name != GPU_SOURCE and not s.name.endswith(".health")
    )
    broken = [source for source in others if is_lost(source)]
    if not broken:
        return None
    healthy = extra.health_status == 200
    return Finding(
        code="telemetry-broken",
        severity="warn",
        title="The engine is well, its telemetry is broken" if healthy else "Telemetry is broken",
        evidence=sentence([*map(source_text, broken), "/health says 200" if healthy else ""]),
        since=snapshot.at,
        remedy="Requests are served; figures of these sources are old until they answer again."
        if healthy
        else "Figures of these sources are old until they answer again; see the engine's log.",
    )


def state_not_written(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The service's own state cannot be written; a watcher without a home keeps none."""
    home, all_of_it = snapshot.service.home, snapshot.service.read_only
    if not home or not (all_of_it or extra.state_trouble):
        return None
    return Finding(
        code="state-not-written",
        severity="error" if all_of_it else "warn",
        title=f"The service cannot write {'its state' if all_of_it else 'all of its state'}",
        evidence=sentence([extra.state_trouble, f"home {home}"]),
        since=snapshot.at,
        remedy="Free space or permission there: it is kept in memory until then."
        if all_of_it
        else "Free space there, or end what locks the file: it is kept in memory until then.",
    )


def keeper_gone(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """A living engine whose keeper is not there."""
    if not extra.keeper_gone or snapshot.engine.state not in LIVING:
        return None
    return Finding(
        code="keeper-gone",
        severity="warn",
        title="The engine's keeper is gone",
        evidence="its output is no longer capped, and how it ends will not be known",
        since=snapshot.at,
        remedy="Requests are served; restart the engine when it suits.",
        command="engine.restart",
    )


def service_unsupervised(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """A service that would stay down if it ended."""
    if not extra.unsupervised:
        return None
    return Finding(
        code="service-unsupervised",
        severity="warn",
        title="The service's supervisor is gone",
        evidence=f"nothing brings process {snapshot.service.pid} back if it ends",
        since=snapshot.at,
        remedy="Restart the service: a40console stop, then any command; engines keep running.",
    )


def setting_not_in_force(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """What the profile asked and runs otherwise; what it left to the engine is no finding."""
    if snapshot.engine.state not in LIVING:
        return None
    listed = () if isinstance(snapshot.engine.effective, Missing) else snapshot.engine.effective
    known = [
        entry
        for entry in listed
        if entry.asked is not None and not isinstance(entry.effective, Missing)
    ]
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


def log_disagrees(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The log's throughput is not what the counters moved by: several servers log their shares."""
    logged = extra.logged
    if logged is None or snapshot.engine.state is not EngineState.SERVING:
        return None
    speakers = f"{logged.speakers} API servers log" if logged.speakers > 1 else ""
    return Finding(
        code="log-disagrees",
        severity="info",
        title="The log's throughput disagrees with the counters",
        evidence=sentence(
            [
                f"log {brief(logged.logged_tokens_per_s)} tok/s",
                f"counters {brief(logged.counted_tokens_per_s)} tok/s",
                f"over the same {duration(logged.over_s)}",
                speakers,
            ]
        ),
        since=snapshot.at,
        remedy="Believe the counters, which every figure here is from: each API server logs only"
        " what passed through it.",
    )


def counters_reset(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """The engine's counters began again a moment ago."""
    ago_s = number(extra.counters_reset_s)
    if ago_s is None or ago_s > RESET_GRACE_S:
        return None
    ago = shown(extra.counters_reset_s, duration)
    return Finding(
        code="counters-reset",
        severity="info",
        title="The engine's counters began again",
        evidence=f"{ago} ago; the gap is left out of every rate",
        since=snapshot.at,
        remedy="Nothing to do: hit rates and totals since start say little for a minute.",
    )


def parser_unfit(snapshot: Snapshot, extra: Evidence) -> Finding | None:
    """Parsers that do not read what the model writes, by its chat template."""
    unfit = extra.unfit_parsers
    if not unfit or snapshot.engine.state not in LIVING:
        return None
    fix = next((each.fix for each in unfit if each.fix), "")
    return Finding(
        code="parser-unfit",
        severity="warn",
        title=f"{unfit[0].cause[:1].upper()}{unfit[0].cause[1:]}",
        evidence=sentence([each.evidence for each in unfit]),
        since=snapshot.at,
        remedy=_with_fix(" ".join(each.remedy for each in unfit), fix),
        command="profile.fix" if fix else None,
    )


def _busy_gpus(snapshot: Snapshot) -> list[str]:
    uses = [
        (gpu.index, shown(gpu.utilization_ratio, percent)) for gpu in Readings(snapshot).fresh_gpus
    ]
    return [f"GPU {index} at {use}" for index, use in uses if use]


def _with_fix(remedy: str, fix: str) -> str:
    mends = f"This change of the profile mends it: {fix}." if fix else ""
    return " ".join(filter(None, (remedy, mends)))


def _names(extra: Evidence) -> str:
    return ", ".join(f"{survivor.name} (pid {survivor.pid})" for survivor in extra.survivors)


def _difference_text(entry: Difference) -> str:
    return f"{entry.setting}: asked {entry.asked}, runs {entry.effective} ({entry.evidence})"
