"""What an engine is that a service before us started: serving, still starting, orphaned, ended."""

from __future__ import annotations

from dataclasses import replace

from a40console.engines.logs import last_lines
from a40console.engines.process import EngineProcess, ProcessState
from a40console.engines.run_record import OUTPUT_FILE
from a40console.model.engine import EngineState
from a40console.operations.asked import not_in_force
from a40console.operations.record import RunRecord, asleep_level, before, has_served
from a40console.operations.status import EngineStatus

EXAMINED_LINES = 2000
"""Of its output, for what it says that it runs."""


def adopted_status(run: RunRecord, process: EngineProcess, now_s: float) -> EngineStatus:
    """The status to take it over with.

    One that had come to serve is taken to serve: whether it still answers is telemetry's to tell,
    and nothing here may end it.
    """
    identity, earlier = process.identity, before(process.run_dir)
    status = EngineStatus(
        state=EngineState.STARTING,
        profile=run.asked or run.profile,
        run=run,
        rung=run.rung,
        phase="load",
        phase_since_s=identity.started_monotonic_s,
        pid=process.pid,
        session_id=identity.session_id,
        leader=identity.leader,
        started_at_s=identity.started_monotonic_s,
        restarts=earlier.restarts,
        end=earlier.end,
    )
    if process.state() is ProcessState.ORPHANED:
        return replace(
            status,
            state=EngineState.ORPHANED,
            phase=None,
            phase_since_s=now_s,
            survivors=tuple(process.members()),
            left="survivors",
        )
    if not has_served(process.run_dir):
        return status
    level = asleep_level(process.run_dir)
    lines = last_lines(process.run_dir / OUTPUT_FILE, EXAMINED_LINES)
    return replace(
        status,
        state=EngineState.ASLEEP if level else EngineState.SERVING,
        phase=f"asleep, level {level}" if level else "ready",
        phase_since_s=now_s,
        differences=not_in_force(run, lines),
    )
