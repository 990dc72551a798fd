"""What the advisor is told besides the snapshot."""

from __future__ import annotations

from a40console.advisor.evidence import Evidence, StalledStart, Survivor
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.operations.status import EngineStatus
from a40console.telemetry.view import EngineView


def evidence(
    status: EngineStatus, view: EngineView | None, *, state_trouble: str | None = None
) -> Evidence:
    """The signals that no block of the snapshot holds."""
    quiet, stall = Missing("no engine answers"), status.stall
    starting = status.state in (EngineState.FETCHING, EngineState.STARTING)
    return Evidence(
        generation_flat_s=view.progress.generation_flat_s if view else quiet,
        steps_flat_s=view.progress.steps_flat_s if view else quiet,
        health_status=view.progress.health_status if view else quiet,
        stall=StalledStart(
            for_s=stall.for_s, cause=stall.cause, evidence=stall.evidence, remedy=stall.remedy
        )
        if stall and starting
        else None,
        counters_reset_s=view.counters_reset_s if view else quiet,
        survivors=tuple(Survivor(p.pid, p.name) for p in status.survivors),
        unkillable=status.left == "unkillable",
        state_trouble=state_trouble or "",
        end_evidence=status.end_evidence,
        end_remedy=status.remedy,
    )
