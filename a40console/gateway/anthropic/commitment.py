"""The moment at which a client has its status, and the pings that hold its connection from then on.

A proxy cuts a connection on which nothing comes for 100 to 125 s, and a client gives up on an
answer without a head. So a stream's head goes out after 15 s at the latest, and a ping whenever
nothing else has come for a while: through the queue, through the prefill, in any silence. What is
not streamed cannot be held like that: its one answer comes when it is complete, however long the
prefill takes, and behind such a proxy a stream is the only way to have a long one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol, TypeVar

from starlette.types import Message, Send

from a40console.gateway.anthropic.guard import PING

COMMENT = b": ping\n\n"
"""The ping of OpenAI's streams, which have none of their own: clients leave comments out."""

T = TypeVar("T")


class Closable(Protocol):
    """An answer that has begun to come."""

    def close(self) -> None:
        """Take no more of it."""


C = TypeVar("C", bound=Closable)


async def abandon(opening: asyncio.Task[C]) -> None:
    """End what still asks the engine, and an answer that nobody took."""
    opening.cancel()
    (found,) = await asyncio.gather(opening, return_exceptions=True)
    if not isinstance(found, BaseException):
        found.close()


@dataclass(frozen=True, slots=True)
class Timing:
    """When a stream is begun and how it is kept alive."""

    commit_after_s: float = 15.0
    """So long an engine may take to answer with a status of its own."""

    ping_every_s: float = 9.0
    """The longest silence towards the client; ten seconds are promised."""


TIMING = Timing()


class Outlet:
    """The client's side of a stream: whole events out, and pings between them."""

    def __init__(self, send: Send, request_id: str, timing: Timing, *, ping: bytes = PING) -> None:
        self.committed = False
        """The client has its status: from here on, errors are events."""

        self.finished = False
        """The last of the answer is on its way."""

        self._send = send
        self._request_id = request_id.encode("latin-1")
        self._timing = timing
        self._ping_event = ping
        self._now = asyncio.get_running_loop().time
        self._due_s: float | None = None
        self._sent_at_s = 0.0
        self._pinging: asyncio.Task[None] | None = None

    async def in_time(self, opening: asyncio.Task[T]) -> T:
        """Wait for the engine; a client for whom that lasts too long has its status meanwhile."""
        if not self.committed:
            if self._due_s is None:
                self._due_s = self._now() + self._timing.commit_after_s
            await asyncio.wait((opening,), timeout=max(0.0, self._due_s - self._now()))
            if not opening.done():
                await self.commit(waiting=True)
        return await opening

    async def commit(self, *, waiting: bool = False) -> None:
        """Send the head, once; with a ping where nothing else is there to follow."""
        if self.committed:
            return
        self.committed = True
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
            (b"request-id", self._request_id),
            (b"x-request-id", self._request_id),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        if waiting:
            await self.write(self._ping_event)
        self.keep_alive()

    def keep_alive(self) -> None:
        """The client has its status: let no silence last."""
        self.committed = True
        if self._pinging is None:
            self._sent_at_s = self._now()
            self._pinging = asyncio.create_task(self._ping(), name="ping")

    async def passing(self, message: Message) -> None:
        """Send as an ASGI application does; a second head is left out."""
        if message["type"] == "http.response.start":
            if not self.committed:
                self.committed = True
                await self._send(message)
        elif message.get("more_body"):
            await self.write(message["body"])
        else:
            await self.finish(message["body"])

    async def write(self, events: bytes) -> None:
        """Send whole events."""
        self._sent_at_s = self._now()
        await self._send({"type": "http.response.body", "body": events, "more_body": True})

    async def finish(self, events: bytes = b"") -> None:
        """Send the last events; the stream is over."""
        await self.close()
        self.finished = True
        await self._send({"type": "http.response.body", "body": events, "more_body": False})

    async def whole(self, head: Message, body: bytes) -> None:
        """Send an answer that is no stream."""
        self.committed = self.finished = True
        await self._send(head)
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def close(self) -> None:
        """Send no more pings."""
        pinging, self._pinging = self._pinging, None
        if pinging is not None:
            pinging.cancel()
            await asyncio.gather(pinging, return_exceptions=True)

    async def _ping(self) -> None:
        every_s = self._timing.ping_every_s
        while True:
            wait_s = self._sent_at_s + every_s - self._now()
            if wait_s <= 0:
                await self.write(self._ping_event)
            else:
                await asyncio.sleep(wait_s)
