"""Controlled experiments as the service offers them: planned, queued, followed, kept, compared."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from a40console.errors import RefusedError, UsageError
from a40console.experiments.bench import Design, Known
from a40console.model.codec import encode
from a40console.model.experiment import Experiment, Value, write_value
from a40console.model.figures import Missing
from a40console.model.instants import iso_utc
from a40console.model.run import (
    ENDED,
    Comparison,
    Hypothesis,
    Run,
    RunPlan,
    RunSpec,
    RunTarget,
)
from a40console.model.run_order import RunOrder
from a40console.model.run_record import Record
from a40console.operations.operator import EngineOperator
from a40console.operations.roles import Recorder
from a40console.operations.who import asking
from a40console.paths import Paths
from a40console.service.own_lengths import Detail, with_own_lengths
from a40console.service.run_disturbed import Clients
from a40console.service.run_folder import RunFolder, read_lines
from a40console.service.run_ledger import RunLedger
from a40console.service.run_planning import (
    Designs,
    offers,
    planned,
    refuse_engine,
    settled_of,
)
from a40console.service.run_queue import RunQueue
from a40console.service.run_view import RunView

LONGEST_KEY = 4096
SOON = Missing("a moment, or as long as a start where the engine was started otherwise")
KEPT_WITHIN_S = 5.0
KEPT_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Works:
    """What the runs are made with."""

    paths: Paths
    operator: EngineOperator
    queue: RunQueue
    ledger: RunLedger
    designs: Designs
    known: Callable[[RunTarget], Awaitable[Known]]
    clients: Callable[[], Clients]
    session: Detail
    keys: dict[str, str]
    record: Recorder


class Runs:
    """Everything that the control API tells and does about runs."""

    def __init__(self, works: Works) -> None:
        self._works = works
        self._views: dict[str, RunView] = {}

    @property
    def queue(self) -> RunQueue:
        """The runs that wait and the one that runs."""
        return self._works.queue

    @property
    def ledger(self) -> RunLedger:
        """The runs that have ended."""
        return self._works.ledger

    # --- Before -------------------------------------------------------------------------------

    def experiments(self) -> tuple[Experiment, ...]:
        """What can be run."""
        return offers(self._works.designs)

    async def plan(self, spec: RunSpec) -> RunPlan:
        """What a run would take and do.

        Raises:
            UsageError: If the spec names what does not exist.
            RefusedError: If its engine is not there.
        """
        spec = with_own_lengths(spec, self._works.session)
        design, settled = settled_of(self._works.designs, spec)
        return await self._planned(design, settled, spec)

    async def _planned(self, design: Design, settled: dict[str, Value], spec: RunSpec) -> RunPlan:
        operator, target, run = self._works.operator, spec.target, self.running()
        change = operator.under_way
        refuse_engine(
            target,
            operator.status,
            changing="" if change is None else change.change.what,
            measured=run is not None and run.spec.target.kind != "url",
        )
        known = await self._works.known(target)
        clients = None if target.kind == "url" else self._clients()
        return planned(design, settled, spec, known, clients)

    def _clients(self) -> Clients:
        """Who uses our engine beside the run that measures it, which will be over by then."""
        clients, run = self._works.clients(), self.running()
        if run is None or run.spec.target.kind == "url":
            return clients
        return replace(clients, requests=0)  # those of the run are not told from others

    async def start(self, spec: RunSpec, key: str = "") -> RunOrder:
        """Let a run wait for its turn; it begins at once where none is before it.

        Args:
            spec: What is asked for.
            key: What the server at a URL asks for; it is never written down.

        Raises:
            UsageError: If the spec names what does not exist.
            RefusedError: If it cannot be run as asked; the message says why.
        """
        key = key.strip()
        if len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()):
            raise UsageError(
                f"A key has at most {LONGEST_KEY} characters, of ASCII and on one line",
                remedy="See what A40CONSOLE_TARGET_TOKEN holds.",
            )
        spec = with_own_lengths(spec, self._works.session)
        design, settled = settled_of(self._works.designs, spec)
        plan = await self._planned(design, settled, spec)
        if plan.refusal:
            raise RefusedError(
                f"The run is refused: {plan.refusal}",
                evidence=" ".join(plan.consequences),
                remedy="Start it when nobody works: --when idle; or accept what it does: --yes",
            )
        order = RunOrder(
            id=_fresh_id(spec.experiment),
            spec=spec,
            settled={name: write_value(value) for name, value in settled.items()},
            plan=plan,
            asked_at=iso_utc(time.time()),
            who=asking(),
        )
        keyed = bool(key) and spec.target.kind == "url"
        self.queue.add(order, keyed=keyed)
        if keyed:
            self._works.keys[order.id] = key
        told = {"run": order.id, "who": order.who}
        text = f"{spec.experiment} ({spec.preset}) is asked for: {order.id}"
        self._works.record("run.queued", text, "info", told)
        return order

    # --- Meanwhile and after ------------------------------------------------------------------

    async def newest(self, limit: int, *, only_live: bool = False) -> tuple[Run, ...]:
        """The newest runs, newest first; the ledger is not asked for `only_live`."""
        kept: tuple[Run, ...] = ()
        if not only_live:
            await self.queue.compare()
            kept = await self.ledger.ask(lambda ledger: ledger.runs(limit))
        live = self._live()
        both = {run.id: run for run in kept} | live
        ordered = sorted(both.values(), key=lambda run: (run.asked_at, run.id), reverse=True)
        return tuple(ordered[:limit])

    async def find(self, name: str) -> Run:
        """One run; the beginning of its id will do.

        Raises:
            UsageError: If none, or more than one, is known by that name.
        """
        live = self._live()
        found = [run for run_id, run in live.items() if run_id.startswith(name)]
        if name in live:
            return live[name]
        if len(found) == 1 and name:
            return found[0]
        if len(found) > 1:
            raise UsageError(
                f"More than one run begins with {name}",
                evidence=", ".join(run.id for run in found),
            )
        return await self.ledger.ask(lambda ledger: ledger.run(name))

    async def records(self, name: str, after: int) -> tuple[int, list[bytes]]:
        """What a run has recorded since as lines of JSON, and what to ask with next time."""
        run = await self.find(name)
        file = RunFolder(self._works.paths.runs / run.id).records_file
        if file.exists():
            following, lines = await asyncio.to_thread(read_lines, file, after)
            return following, [line for line in lines if _is_whole(line)]
        if run.id in self._live():
            return after, []  # it waits, or writes its first record in a moment
        samples = await self.ledger.ask(lambda ledger: ledger.samples(run.id))
        ends = await self.ledger.ask(lambda ledger: ledger.arm_ends(run.id))
        every: list[Record] = [*samples, *ends]
        return len(every), [json.dumps(encode(record)).encode() for record in every[after:]]

    async def compare(self, left: str, right: str) -> Comparison:
        """Two runs side by side."""
        ids = [(await self.find(name)).id for name in (left, right)]
        return await self.ledger.ask(lambda ledger: ledger.compare(ids[0], ids[1]))

    async def document(self, name: str) -> Any:
        """Everything of a run that has ended."""
        run = await self.find(name)
        if run.state in ENDED:
            await self._taken_over(run.id)
        return await self.ledger.ask(lambda ledger: ledger.document(run.id))

    async def hypotheses(self) -> tuple[Hypothesis, ...]:
        """Every claim."""
        return await self.ledger.ask(lambda ledger: ledger.hypotheses())

    def running(self) -> Run | None:
        """The run that is carried out now."""
        current = self.queue.current
        return None if current is None else self._look(current.folder)

    async def cancel(self, name: str, why: str) -> str:
        """End a run; what was done, in words.

        Args:
            name: The run's, or the beginning of its id; empty is the one that runs.
            why: For its record.

        Raises:
            RefusedError: If no such run waits or runs.
        """
        if name:
            return self.queue.cancel((await self.find(name)).id, why)
        current = self.queue.current
        if current is None and not self.queue.queued:
            raise RefusedError("No run waits or runs")
        folder = current.folder if current else self.queue.queued[0]
        return self.queue.cancel(folder.id, why)

    async def _taken_over(self, run_id: str) -> None:
        """Wait a moment until the ledger has a run that has just ended."""
        until_s = time.monotonic() + KEPT_WITHIN_S
        while any(folder.id == run_id for folder in self.queue.folders):
            if time.monotonic() > until_s:
                return
            await asyncio.sleep(KEPT_LOOK_S)

    def _live(self) -> dict[str, Run]:
        """The runs that the ledger does not have, by id."""
        folders = self.queue.folders
        for gone in self._views.keys() - {folder.id for folder in folders}:
            del self._views[gone]
        return {folder.id: self._look(folder) for folder in folders}

    def _look(self, folder: RunFolder) -> Run:
        view = self._views.setdefault(folder.id, RunView(folder))
        run = view.look(lives=self.queue.lives(folder))
        current = self.queue.current
        if run.state in ENDED and current and current.folder.id == folder.id:
            return _put_back(run)
        why = self.queue.waits_for(folder)
        if run.state != "queued" or not why:
            return run
        return replace(run, reason=f"it waits: {why}")


def _put_back(run: Run) -> Run:
    """A run that has measured everything: until the engine is as it was, others must wait."""
    progress = run.progress
    if not isinstance(progress, Missing):
        progress = replace(progress, text="the engine is put back as it was", eta_s=SOON)
    return replace(run, state="running", progress=progress)


def _is_whole(line: bytes) -> bool:
    """Whether a line is JSON: one that a broken disk has damaged is left out."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _fresh_id(experiment: str) -> str:
    """`20261130-174501-compaction-1f3a`."""
    at = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return f"{at}-{experiment}-{secrets.token_hex(2)}"
