"""Experiments and runs as the service's client tells them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar
from urllib.parse import quote

from a40console.errors import RefusedError, UsageError
from a40console.model.codec import DecodeError, decode, decode_as, encode
from a40console.model.experiment import Experiment
from a40console.model.run import Comparison, Hypothesis, Run, RunPlan, RunSpec
from a40console.model.run_copies import NotCopied
from a40console.model.run_record import Record

T = TypeVar("T")


class RunCalls(ABC):
    """What a client of the service asks about runs; every failure is a ConsoleError."""

    @abstractmethod
    async def _request(self, method: str, path: str, **options: Any) -> Any:
        """The JSON of an answer."""

    async def experiments(self) -> tuple[Experiment, ...]:
        """Every experiment that can be run."""
        return _all_of(Experiment, await self._request("GET", "/v1/experiments"))

    async def plan_run(self, spec: RunSpec) -> RunPlan:
        """What a run would take and do to the engine's clients; nothing is started.

        Raises:
            UsageError: If there is no such experiment, preset, parameter or value.
        """
        data = await self._request("POST", "/v1/run-plan", json=encode(spec))
        return _of(RunPlan, data)

    async def runs(self, limit: int = 100, *, only_live: bool = False) -> tuple[Run, ...]:
        """The newest runs, newest first: those that wait and the one that runs are among them.

        Args:
            limit: How many.
            only_live: Those alone that the ledger does not have yet, and without asking it.
        """
        query: dict[str, Any] = {"limit": limit} | ({"kept": "no"} if only_live else {})
        return _all_of(Run, await self._request("GET", "/v1/runs", params=query))

    async def run(self, run_id: str) -> Run:
        """One run; the beginning of its id will do.

        Raises:
            UsageError: If none, or more than one, is known by that name.
        """
        return _of(Run, await self._request("GET", _path(run_id)))

    async def run_records(self, run_id: str, after: int = 0) -> tuple[int, tuple[Record, ...]]:
        """What a run has recorded since.

        Args:
            run_id: The run.
            after: What the last call answered first; 0 begins with the first record.

        Returns:
            What to ask with next time, and the records, oldest first; not always all of them.
        """
        path = f"{_path(run_id)}/records"
        data = await self._request("GET", path, params={"after": after})
        try:
            records = tuple(decode_as(Record, item, "record") for item in data["records"])
        except DecodeError as error:
            raise _another_form(error) from error
        return int(data["next"]), records

    async def compare_runs(self, left: str, right: str) -> Comparison:
        """Two runs side by side."""
        query = {"left": left, "right": right}
        return _of(Comparison, await self._request("GET", "/v1/runs/compare", params=query))

    async def run_document(self, run_id: str) -> dict[str, Any]:
        """Everything of a run that has ended, as `runs.import` takes it."""
        data = await self._request("GET", f"{_path(run_id)}/document")
        return dict(data)

    async def run_report(self, run_id: str, form: str) -> str:
        """A run that has ended as a text for others: `md`, `html`, `csv` or `json`.

        Raises:
            RefusedError: If it has nothing of that form.
        """
        path = f"{_path(run_id)}/report"
        return str((await self._request("GET", path, params={"form": form}))["text"])

    async def hypotheses(self) -> tuple[Hypothesis, ...]:
        """Every claim, newest first."""
        return _all_of(Hypothesis, await self._request("GET", "/v1/hypotheses"))

    async def runs_left(self) -> NotCopied:
        """The runs that no other machine has, whether this one will be gone, and how they go."""
        return _of(NotCopied, await self._request("GET", "/v1/runs/not-copied"))


def _path(run_id: str) -> str:
    """Where a run is asked for.

    Raises:
        UsageError: If no run can have that name: a path would lead elsewhere.
    """
    if "/" in run_id or run_id in ("", ".", ".."):
        raise UsageError(
            f"There is no run {run_id!r}", remedy="`a40console runs list` shows those there are."
        )
    return f"/v1/runs/{quote(run_id, safe='')}"


def _of(kind: type[T], data: Any) -> T:
    try:
        return decode(kind, data)
    except DecodeError as error:
        raise _another_form(error) from error


def _all_of(kind: type[T], data: Any) -> tuple[T, ...]:
    return tuple(_of(kind, item) for item in data)


def _another_form(error: DecodeError) -> RefusedError:
    return RefusedError(
        "The service answers in another form than this version reads",
        evidence=str(error),
        remedy="Restart it: a40console stop, then this command again. The engine keeps running.",
    )
