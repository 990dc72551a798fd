"""The client of a run: one load client at a time, made anew where the engine has moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Self

from a40console.experiments.bench import Reply, Request
from a40console.experiments.client import LoadClient
from a40console.model.own_request import own_request_id
from a40console.model.run import Dialect
from a40console.model.run_record import Sample
from a40console.service.run_place import Place
from a40console.service.run_stop import RunStop

NAMED = "X-Request-Id"


class RunClient:
    """Sends a run's requests, each under a name by which the console knows it for its own.

    Args:
        place: Where they go.
        dialect: What they are written in.
        record: Takes each one's sample.
        stop: Ends what is under way.
        headers: Sent with each.
    """

    def __init__(
        self,
        *,
        place: Place,
        dialect: Dialect,
        record: Callable[[Sample], None],
        stop: RunStop,
        headers: Mapping[str, str],
    ) -> None:
        self._headers = headers
        self._dialect = dialect
        self._record = record
        self._stop = stop
        self._client = self._made(place)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self._client.close()

    async def move(self, place: Place) -> None:
        """The engine is reached elsewhere from now on."""
        await self._client.close()
        self._client = self._made(place)
        await self._client.__aenter__()

    async def send(self, request: Request) -> Reply:
        """One request, streamed; whatever goes wrong is in the sample."""
        self._stop.check()
        return await self._client.send(self._named(request))

    async def send_whole(self, request: Request) -> Reply:
        """One request that is not streamed."""
        self._stop.check()
        return await self._client.send_whole(self._named(request))

    async def closed(self, streams: Sequence[Sequence[Request]]) -> Sequence[Reply]:
        """Several streams at once, each sending its next request when its last one ended."""
        self._stop.check()
        named = [[self._named(request) for request in stream] for stream in streams]
        return await self._client.closed(named)

    def _made(self, place: Place) -> LoadClient:
        return LoadClient(
            place.endpoint.base_url,
            socket_path=place.endpoint.socket_path or "",
            token=place.endpoint.api_key or "",
            dialect=self._dialect,
            clock=self._stop.now_s,
            record=self._record,
            stop=self._stop.event,
        )

    def _named(self, request: Request) -> Request:
        own = {NAMED: own_request_id("run"), **self._headers}
        return replace(request, headers={**own, **request.headers})
