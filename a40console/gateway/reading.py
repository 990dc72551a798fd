"""Large bodies are read in a thread, one at a time, whoever leaves meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from a40console.gateway.bodies import Body

LARGE_BYTES = 512 * 1024
"""Reading less takes a few ms: a thread would cost others as much."""

T = TypeVar("T")


class BodyReading:
    """Reads bodies; what reading takes on top of the bodies is taken once.

    The event loop goes on beside a large one for all that is done in Python, but parsing and
    writing JSON holds the interpreter: some 10 ms for each MB, in which nobody's tokens pass.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)

    @property
    def busy(self) -> bool:
        """Whether a large body is being read."""
        return self._turn.locked()

    async def read(self, body: Body, work: Callable[[], T]) -> T:
        """Do what reads the body.

        A thread cannot be stopped: where the caller is cancelled, its turn and the body's room stay
        taken until it has come to its end.
        """
        if body.length < LARGE_BYTES:
            return work()
        await self._turn.acquire()
        try:
            reading = asyncio.get_running_loop().run_in_executor(None, work)
        except BaseException:
            self._turn.release()
            raise
        reading.add_done_callback(self._done)
        body.hold(reading)
        return await asyncio.shield(reading)

    def _done(self, reading: asyncio.Future[T]) -> None:
        self._turn.release()
        if not reading.cancelled():
            reading.exception()  # nobody else may be there to look at it
