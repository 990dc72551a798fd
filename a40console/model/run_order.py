"""What the service writes down of a run before it starts: the `order.json` of the run's folder."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.model.figures import Missing
from a40console.model.run import NOT_STARTED, RunEnvironment, RunPlan, RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """One run as it was ordered; the folder bears its id."""

    id: str
    spec: RunSpec
    settled: dict[str, str]
    """Every parameter in force, preset and defaults included."""

    plan: RunPlan
    asked_at: str
    """ISO 8601, UTC."""

    who: str = ""
    """Who asked for it, in words."""

    environment: RunEnvironment | Missing = NOT_STARTED
    """What it runs on, as it was the moment before it started."""
