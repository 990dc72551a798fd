"""The commands on runs and on what is kept of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from a40console.errors import RefusedError, UsageError
from a40console.files import parse_json
from a40console.model.instants import iso_utc
from a40console.model.profile import Profile
from a40console.model.run import HypothesisState
from a40console.operations.operator import EngineOperator
from a40console.operations.turned import note_turned
from a40console.operations.who import asking
from a40console.service.run_folder import RunFolder
from a40console.service.runs import Runs
from a40console.service.runs_api import read_spec
from a40console.service.tasks import Handler

Arguments = Mapping[str, str]
Told = dict[str, str]
LONGEST_REVISION = 9
MOST_DIGITS = 18
END_WAIT_S = 40.0
"""How long a stop of the engine waits for a run to write down what it has."""

GUARDED = (
    "engine.start",
    "engine.restart",
    "engine.switch",
    "engine.apply",
    "engine.speculation",
    "engine.sleep",
    "engine.wake",
    "engine.drain",
    "engine.probe",
    "admission.pause",
    "cache.reset",
    "router.load",
    "router.unload",
)
"""What would change what a run measures: refused to everybody else while one runs."""

ENDING = ("engine.stop", "engine.clean")
"""What takes its engine away: the run ends first, and keeps what it has."""


class RunHandlers:
    """Carries out what is told about runs."""

    def __init__(self, runs: Runs, operator: EngineOperator, turned_file: Path) -> None:
        """With what the running profile's file said before a command turned speculation."""
        self._runs = runs
        self._operator = operator
        self._turned_file = turned_file

    def table(self) -> dict[str, Handler]:
        """Command id to what does it."""
        return {
            "run.start": self._start,
            "run.cancel": self._cancel,
            "run.restart": self._restart,
            "runs.note": self._note,
            "runs.invalidate": self._invalidate,
            "runs.import": self._import,
            "runs.copied": self._copied,
            "hypotheses.add": self._add,
            "hypotheses.conclude": self._conclude,
        }

    def guarded(self, table: Mapping[str, Handler]) -> dict[str, Handler]:
        """The table of all commands, with those guarded that would spoil the run that runs."""
        found = dict(table)
        found |= {name: self._refusing(name, table[name]) for name in GUARDED if name in table}
        found |= {name: self._ending(table[name]) for name in ENDING if name in table}
        found["service.stop"] = self._ending(
            table["service.stop"], only=lambda arguments: arguments.get("engine") == "yes"
        )
        return found

    # --- Runs ---------------------------------------------------------------------------------

    async def _start(self, arguments: Arguments) -> Told:
        spec = read_spec(arguments.get("spec", ""))
        order = await self._runs.start(spec, arguments.get("key", ""))
        before = len(self._runs.queue.queued) - 1 + (self._runs.queue.current is not None)
        told = f"{spec.experiment} is queued as {order.id}"
        waits = f", {before} before it" if before else ""
        return {"report": f"{told}{waits}.", "id": order.id}

    async def _cancel(self, arguments: Arguments) -> Told:
        who = asking().partition(", pid")[0]
        why = f"cancelled by {who}" if who else "cancelled"
        told = await self._runs.cancel(arguments.get("id", "").strip(), why)
        return {"report": f"{told}."}

    async def _restart(self, arguments: Arguments) -> Told:
        """A run's own arm: its engine anew, with or without speculation configured."""
        folder = self._folder_of(arguments.get("id", ""))
        before, order = folder.before(), folder.order()
        if before is None or order is None or order.plan.intrusion != "restarts":
            raise RefusedError(f"{folder.id} was not planned with a restart of the engine")
        match arguments.get("speculation", ""):
            case "off":
                profile = _without_speculation(before)
                what = f"restart without speculation for {folder.id}"
            case "as-was":
                profile, what = before, f"restart as it was for {folder.id}"
            case other:
                raise UsageError(f"speculation is off or as-was, not {other[:20]!r}")
        note_turned(self._turned_file, before)  # what a run turns is no edit of the file
        rung = self._operator.status.rung
        return await self._operator.replace_with(what, profile, rung=rung)

    def _folder_of(self, run_id: str) -> RunFolder:
        current = self._runs.queue.current
        if current is None or current.folder.id != run_id:
            raise RefusedError(f"{run_id[:80]} does not run")
        return current.folder

    # --- What is kept -------------------------------------------------------------------------

    async def _note(self, arguments: Arguments) -> Told:
        run_id, text = await self._kept_id(arguments), arguments.get("text", "")
        at = iso_utc(time.time())
        await self._runs.ledger.ask(lambda ledger: ledger.note(run_id, text, at))
        return {"report": f"Noted on {run_id}."}

    async def _invalidate(self, arguments: Arguments) -> Told:
        run_id, reason = await self._kept_id(arguments), arguments.get("reason", "")
        await self._runs.ledger.ask(lambda ledger: ledger.invalidate(run_id, reason))
        return {"report": f"{run_id} is invalid: {reason}"}

    async def _import(self, arguments: Arguments) -> Told:
        given = arguments.get("document", "")
        if given == "reference":
            rows = await self._runs.ledger.take(lambda ledger: ledger.import_reference())
            return {"report": f"{len(rows)} reference runs are here.", "runs": str(len(rows))}
        try:
            document = parse_json(given)
        except ValueError as error:
            raise UsageError("The document is not JSON", evidence=str(error)) from error
        run = await self._runs.ledger.take(lambda ledger: ledger.import_run(document))
        return {"report": f"{run.id} is here.", "id": run.id}

    async def _copied(self, arguments: Arguments) -> Told:
        ids = _listed(arguments.get("ids", ""))
        machine = arguments.get("machine", "").strip()
        if not ids or not machine:
            raise UsageError("Which runs are copied, and to which machine, is not said")
        for name, revision in [_copy_of(run_id) for run_id in ids]:
            await self._runs.ledger.ask(
                lambda ledger, name=name, number=revision: ledger.mark_copied(  # type: ignore[misc]
                    name, machine, revision=number
                )
            )
        return {"report": f"{machine} has {len(ids)} of the runs."}

    async def _add(self, arguments: Arguments) -> Told:
        text, at = arguments.get("text", ""), iso_utc(time.time())
        found = await self._runs.ledger.ask(lambda ledger: ledger.hypothesis_add(text, at))
        return {"report": f"Hypothesis {found.id}: {found.text}", "id": str(found.id)}

    async def _conclude(self, arguments: Arguments) -> Told:
        number, state = arguments.get("id", ""), arguments.get("state", "")
        if not _is_number(number):
            raise UsageError(f"A hypothesis has a number, not {number[:20]!r}")
        if state not in get_args(HypothesisState):
            known = ", ".join(get_args(HypothesisState))
            raise UsageError(f"A hypothesis is {known}, not {state[:20]!r}")
        ids = [(await self._runs.find(name)).id for name in _listed(arguments.get("runs", ""))]
        why, at = arguments.get("why", ""), iso_utc(time.time())
        found = await self._runs.ledger.ask(
            lambda ledger: ledger.hypothesis_conclude(
                int(number), cast("HypothesisState", state), at, runs=ids, why=why
            )
        )
        return {"report": f"Hypothesis {found.id} is {found.state}.", "id": str(found.id)}

    async def _kept_id(self, arguments: Arguments) -> str:
        name = arguments.get("id", "").strip()
        if not name:
            raise UsageError("No run is named", remedy="See them: a40console runs list")
        return (await self._runs.find(name)).id

    # --- What others may do meanwhile ---------------------------------------------------------

    def _measures_ours(self) -> str:
        """The run that measures our engine now; empty where none does."""
        run = self._runs.running()
        return "" if run is None or run.spec.target.kind == "url" else run.id

    def _refusing(self, name: str, handler: Handler) -> Handler:
        async def carry_out(arguments: Arguments) -> Told:
            run_id = self._measures_ours()
            if run_id and run_id not in asking():
                raise RefusedError(
                    f"No {name} now: an experiment measures the engine",
                    evidence=run_id,
                    remedy=f"Wait for its end, or cancel it: a40console run cancel {run_id}",
                )
            return await handler(arguments)

        return carry_out

    def _ending(
        self, handler: Handler, only: Callable[[Arguments], bool] = lambda arguments: True
    ) -> Handler:
        async def carry_out(arguments: Arguments) -> Told:
            if only(arguments) and (run_id := self._measures_ours()):
                who = asking().partition(", pid")[0] or "the service"
                self._runs.queue.cancel(run_id, f"its engine was stopped by {who}")
                await self._runs.queue.released(END_WAIT_S)
            return await handler(arguments)

        return carry_out


def _without_speculation(profile: Profile) -> Profile:
    """The same engine, started without anything that drafts."""
    asked = profile.speculation
    if asked is None:
        return profile
    return replace(profile, speculation=replace(asked, enabled=False, start=None))


def _copy_of(text: str) -> tuple[str, int | None]:
    """A run's id and the revision that was copied, which is the present one where none is said.

    Raises:
        UsageError: If it is no revision: then nothing is known to be copied.
    """
    name, at, revision = text.partition("@")
    if not at:
        return name, None
    if not revision.isdecimal() or len(revision) > LONGEST_REVISION or int(revision) < 1:
        raise UsageError(f"A revision is a number from 1 on, not {revision[:20]!r}")
    return name, int(revision)


def _is_number(text: str) -> bool:
    """Whether it is a number that a table can hold."""
    return text.isdecimal() and len(text) <= MOST_DIGITS


def _listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
