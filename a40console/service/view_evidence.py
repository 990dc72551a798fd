"""What an engine's own signals say to the advisor, whoever watches the engine."""

from __future__ import annotations

from a40console.advisor.evidence import Evidence
from a40console.telemetry.view import EngineView


def view_evidence(view: EngineView) -> Evidence:
    """The evidence that a view of the engine holds."""
    return Evidence(
        generation_flat_s=view.progress.generation_flat_s,
        steps_flat_s=view.progress.steps_flat_s,
        health_status=view.progress.health_status,
        counters_reset_s=view.counters_reset_s,
    )
