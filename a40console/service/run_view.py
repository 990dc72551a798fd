"""A run as its folder tells it, while the ledger does not have it: queued, running, just ended."""

from __future__ import annotations

from dataclasses import replace

from a40console.model.figures import Missing
from a40console.model.run import NOT_STARTED, Run
from a40console.model.run_order import RunOrder
from a40console.model.run_record import Ended, Found, Progressed, Record, Started
from a40console.service.run_folder import RunFolder, read_records

KILLED = "its process ended without a word"


class RunView:
    """Follows one folder; what was read once is not read again."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._offset = 0
        self._run: Run | None = None

    def look(self, *, lives: bool) -> Run | None:
        """The run now; None where its order cannot be read.

        Args:
            lives: Whether its process lives, or is yet to be started.
        """
        if self._run is None:
            order = self.folder.order()
            if order is None:
                return None
            self._run = _queued(order)
        run = self._run
        while True:
            offset, records = read_records(self.folder.records_file, self._offset)
            if offset == self._offset:
                break
            self._offset = offset
            for record in records:
                run = _with(run, record)
        if run.state == "queued" and self.folder.has_begun:
            run = replace(run, state="running")
        self._run = run
        if run.state == "running" and not lives:
            return replace(run, state="failed", reason=KILLED)
        return run


def _queued(order: RunOrder) -> Run:
    return Run(
        id=order.id,
        spec=order.spec,
        state="queued",
        asked_at=order.asked_at,
        settled=order.settled,
        environment=order.environment,
        plan=order.plan,
    )


def _with(run: Run, record: Record) -> Run:
    match record:
        case Started():
            return replace(
                run,
                state="running",
                started_at=record.at,
                environment=record.environment,
                plan=record.plan,
                settled=record.settled,
            )
        case Progressed():
            return replace(run, state="running", progress=record.progress)
        case Found():
            return replace(run, result=record.result)
        case Ended():
            started = record.at if run.started_at == NOT_STARTED else run.started_at
            progress = run.progress
            if isinstance(progress, Missing):
                progress = Missing("it has ended")
            return replace(
                run,
                state=record.state,
                reason=record.reason,
                ended_at=record.at,
                started_at=started,
                progress=progress,
            )
        case _:
            return run
