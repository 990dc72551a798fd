"""What changes just now, for whoever looks: which step of it, since when, and who asked. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.model.engine import EngineState
from a40console.model.figures import Figure, Missing
from a40console.model.switching import SwitchInfo, SwitchStep
from a40console.operations.status import EngineStatus
from a40console.operations.switch import Change


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A change and how far it is."""

    change: Change
    began_s: float
    """On the monotonic clock."""

    progress: str = ""
    """Of what comes before anything stops, in words; empty once that is over."""


def switch_info(under_way: UnderWay, status: EngineStatus, now_s: float) -> SwitchInfo:
    """The block of a snapshot."""
    change, step = under_way.change, _step(under_way, status)
    since_s = under_way.began_s if step == "prepare" else status.phase_since_s
    spent: Figure = Missing("not known") if since_s is None else round(now_s - since_s, 3)
    detail = under_way.progress or change.drain_words(step) or Missing("nothing to add")
    return SwitchInfo(
        what=change.what,
        profile=change.profile.name,
        step=step,
        step_s=spent,
        total_s=round(now_s - under_way.began_s, 3),
        detail=detail,
        who=change.who or Missing("the service itself"),
    )


def _step(under_way: UnderWay, status: EngineStatus) -> SwitchStep:
    if under_way.progress:
        return "prepare"
    match status.state:
        case EngineState.DRAINING:
            return "drain"
        case EngineState.STOPPING | EngineState.STOPPED:
            return "stop"
        case EngineState.SERVING:
            return "prepare"
    wanted = under_way.change.profile
    if status.profile is not None and status.profile != wanted:
        return "put_back"
    return "canary" if status.phase == "canary" else "start"
