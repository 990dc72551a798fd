"""A run as its folder tells it, while the ledger does not have it: queued, running, just ended."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from a40console.errors import UsageError
from a40console.ledger.ending import run_of
from a40console.ledger.ingest import gone_of, read_order
from a40console.model.figures import Missing
from a40console.model.instants import iso_utc
from a40console.model.run import Run, RunPlan, RunSpec
from a40console.model.run_order import RunOrder
from a40console.model.run_record import Progressed, Record, Sample
from a40console.service.run_folder import RunFolder, read_records

LOST = Missing("its order is damaged")


class RunView:
    """Follows one folder, and tells of it what the ledger will; what was read is not read again."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._order: RunOrder | None = None
        self._damage = ""
        self._offset = 0
        self._records: list[Record] = []
        self._progress: tuple[Progressed, ...] = ()
        self._broken = 0
        self._told: tuple[bool, Run] | None = None

    def look(self, *, lives: bool) -> Run:
        """The run now.

        Args:
            lives: Whether its process lives, or is yet to be started.
        """
        order = self._order or self._ordered()
        if not self._read_on() and self._told is not None and self._told[0] == lives:
            return self._told[1]
        gone = None if lives else gone_of(self.folder.path)
        records = (*self._records, *self._progress)
        run = run_of(order, records, broken=self._broken, gone=gone)
        if run.state == "queued" and self.folder.has_begun:
            run = replace(run, state="running")  # it writes its first record in a moment
        if self._damage:
            run = self._damaged(run)
        self._told = (lives, run) if self._records else None  # till then a process may come
        return run

    def _ordered(self) -> RunOrder:
        """What was asked for; of a damaged order, what the folder's name says of it."""
        try:
            self._order = read_order(self.folder.path)
        except UsageError as error:
            self._damage = f"its order is damaged: {error.evidence or error.message}"
            self._order = _by_name(self.folder)
        return self._order

    def _damaged(self, run: Run) -> Run:
        """It may go on, but how it was asked is lost, and so what it found says nothing."""
        if run.state in ("queued", "running"):
            return replace(run, reason=self._damage)
        measured = not isinstance(run.result, Missing)
        return replace(run, state="invalid" if measured else "failed", reason=self._damage)

    def _read_on(self) -> bool:
        """Read what was written since; whether anything was."""
        began = self._offset
        while True:
            offset, records, broken = read_records(self.folder.records_file, self._offset)
            if offset == self._offset:
                return self._offset != began
            self._offset = offset
            self._broken += broken
            for record in records:
                self._keep(record)

    def _keep(self, record: Record) -> None:
        """The last progress stands for all, and the gaps of a request are in no summary."""
        match record:
            case Progressed():
                self._progress = (record,)
            case Sample():
                self._records.append(replace(record, gaps_s=()))
            case _:
                self._records.append(record)


def _by_name(folder: RunFolder) -> RunOrder:
    """An order of which nothing is left but the name `20261130-174501-sweep-1f3a`."""
    named = folder.id.split("-", 2)[-1].rpartition("-")
    asked_at = ""
    with suppress(OSError):
        asked_at = iso_utc(folder.path.stat().st_mtime)
    plan = RunPlan(
        arms=(), requests=0, seconds=LOST, usd=LOST, intrusion="nothing", consequences=()
    )
    return RunOrder(
        id=folder.id,
        spec=RunSpec(experiment=named[0] or named[2]),
        settled={},
        plan=plan,
        asked_at=asked_at,
        environment=LOST,
    )
