"""The runs that wait and the one that runs: one at a time, through restarts of the service."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from a40console.errors import ConsoleError, RefusedError
from a40console.model.event import Severity
from a40console.model.figures import Missing
from a40console.model.instants import iso_utc
from a40console.model.profile import Profile
from a40console.model.run import Run
from a40console.model.run_order import RunOrder
from a40console.model.run_record import Ended
from a40console.operations.roles import Recorder
from a40console.paths import Paths
from a40console.service.run_folder import RunFolder, prune, run_folders
from a40console.service.run_process import RunProcess
from a40console.service.run_records import RecordsError, RunRecords

LONGEST = 16
LOOK_S = 0.25
REST_S = 5.0
"""Between two looks while nothing waits, for what the ledger could not take before."""

Start = Callable[[RunFolder, Paths, str, Mapping[str, str]], RunProcess]

log = logging.getLogger(__name__)


class RunWorld(Protocol):
    """What the queue asks of the service."""

    def settled(self) -> bool:
        """Whether it is known which engine runs: a service that has just begun looks for it."""

    def hindrance(self, order: RunOrder) -> str:
        """Why a run cannot start yet; empty where it can.

        Raises:
            RefusedError: If it never can.
        """

    async def equip(self, order: RunOrder) -> tuple[RunOrder, Profile | None]:
        """The order with what it runs on, and what the engine is, to be put back after it.

        Raises:
            ConsoleError: If it cannot start.
        """

    def token(self, order: RunOrder) -> str | None:
        """The secret of its target, empty for none; None where it is lost."""

    async def put_back(self, profile: Profile) -> str:
        """Make the engine what it was before a run; what was done, in words."""

    async def keep(self, folder: RunFolder) -> Run:
        """Let the ledger take a run that has ended; raises LedgerError."""

    async def has(self, folder: RunFolder) -> bool:
        """Whether the ledger has a run; raises LedgerError."""


class RunQueue:
    """Starts runs one after the other and takes over what they measured."""

    def __init__(
        self, paths: Paths, world: RunWorld, record: Recorder, *, start: Start = RunProcess.start
    ) -> None:
        """Take up what a service before us left.

        Args:
            paths: Where runs lie.
            world: The rest of the service.
            record: Takes events.
            start: Starts the process of a run.
        """
        self._start = start
        self._paths = paths
        self._world = world
        self._record = record
        self._queued: list[RunFolder] = []
        self._unkept: list[RunFolder] = []
        self._again: list[RunFolder] = []
        self._must_compare = True
        self._comparing = asyncio.Lock()
        self._wake = asyncio.Event()
        self._waits_for = ""
        self._unkept_told: dict[str, str] = {}
        self._keep_again_s = 0.0
        self.current: RunProcess | None = None
        self._recover()

    @property
    def queued(self) -> tuple[RunFolder, ...]:
        """The runs that wait, the next one first."""
        return tuple(self._queued)

    def waits_for(self, folder: RunFolder) -> str:
        """What a run waits for beside its turn; empty for nothing, and where it is not known."""
        is_next = self.current is None and self._queued[:1] == [folder]
        return self._waits_for if is_next else ""

    @property
    def folders(self) -> tuple[RunFolder, ...]:
        """The runs that the ledger does not have: waiting, running, or just ended."""
        running = () if self.current is None else (self.current.folder,)
        return (*self._unkept, *running, *self._queued)

    def lives(self, folder: RunFolder) -> bool:
        """Whether a run waits or is carried out."""
        if folder in self._queued:
            return True
        current = self.current
        return current is not None and current.folder == folder and current.lives()

    def compare_with_ledger(self) -> None:
        """See anew whether the ledger has what it was given: it may have lost some."""
        self._must_compare = True
        self._wake.set()

    def add(self, order: RunOrder, *, keyed: bool = False) -> None:
        """Let a run wait for its turn.

        Args:
            order: What is to be done.
            keyed: Whether its target was given a key.

        Raises:
            RefusedError: If too many wait, or the disk does not take the order.
        """
        if len(self._queued) >= LONGEST:
            raise RefusedError(
                f"{LONGEST} runs wait already",
                remedy="Wait for them, or cancel one: a40console run cancel ID",
            )
        folder = RunFolder(self._paths.runs / order.id)
        try:
            folder.write_order(order)
            if keyed:
                folder.note_keyed()
        except OSError as error:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise RefusedError(
                "The run cannot be written down",
                evidence=str(error),
                remedy="Free space on the disk that holds the console's home.",
            ) from error
        self._queued.append(folder)
        self._wake.set()

    def cancel(self, run_id: str, why: str) -> str:
        """End a run, or let it not begin; what was done, in words.

        Raises:
            RefusedError: If no such run waits or runs.
        """
        if self.current is not None and self.current.folder.id == run_id:
            self.current.ask_to_end(why)
            self._wake.set()
            return f"{run_id} is asked to end; what it measured is kept"
        for folder in self._queued:
            if folder.id == run_id:
                self._drop(folder, f"{why}, before it began")
                return f"{run_id} does not start"
        raise RefusedError(
            f"{run_id} neither waits nor runs", remedy="See them: a40console runs list"
        )

    async def released(self, timeout_s: float) -> bool:
        """Wait until the process of the run is gone; whether that came within the time."""
        until_s = time.monotonic() + timeout_s
        while (current := self.current) is not None and current.lives():
            if time.monotonic() > until_s:
                return False
            await asyncio.sleep(LOOK_S)
        return True

    async def run(self) -> None:
        """Carry runs out until cancelled; the one that runs outlives that."""
        while True:
            self._wake.clear()  # what wakes it during a step is seen to at once after it
            try:
                await self._tick()
            except Exception:
                log.exception("the queue of runs could not go on")
            busy = self.current is not None or self._queued
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S if busy else REST_S):
                    await self._wake.wait()

    # --- One step -----------------------------------------------------------------------------

    async def _tick(self) -> None:
        if not self._world.settled():
            return
        if time.monotonic() >= self._keep_again_s:
            await self.compare()
            for folder in list(self._unkept):
                await self._keep(folder)
        if (current := self.current) is not None:
            current.end_if_late()
            if current.lives():
                return
            await self._finish(current)
        if self.current is None:
            await self._begin_next()

    async def _begin_next(self) -> None:
        """Begin the first run that can: one that waits for our engine holds up no run elsewhere."""
        for folder in self.queued:
            order = folder.order()
            if order is None:
                self._drop(folder, "its order cannot be read")
                return
            if folder is not self._queued[0] and order.spec.target.kind != "url":
                continue
            await self._begin(folder, order)
            if self.current is not None or folder not in self._queued:
                return

    async def _begin(self, folder: RunFolder, order: RunOrder) -> None:
        try:
            if why := self._world.hindrance(order):
                self._note_waiting(folder, why)
                return
            token = self._world.token(order)
            if token is None:
                raise RefusedError("The key of its URL is lost: the service was started anew")
            order, before = await self._world.equip(order)
            if folder not in self._queued:
                return  # cancelled meanwhile
            folder.write_order(order)
            if before is not None:
                folder.write_before(before)
            self.current = self._start(folder, self._paths, token, os.environ)
        except ConsoleError as error:
            self._drop(folder, f"{error.message}: {error.evidence}".rstrip(": "))
            return
        except OSError as error:
            self._drop(folder, f"it could not be started: {error}")
            return
        if folder is self._queued[0]:
            self._waits_for = ""
        self._queued.remove(folder)
        spec = order.spec
        told = {"run": order.id, "who": order.who}
        self._record("run.started", f"{spec.experiment} ({spec.preset}) begins", "info", told)

    def _note_waiting(self, folder: RunFolder, why: str) -> None:
        if why != self._waits_for:
            self._waits_for = why
            self._record("run.waits", f"{folder.id} waits: {why}", "info", {"run": folder.id})

    async def _finish(self, process: RunProcess) -> None:
        """Put the engine back, and let the ledger take what was measured."""
        folder = process.folder
        data = {"run": folder.id}
        if (before := folder.before()) is not None:
            told = await self._world.put_back(before)
            if told:
                self._record("run.engine-put-back", f"after {folder.id}: {told}", "info", data)
        elif folder.may_have_changed_engine:
            text = f"what the engine was before {folder.id} cannot be read: it stays as it is now"
            self._record("run.engine-not-put-back", text, "error", data)
        folder.forget_before()
        self.current = None
        self._unkept.append(folder)
        await self._keep(folder)

    async def compare(self) -> None:
        """Let the ledger take again what it had and lost: the folders still have the newest."""
        async with self._comparing:
            if self._must_compare:
                await self._find_lost()

    async def _find_lost(self) -> None:
        self._must_compare = False
        try:
            for folder in run_folders(self._paths.runs):
                if folder.is_kept and not await self._world.has(folder):
                    folder.forget_kept()
                    self._again.append(folder)
                    self._unkept.append(folder)
        except ConsoleError as error:
            self._must_compare = True
            self._keep_again_s = time.monotonic() + REST_S
            log.warning("what the ledger has is not known: %s (%s)", error.message, error.evidence)

    async def _keep(self, folder: RunFolder) -> None:
        try:
            run = await self._world.keep(folder)
        except ConsoleError as error:
            self._keep_again_s = time.monotonic() + REST_S
            self._note_unkept(folder, error)
            return
        folder.note_kept()
        self._unkept.remove(folder)
        self._unkept_told.pop(folder.id, None)
        if folder in self._again:
            self._again.remove(folder)
            text = f"{run.id} was not in the ledger any more, and is again"
            self._record("run.kept-again", text, "info", {"run": run.id})
            return
        headline = "" if isinstance(run.result, Missing) else run.result.headline
        words = f"{run.spec.experiment}: {run.state}"
        told = run.reason or headline
        text = f"{words}, {told}" if told else words
        severity: Severity = "info" if run.state in ("done", "partial") else "warn"
        self._record("run.ended", text, severity, {"run": run.id})
        if not self._must_compare:  # a ledger that was just lost is filled again from the folders
            prune(self._paths.runs)

    def _note_unkept(self, folder: RunFolder, error: ConsoleError) -> None:
        text = f"{folder.id} is not in the ledger yet: {error.message}"
        if text != self._unkept_told.get(folder.id):
            self._unkept_told[folder.id] = text
            data = {"run": folder.id, "evidence": error.evidence, "remedy": error.remedy}
            self._record("run.unkept", text, "error", data)

    def _drop(self, folder: RunFolder, why: str) -> None:
        """A run that waited does not begin: it ends as failed, and says why."""
        if folder not in self._queued:
            return  # dropped before, while this step waited
        self._queued.remove(folder)
        self._unkept.append(folder)
        with suppress(OSError, RecordsError), RunRecords(folder.records_file) as records:
            records.append(Ended(at=iso_utc(time.time()), state="failed", reason=why))
        self._wake.set()

    def _recover(self) -> None:
        """Take up what a service before us left: what runs, what waits, what nobody took over."""
        for folder in run_folders(self._paths.runs):
            if folder.is_kept:
                continue
            process = RunProcess(folder)
            if not folder.has_begun:
                self._queued.append(folder)
            elif process.lives() or (folder.may_have_changed_engine and self.current is None):
                if self.current is not None:
                    self._unkept.append(self.current.folder)
                self.current = process
            else:
                self._unkept.append(folder)
