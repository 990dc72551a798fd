"""The one door through which the world comes in: follows the service, and finds it again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from textual.message import Message

from a40console.errors import ConsoleError, NoServiceError
from a40console.model.control import HistoryPoint
from a40console.model.figures import number
from a40console.model.snapshot import Snapshot, Throughput
from a40console.tui.format import unix_seconds
from a40console.tui.messages import (
    EventsArrived,
    HistoryArrived,
    ServiceFound,
    ServiceLost,
    SnapshotArrived,
)
from a40console.tui.past import SPEED_SPAN_S

if TYPE_CHECKING:
    from a40console.service.client import ServiceClient

ClientFactory = Callable[[], "ServiceClient"]
"""Makes the client; called in a thread after the first paint, since it imports the HTTP library."""

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 5.0
HISTORY_PERIOD_S = 5.0
"""So long the means of the snapshots stand for the seconds of the service's history.

It is the span of those means: asked more often, the answer says little that they do not.
"""


class Feed:
    """Follows the service's snapshots and tells them to `post`; reconnects with back-off."""

    def __init__(
        self,
        factory: ClientFactory,
        post: Callable[[Message], object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._factory = factory
        self._post = post
        self._clock = clock
        self._client: ServiceClient | None = None
        self._making = asyncio.Lock()
        self._seen_event = 0
        self._history_to_s: float | None = None
        """Unix time at which the newest second begins that the service has told."""

        self._moved_s = 0.0
        """Unix time of the newest snapshot whose speed was not 0."""

        self._asked_s = 0.0

    async def client(self) -> ServiceClient:
        """The client, made at its first use."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._factory)
        return self._client

    async def close(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.close()

    async def follow(self) -> None:
        """Run until cancelled; no failure of the service ends it."""
        client = await self.client()
        wait_s = FIRST_WAIT_S
        while True:
            try:
                await self._greet(client)
                stream = client.snapshots()
                async with aclosing(stream) as snapshots:
                    async for snapshot in snapshots:
                        wait_s = FIRST_WAIT_S
                        self._post(SnapshotArrived(snapshot))
                        await self._fetch_events(client, snapshot.events_last_id)
                        await self._fetch_seconds(client, snapshot)
            except ConsoleError as error:
                self._post(ServiceLost(error.trouble))
            except ValueError as error:
                # A line cut short by a service that was killed while it wrote.
                lost = NoServiceError("The service's answer was cut short", evidence=str(error))
                self._post(ServiceLost(lost.trouble))
            await asyncio.sleep(wait_s)
            wait_s = min(LONGEST_WAIT_S, wait_s * 2)

    async def _greet(self, client: ServiceClient) -> None:
        hello = await client.hello()
        history = await self._fetch_history(client)
        events = await client.events(self._seen_event)
        self._seen_event = max([self._seen_event, *(event.id for event in events)])
        self._post(ServiceFound(hello, history, events, await client.read_mark()))

    async def _fetch_history(self, client: ServiceClient) -> tuple[HistoryPoint, ...]:
        """What came since the last time, and that second again: it may not have been over."""
        self._asked_s = self._clock()
        since_s = -SPEED_SPAN_S if self._history_to_s is None else self._history_to_s - 1
        points = (await client.history(since_s)).points
        if points:
            self._history_to_s = points[-1].at_s
        return points

    async def _fetch_seconds(self, client: ServiceClient, snapshot: Snapshot) -> None:
        """Now and then, while something moves: the mean of nothing is nothing each second too."""
        if _moves(snapshot.throughput):
            self._moved_s = unix_seconds(snapshot.at) or self._moved_s
        if self._moved_s < (self._history_to_s or 0.0) + 1:
            return
        if self._clock() - self._asked_s >= HISTORY_PERIOD_S:
            self._post(HistoryArrived(await self._fetch_history(client)))

    async def _fetch_events(self, client: ServiceClient, last_id: int) -> None:
        if last_id < self._seen_event:
            self._seen_event = 0  # another journal: the service's home was wiped
        if last_id > self._seen_event:
            events = await client.events(self._seen_event)
            self._seen_event = last_id
            self._post(EventsArrived(events))


def _moves(speed: Throughput) -> bool:
    figures = (speed.generation_tokens_per_s, speed.prefill_tokens_per_s, speed.passes_per_s)
    return any(number(figure) for figure in figures)
