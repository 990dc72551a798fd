"""Why an engine of ours ended: its exit record and its last lines, put to the diagnosis."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from a40console.engines.diagnosis import Ending, StartFailureKind, diagnose
from a40console.engines.logs import last_lines
from a40console.engines.model_shape import longest_context
from a40console.engines.process import EngineProcess, StopReport
from a40console.engines.run_record import OUTPUT_FILE, UNSEEN_EXIT, EngineExit
from a40console.engines.tree import ProcessInfo
from a40console.errors import ConsoleError, NotServingError, TimedOutError
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.figures import Missing
from a40console.operations.failure_note import (
    FIX_COMMAND,
    failure_of,
    keep_note,
    note_failure,
    stall_note,
)
from a40console.operations.memory import GpuTakenError
from a40console.operations.status import EngineStatus
from a40console.operations.watch import Explain, Explanation

DIAGNOSED_LINES = 400

log = logging.getLogger(__name__)


class FailedStartError(NotServingError):
    """An engine that ended before it served, and of which kind its failure is."""

    kind: StartFailureKind = "other"
    code: str = ""
    """Of the diagnosis: `kv-cache-too-small`."""

    mended_by: str = ""
    """The command that mends it; empty where none is certain to."""

    @property
    def told(self) -> dict[str, str]:
        """What its event says besides the words."""
        told = {"code": self.code, "failure": self.kind, "command": self.mended_by}
        return {name: value for name, value in told.items() if value}


def kind_of_failure(error: ConsoleError) -> StartFailureKind:
    """What a start failed of; of what is refused before any process only the GPU's memory tells."""
    if isinstance(error, FailedStartError):
        return error.kind
    return "out_of_memory" if isinstance(error, GpuTakenError) else "other"


def unforeseen(name: str, error: Exception) -> ConsoleError:
    """What the operator reads where a start broke off on something that nobody foresaw."""
    log.error("the start of %s broke off", name, exc_info=error)
    if isinstance(error, OSError):
        return ConsoleError(
            f"{name} could not be started: {error.strerror or error}",
            evidence=str(error),
            remedy="Look at the disk and the limits of this machine: a40console doctor",
        )
    return ConsoleError(
        f"{name} could not be started: a bug of ours",
        evidence=f"{type(error).__name__}: {error}",
        remedy="The trace is in service.log.",
    )


def explain(process: EngineProcess, status: EngineStatus, now_s: float) -> Explanation:
    """The cause of an end that nobody of us asked for, with its evidence and what to do."""
    exit_, run = process.exit(), status.run
    if exit_ is None and process.keeper_alive():
        return Explanation(
            end=end_of(UNSEEN_EXIT, "it ended, and its keeper cannot write down how"),
            evidence=f"no exit.json in {process.run_dir}",
            remedy="The disk is probably full: free space, and the keeper writes it.",
        )
    exit_ = exit_ or UNSEEN_EXIT
    if run is None:
        return Explanation(end=end_of(exit_, exit_.cause), evidence="", remedy="")
    diagnosis = diagnose(
        Ending(
            profile=run.profile,
            exit=exit_,
            lines=last_lines(process.run_dir / OUTPUT_FILE, DIAGNOSED_LINES),
            phase=status.phase or "ready",
            after_s=now_s - process.identity.started_monotonic_s,
            longest_context=longest_context(run.profile, {**os.environ, **run.profile.environment}),
        )
    )
    note_failure(process.run_dir, diagnosis)
    return Explanation(
        end=end_of(exit_, diagnosis.cause),
        evidence=diagnosis.evidence,
        remedy=diagnosis.remedy,
        kind=diagnosis.start_failure,
    )


def end_of(exit_: EngineExit, cause: str) -> EngineEnd:
    """The end as a snapshot shows it."""
    unseen = Missing("nobody recorded how it ended")
    by_itself, by_signal = Missing("it ended by itself"), Missing("a signal ended it")
    return EngineEnd(
        code=(by_signal if exit_.signal else unseen) if exit_.code is None else exit_.code,
        signal=exit_.signal or (unseen if exit_.code is None else by_itself),
        cause=cause,
        at=exit_.ended_at or _now(),
    )


def never_began(cause: str) -> EngineEnd:
    """The end of a start that had no process."""
    why = Missing("it never began")
    return EngineEnd(code=why, signal=why, cause=cause, at=_now())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def failed_start(
    process: EngineProcess, status: EngineStatus, error: ConsoleError, explain: Explain | None
) -> tuple[ConsoleError, EngineStatus]:
    """What a start that failed is told as, and the status it leaves.

    `explain` is for one that ended by itself; without it the error says enough.
    """
    if explain is None:
        end = end_of(process.exit() or UNSEEN_EXIT, error.message)
        if status.stall is not None and status.run is not None:
            keep_note(process.run_dir, stall_note(status.stall, status.run.profile))
    else:
        why = explain(process, status)
        name = status.profile.name if status.profile else "the engine"
        end, text = why.end, f"{name} did not start: {why.end.cause}"
        error = FailedStartError(text, evidence=why.evidence, remedy=why.remedy)
        error.kind = why.kind
        if (note := failure_of(process.run_dir)) is not None:
            error.code, error.mended_by = note.code, FIX_COMMAND if note.fix else ""
    failed = replace(
        status,
        state=EngineState.FAILED,
        phase=None,
        end=end,
        end_evidence=error.evidence,
        remedy=error.remedy,
    )
    return error, failed


def refused_start(status: EngineStatus, error: ConsoleError) -> EngineStatus:
    """The status that a start leaves which had no process yet."""
    return replace(
        status,
        state=EngineState.FAILED,
        phase=None,
        end=never_began(error.message),
        end_evidence=error.evidence,
        remedy=error.remedy or "Mend that, then start it again.",
    )


def left_behind(
    status: EngineStatus, survivors: Sequence[ProcessInfo], report: StopReport
) -> EngineStatus:
    """The status that a stop leaves which did not end everything."""
    return replace(
        status,
        state=EngineState.ORPHANED,
        phase=None,
        survivors=tuple(survivors),
        left="unkillable" if report.unkillable else "survivors",
    )


def not_gone(report: StopReport) -> TimedOutError:
    """What such a stop is told as: it is not waited for any longer."""
    remedy = "Try again: a40console engine clean"
    if report.unkillable:
        remedy = "Restart the pod: nothing inside it can end them. All else goes on meanwhile."
    return TimedOutError("The engine is not gone", evidence=report.describe(), remedy=remedy)
