"""What the advisor is told besides the snapshot."""

from __future__ import annotations

from a40console.advisor.evidence import Evidence, Survivor
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.operations.status import EngineStatus
from a40console.telemetry.view import EngineView


def evidence(status: EngineStatus, view: EngineView | None, now_s: float) -> Evidence:
    """The signals that no block of the snapshot holds."""
    starting = status.state is EngineState.STARTING and status.progress_at_s is not None
    quiet, stall = Missing("no engine answers"), status.stall
    return Evidence(
        generation_flat_s=view.progress.generation_flat_s if view else quiet,
        steps_flat_s=view.progress.steps_flat_s if view else quiet,
        health_status=view.progress.health_status if view else quiet,
        start_flat_s=now_s - (status.progress_at_s or now_s)
        if starting
        else Missing("nothing starts"),
        start_progress=f"{stall.cause}: {stall.evidence}" if stall else status.phase_detail,
        stall_after_s=status.profile.stall_after_s if status.profile else 120.0,
        counters_reset_s=view.counters_reset_s if view else quiet,
        survivors=tuple(Survivor(p.pid, p.name) for p in status.survivors),
        unkillable=status.left == "unkillable",
    )
