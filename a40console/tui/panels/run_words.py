"""How runs are called and marked: states, origins, times. Pure."""

from __future__ import annotations

from a40console.model.figures import Missing, number
from a40console.model.instants import unix_s
from a40console.model.run import Run, RunState
from a40console.model.run_result import RunResult
from a40console.model.run_words import REFERENCE, SIMULATED, headline, marks
from a40console.tui import format as fmt
from a40console.tui.ink import Role, clean

STATES: dict[RunState, tuple[str, Role]] = {
    "queued": ("○", Role.MUTED),
    "running": ("●", Role.KEY),
    "done": ("✓", Role.GOOD),
    "partial": ("◐", Role.WARN),
    "failed": ("✖", Role.BAD),
    "invalid": ("✗", Role.BAD),
}
"""Beside the state's word."""


def kind_of(run: Run, *, simulated: bool = False) -> str:
    """What a run's figures are, where they are not measured by us on a real engine.

    Args:
        run: Any.
        simulated: Whether the engine of now is simulated: so will be a run that waits for it.
    """
    if simulated and run.state == "queued" and run.spec.target.kind != "url":
        return SIMULATED
    return next((mark for mark in marks(run) if mark in {SIMULATED, REFERENCE}), "")


def begun_at(run: Run) -> str:
    """When it started, or was asked for."""
    return run.asked_at if isinstance(run.started_at, Missing) else run.started_at


def lasted_s(run: Run) -> float | None:
    """Seconds from its start to its end; None where it has no end yet."""
    if isinstance(run.started_at, Missing) or isinstance(run.ended_at, Missing):
        return None
    start_s, end_s = unix_s(run.started_at), unix_s(run.ended_at)
    return None if start_s is None or end_s is None else max(0.0, end_s - start_s)


def summary(run: Run) -> tuple[str, Role]:
    """One line of what it is at, what it found, or why it found nothing."""
    said, progress = clean(headline(run)), run.progress
    if run.state == "running" and not isinstance(progress, Missing):
        eta_s = number(progress.eta_s)
        return said if eta_s is None else f"≈ {fmt.duration(eta_s)} left, {said}", Role.TEXT
    stands = isinstance(run.result, RunResult) and run.state not in {"failed", "invalid"}
    return said, Role.TEXT if stands else Role.MUTED
