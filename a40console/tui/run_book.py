"""What the runs screen knows: the list, the followed run, and two side by side; asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.errors import ConsoleError
from a40console.model.figures import Missing
from a40console.model.run import ENDED, Comparison, Run
from a40console.model.run_facts import in_order
from a40console.tui.run_watch import RunWatch

if TYPE_CHECKING:
    from a40console.service.client import ServiceClient

_KEPT = 8
_MOST_PAGES = 20
"""Pages of records that are read at once before anything is drawn."""


class RunBook:
    """Runs as the service last told them."""

    def __init__(self) -> None:
        self.runs: tuple[Run, ...] = ()
        self.fetched = False
        self.trouble = ""
        self.left = ""
        """The run that others are compared with; empty for none."""

        self.comparison: Comparison | None = None
        self._whole: dict[str, Run] = {}
        """The runs that were looked at, with their results; few."""

        self._watch: RunWatch | None = None

    @property
    def active(self) -> bool:
        """Whether any run waits or is under way."""
        return any(map(_moves, self.runs))

    def shown(self, run: Run | None) -> Run | None:
        """A listed run as it is known in full."""
        if run is None:
            return None
        whole = self._whole.get(run.id)
        return whole if whole is not None and whole.state == run.state else run

    def watch_of(self, run: Run | None) -> RunWatch | None:
        """What the records of a run have told; None where they are not followed."""
        follows = run is not None and self._watch is not None and self._watch.run_id == run.id
        return self._watch if follows else None

    async def list_runs(self, client: ServiceClient) -> None:
        """Ask for the list anew."""
        try:
            self.runs = in_order(await client.runs())
            self.trouble = ""
        except ConsoleError as error:
            self.trouble = error.message
        self.fetched = self.fetched or not self.trouble

    async def look_at(self, client: ServiceClient, run: Run) -> None:
        """Ask for a run in full, and for what it has recorded since."""
        known = self.shown(run)
        try:
            if known is None or known is run or _moves(run) or _changed(known, run):
                self._keep(await client.run(run.id))
            whole = self.shown(run) or run
            if whole.state != "queued" and isinstance(whole.result, Missing):
                await self._follow(client, whole)
            self.trouble = ""
        except ConsoleError as error:
            self.trouble = error.message

    async def compare(self, client: ServiceClient, right: str) -> None:
        """Ask how another run differs from the marked one, and for both in full.

        Raises:
            ConsoleError: If the service does not tell.
        """
        self.comparison = await client.compare_runs(self.left, right)
        for run_id in (self.left, right):
            self._keep(await client.run(run_id))

    def by_id(self, run_id: str) -> Run | None:
        """A run by its name."""
        listed = next((run for run in self.runs if run.id == run_id), None)
        return self._whole.get(run_id) or listed

    def _keep(self, run: Run) -> None:
        self._whole.pop(run.id, None)
        self._whole[run.id] = run
        while len(self._whole) > _KEPT:
            self._whole.pop(next(iter(self._whole)))

    async def _follow(self, client: ServiceClient, run: Run) -> None:
        """Its records so far; of one that has ended without a result, once."""
        watch = self._watch
        if watch is None or watch.run_id != run.id:
            watch = self._watch = RunWatch(run.id)
        if not watch.whole:
            await self._read_on(client, watch)
            watch.whole = not _moves(run)

    async def _read_on(self, client: ServiceClient, watch: RunWatch) -> None:
        for _ in range(_MOST_PAGES):
            after, records = await client.run_records(watch.run_id, watch.after)
            watch.after = after
            if not watch.take(records):
                return


def _moves(run: Run) -> bool:
    return run.state not in ENDED


def _changed(known: Run, listed: Run) -> bool:
    """Whether something was written about it since it was asked for in full."""
    return (known.notes, known.reason, known.copied_to) != (
        listed.notes,
        listed.reason,
        listed.copied_to,
    )
