"""The ledger for the service's event loop: one thread, opened when it is first asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from a40console.errors import ConsoleError
from a40console.ledger.bounds import Bounds, Deleted
from a40console.ledger.store import Ledger

T = TypeVar("T")

BOUNDS = Bounds()

CLOSE_TIMEOUT_S = 3.0

log = logging.getLogger(__name__)


class RunLedger:
    """Asks the ledger without holding the loop up.

    Args:
        file: Where it lies.
        opened: Called once it is open, with what of a broken file was lost.
        bounded: Called each time that runs came in, with what had to go for want of room.
        bounds: How much it may hold.
    """

    def __init__(
        self,
        file: Path,
        opened: Callable[[str], None] = lambda lost: None,
        bounded: Callable[[Deleted], None] = lambda deleted: None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._file = file
        self._opened = opened
        self._bounded = bounded
        self._bounds = bounds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._ledger: Ledger | None = None

    async def ask(self, work: Callable[[Ledger], T]) -> T:
        """What the work answers; raises what it raises.

        Raises:
            LedgerError: If the ledger cannot be opened; it is tried again the next time.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, lambda: work(self._open(loop)))

    async def take(self, work: Callable[[Ledger], T]) -> T:
        """As `ask`, of work that brings runs in: others go where there is no room for all."""
        answer = await self.ask(work)
        try:
            self._bounded(await self.ask(lambda ledger: ledger.delete_old(self._bounds)))
        except ConsoleError as error:
            log.warning("old runs could not be let go: %s (%s)", error.message, error.evidence)
        return answer

    async def close(self) -> None:
        """Give the file back; a disk that hangs is left to itself."""
        loop = asyncio.get_running_loop()
        closing = loop.run_in_executor(self._thread, self._close)
        await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT_S)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _open(self, loop: asyncio.AbstractEventLoop) -> Ledger:
        told = ""
        if self._ledger is not None and not self._ledger.is_in_place:
            told = self._ledger.leave()
            self._ledger = None
        if self._ledger is None:
            self._ledger = Ledger.open(self._file)
            loop.call_soon_threadsafe(self._opened, self._ledger.lost or told)
        return self._ledger

    def _close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None
