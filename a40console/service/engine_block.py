"""The engine block of a snapshot, from the engine's life and what the engine says of itself."""

from __future__ import annotations

from a40console.engines.controls import CONTROLS, LLAMACPP_LACKS, NO_PLUGIN
from a40console.engines.effective import with_cache_config
from a40console.model.engine import EngineKind, EngineState
from a40console.model.figures import Figure, Missing, Text
from a40console.model.snapshot import NO_PLACEMENTS, Difference, EngineInfo
from a40console.model.switching import NO_SWITCH
from a40console.operations.ladder import rung_in_words
from a40console.operations.record import RunRecord
from a40console.operations.status import NOTHING_STARTS, EngineStatus
from a40console.operations.under_way import UnderWay, switch_info
from a40console.service.self_report import UNKNOWN, SelfReport

NO_ENGINE = Missing("no engine runs")
_ON_THE_WAY = (EngineState.FETCHING, EngineState.STARTING, EngineState.DRAINING)


def engine_block(
    status: EngineStatus,
    report: SelfReport,
    *,
    now_s: float,
    under_way: UnderWay | None = None,
) -> EngineInfo:
    """The block for an engine of ours."""
    run, profile = status.run, status.profile
    alive = status.living and run is not None
    absent = NO_ENGINE if not alive else UNKNOWN
    return EngineInfo(
        id=run.id if run else NO_ENGINE,
        kind=_kind(status),
        state=status.state,
        phase=status.phase or Missing(status.state.sentence),
        phase_s=_since(status.phase_since_s, now_s, NO_ENGINE),
        eta_s=_eta(status),
        profile=profile.name if profile else NO_ENGINE,
        model=profile.model if profile else NO_ENGINE,
        served_name=profile.public_name if profile else NO_ENGINE,
        version=report.version if alive else absent,
        listen=profile.listen if profile else NO_ENGINE,
        pid=_pid(status),
        session_id=_or(status.session_id if status.living else None, NO_ENGINE),
        uptime_s=_since(status.started_at_s if status.living else None, now_s, NO_ENGINE),
        restarts=status.restarts,
        exit=status.end or Missing("running" if status.living else "it never ended"),
        max_model_len=report.max_model_len if alive else absent,
        paused=report.paused if alive else absent,
        argv_digest=run.argv_digest if run else NO_ENGINE,
        effective=_effective(status, report) if alive else absent,
        controls=_controls(run, report) if alive and run is not None else NO_ENGINE,
        placement=_placement(status),
        switch=NO_SWITCH if under_way is None else switch_info(under_way, status, now_s),
    )


def foreign_block(
    *, kind: EngineKind, url: str, report: SelfReport, reachable: bool, state: EngineState
) -> EngineInfo:
    """The block for an engine that is not ours and is only watched."""
    foreign = Missing("not our engine")
    return EngineInfo(
        id=url,
        kind=kind,
        state=state,
        phase="ready" if reachable else Missing("it does not answer"),
        phase_s=foreign,
        eta_s=foreign,
        profile=foreign,
        model=report.served_name,
        served_name=report.served_name,
        version=report.version,
        listen=url,
        pid=foreign,
        session_id=foreign,
        uptime_s=foreign,
        restarts=0,
        exit=foreign,
        max_model_len=report.max_model_len,
        paused=report.paused,
        argv_digest=foreign,
        effective=Missing("what was asked of it is not known"),
    )


def _controls(run: RunRecord, report: SelfReport) -> dict[str, str] | Missing:
    """Why each control that cannot be used cannot."""
    if run.profile.kind == "llamacpp":
        return dict.fromkeys(CONTROLS, LLAMACPP_LACKS)
    if not run.plugin:
        return dict.fromkeys(CONTROLS, NO_PLUGIN)
    return UNKNOWN if report.controls is None else dict(report.controls)


def _placement(status: EngineStatus) -> Text:
    words = rung_in_words(status.profile, status.rung) if status.profile else ""
    return words or NO_PLACEMENTS


def _pid(status: EngineStatus) -> Figure:
    if status.state is EngineState.ORPHANED:
        return Missing("its leader is gone")
    return _or(status.pid if status.living else None, NO_ENGINE)


def _effective(status: EngineStatus, report: SelfReport) -> tuple[Difference, ...] | Missing:
    """By the log of the start, and by what the engine exposes while it serves."""
    if status.run is None:
        return status.differences
    return with_cache_config(status.differences, status.run.profile, report.settings)


def _kind(status: EngineStatus) -> EngineKind | Missing:
    return status.profile.kind if status.profile else NO_ENGINE


def _eta(status: EngineStatus) -> Figure:
    if status.state is EngineState.SERVING:
        return Missing("ready")
    if status.state not in _ON_THE_WAY:
        return NOTHING_STARTS
    return Missing("not known yet") if status.eta == NOTHING_STARTS else status.eta


def _since(start_s: float | None, now_s: float, absent: Missing) -> Figure:
    return absent if start_s is None else round(max(0.0, now_s - start_s), 3)


def _or(value: float | None, absent: Missing) -> Figure:
    return absent if value is None else value
