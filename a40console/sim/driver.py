"""Lets the core's time pass, and brings each token to whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from a40console.sim.core import Core
from a40console.sim.requests import Order, Output

SHORTEST_SLEEP_S = 0.002
"""Passes that end within it are told together: an event loop turns no faster."""


class EngineGoneError(Exception):
    """The engine core is gone: nothing more comes of any request."""


class Driver:
    """One core and its clock."""

    def __init__(self, core: Core, clock: Callable[[], float]) -> None:
        self.core = core
        self._clock = clock
        self._streams: dict[str, asyncio.Queue[Output | None]] = {}
        self._wake = asyncio.Event()
        self._gone = False

    def now_s(self) -> float:
        """The engine's time."""
        return self._clock()

    async def run(self) -> None:
        """Until cancelled: sleep to the next event, and tell what came out."""
        while True:
            now_s = self.now_s()
            self._tell(self.core.advance(now_s))
            next_s = self.core.next_event_s()
            self._wake.clear()
            wait_s = None if next_s is None else max(SHORTEST_SLEEP_S, next_s - self.now_s())
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()

    def catch_up(self) -> None:
        """Let everything happen that is due: whoever looks now sees the present."""
        self._tell(self.core.advance(self.now_s()))

    def abort(self, request_id: str) -> None:
        """End a request; its reader is told."""
        now_s = self.now_s()
        self._tell(self.core.abort(request_id, now_s))
        aborted = Output(request_id=request_id, at_s=now_s, tokens=(), finish_reason="abort")
        self._tell([aborted])

    @property
    def is_gone(self) -> bool:
        """Whether nothing is generated any more."""
        return self._gone

    def end(self) -> bool:
        """Nothing comes of any request any more; whether there were some."""
        self._gone = True
        for queue in self._streams.values():
            queue.put_nowait(None)
        return bool(self._streams)

    def wake(self) -> None:
        """Look again: something has changed."""
        self._wake.set()

    async def stream(self, order: Order) -> AsyncIterator[Output]:
        """What an order brings, pass by pass; whoever leaves early aborts it.

        Raises:
            ValueError: If it cannot be served.
            EngineGoneError: If the engine ends first.
        """
        if self._gone:
            raise EngineGoneError
        name = order.request_id
        self._streams[name] = queue = asyncio.Queue[Output | None]()
        ended = False
        try:
            self._tell(self.core.submit(order, self.now_s()))
            self.wake()
            while not ended:
                output = await _newest(queue)
                ended = output.finish_reason is not None
                yield output
        finally:
            del self._streams[name]
            if not ended:
                self._tell(self.core.abort(name, self.now_s()))
                self.wake()

    def _tell(self, outputs: Iterable[Output]) -> None:
        for output in outputs:
            if (queue := self._streams.get(output.request_id)) is not None:
                queue.put_nowait(output)


async def _newest(queue: asyncio.Queue[Output | None]) -> Output:
    """The next output, with those that came after it while nobody took them, as vLLM joins them.

    Raises:
        EngineGoneError: If no more comes.
    """
    output = await queue.get()
    while not queue.empty() and output is not None:
        later = queue.get_nowait()
        output = later and replace(later, tokens=output.tokens + later.tokens)
    if output is None:
        raise EngineGoneError
    return output
