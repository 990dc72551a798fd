"""Knows up to where the operator has read, when they were away, and what to tell them then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING

from textual.worker import Worker

from a40console.errors import ConsoleError
from a40console.model.control import Digest, Hello, ReadMark
from a40console.model.figures import Missing
from a40console.model.instants import unix_s
from a40console.tui.panels.digest import weighty, worked

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

AWAY_AFTER_S = 600.0
"""Without a key for so long, nobody looked."""

_HERE_EVERY_S = 60.0
"""How often the service is told that somebody is still here."""

_AT_LEAST_S = 1.0
"""A span of nothing would be all of the past."""

_KEY_FIRST_S = 0.25
"""The key that ends an absence does what it does before anything is told."""


class Absence:
    """Fetches the digest of a time in which nobody looked, once they are back."""

    def __init__(self, app: ConsoleApp, clock: Callable[[], float]) -> None:
        self._app = app
        self._clock = clock
        self.read_to: int | None = None
        """Id of the last event that was read; None before the service was asked."""

        self._read_since_s: float | None = None
        """Unix time of the mark that the service kept; None once it was read further here."""

        self._read_s = clock()
        """When it was read further here, by our clock."""

        self._kept_s = clock()
        """When the service was last told."""

        self._touched_s = clock()
        self._touched_id: int | None = None
        """The last event at the time of the last key."""

        self._lost_id: int | None = None
        """The last event before the service was lost."""

        self._lost_s = clock()

    def unread(self, last_id: int) -> int:
        """Events that the operator has not read."""
        return max(0, last_id - self.read_to) if self.read_to is not None else 0

    def touched(self, last_id: int) -> None:
        """A key was pressed: somebody is here, perhaps again."""
        now_s = self._clock()
        away_s, self._touched_s = now_s - self._touched_s, now_s
        since, self._touched_id = self._touched_id, last_id
        if self.read_to is not None and now_s - self._kept_s > _HERE_EVERY_S:
            self._run(partial(self._keep, self.read_to), "read-mark")
        if since is not None and away_s > AWAY_AFTER_S and last_id > since:
            self._tell(since, -away_s, weighty)

    def lost(self, last_id: int) -> None:
        """The service was lost; only the first time counts until it is found."""
        if self._lost_id is None and self.read_to is not None:
            self._lost_id, self._lost_s = last_id, self._clock()

    def found(self, hello: Hello, mark: ReadMark) -> None:
        """A service answers: at first, or again."""
        first, lost_id = self.read_to is None, self._lost_id
        self._lost_id = None
        last_id = hello.events_last_id
        if first and not mark.event:
            self.read_to = 0  # nobody has ever read this journal: nothing of it is missed
            self.mark_read(last_id)
            return
        self.read_to = min(last_id, max(self.read_to or 0, mark.event))
        if first:
            self._read_since_s = None if isinstance(mark.at, Missing) else unix_s(mark.at)
        if first and last_id > self.read_to:
            self._tell(
                self.read_to, self.read_since_s, lambda digest: weighty(digest) or worked(digest)
            )
        elif lost_id is not None and last_id > lost_id:
            self._tell(lost_id, self._lost_s - self._clock(), weighty)

    @property
    def read_since_s(self) -> float:
        """When the operator last read the journal: Unix time, or negative, seconds back."""
        if self._read_since_s is not None:
            return self._read_since_s
        return min(self._read_s - self._clock(), -_AT_LEAST_S)

    def mark_read(self, up_to: int) -> None:
        """The operator has read the journal up to this event; the service keeps it."""
        if self.read_to is not None and up_to > self.read_to:
            self.read_to, self._read_s, self._read_since_s = up_to, self._clock(), None
            self._run(partial(self._keep, up_to), "read-mark")

    async def _keep(self, up_to: int) -> None:
        self._kept_s = self._clock()
        try:
            client = await self._app.feed.client()
            await client.mark_read(up_to)
        except ConsoleError:
            pass  # read here all the same; the next mark says this one too

    def _tell(self, since_event: int, since_s: float, worth: Callable[[Digest], bool]) -> None:
        """Tell of events after that one, with figures from that time on (negative: seconds back).

        The last event may be much older than the last look at it.
        """
        self._run(partial(self._ask, since_event, since_s, worth), "digest")

    def _run(self, job: Callable[[], Coroutine[None, None, None]], group: str) -> None:
        _: Worker[None] = self._app.run_worker(
            job, group=group, exclusive=True, exit_on_error=False
        )

    async def _ask(self, since_event: int, since_s: float, worth: Callable[[Digest], bool]) -> None:
        await asyncio.sleep(_KEY_FIRST_S)
        try:
            client = await self._app.feed.client()
            digest = await client.digest(since_event=since_event, since_s=since_s)
        except ConsoleError:
            return  # nothing is told unasked of a service that is gone again
        if worth(digest):
            self._app.show_digest(digest)
