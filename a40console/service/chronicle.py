"""Keeps the past: in memory at once, on the disk every few seconds from a thread of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from a40console.files import parse_json
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.control import History, HistoryPoint
from a40console.model.snapshot import Throughput
from a40console.operations.roles import Recorder
from a40console.service.history import Question, Rings, answer
from a40console.service.history_store import (
    Batch,
    HistoryStore,
    Stored,
    StoreError,
    StoreLostError,
)
from a40console.service.point_speeds import PointSpeeds
from a40console.service.tally import KEPT_S, Counters, Reading, TallyBook

FLUSH_PERIOD_S = 5.0
OPEN_TIMEOUT_S = 3.0
CLOSE_TIMEOUT_S = 5.0
COUNTERS_FACT = "counters"
LOST_FACT = "lost"

T = TypeVar("T")

log = logging.getLogger(__name__)


class Chronicle:
    """The service's memory of speeds, tokens and dollars.

    Args:
        file: Where it lies on the disk; one writer.
        interval_s: Seconds between readings.
        recorder: Takes the event of a broken file.
        wall: Unix time.
    """

    def __init__(
        self,
        file: Path,
        *,
        interval_s: float,
        recorder: Recorder,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._rings = Rings(interval_s)
        self._speeds = PointSpeeds()
        self._store = HistoryStore(file)
        self._record = recorder
        self._wall = wall
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="history")
        self._loaded = False
        self._lost = ""
        self._keep_rows = {tier.step_s: tier.rows for tier in self._rings.tiers}
        self.book = TallyBook()
        self.trouble: str | None = None
        """Why the disk takes no history, None while it does."""

    @property
    def complete(self) -> bool:
        """Whether nothing that was once counted is known to be lost."""
        return not self._lost

    async def open(self) -> None:
        """Read what is on the disk, before the first reading; a disk that hangs is not waited for.

        Whatever could not be read then is put in front of what was counted meanwhile.
        """
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await self.flush()
        except TimeoutError:
            self.trouble = "the disk does not answer"

    async def run(self) -> None:
        """Write every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_PERIOD_S)
            await self.flush()

    async def close(self) -> None:
        """Write what is not written yet; a disk that hangs is left to itself."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self.flush()
                await self._in_thread(self._store.close)
        except TimeoutError:
            log.warning("the history could not be written within %.0f s", CLOSE_TIMEOUT_S)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def add(self, point: HistoryPoint, reading: Reading, speeds: Throughput | None) -> None:
        """Take what one snapshot says.

        Args:
            point: Its figures.
            reading: What it adds to the sums.
            speeds: The engine's since the snapshot before; None where none is read.
        """
        for settled in self._speeds.settle(point, speeds):
            self._rings.add(settled)
        self.book.take(reading)

    async def history(self, question: Question) -> History:
        """A part of the past, worked out beside the event loop."""
        work = partial(
            answer,
            question,
            self._rings.kept(),
            self._rings.reasons,
            now_s=self._wall(),
            trouble=self.trouble,
        )
        return await asyncio.to_thread(work)

    async def flush(self) -> None:
        """Write what came since the last time; what the disk refuses stays for the next."""
        try:
            if not self._loaded:
                self._restore(await self._in_thread(self._store.load))
            batch = self._batch()
            try:
                await self._in_thread(partial(self._store.write, batch))
            except BaseException:
                self._put_back(batch)
                raise
        except StoreLostError as error:
            self._begin_anew(str(error))
        except StoreError as error:
            self.trouble = str(error)
        except Exception as error:
            # Nothing in a file of the past may keep the service from serving.
            if self.trouble is None:
                log.exception("the history could not be read or written")
            self.trouble = f"a bug of ours: {type(error).__name__}: {error}"
        else:
            self.trouble = None

    def _restore(self, stored: Stored) -> None:
        self._loaded = True
        other_steps = {step_s for step_s, _ in stored.rows} - self._keep_rows.keys()
        self._keep_rows |= dict.fromkeys(other_steps, 0)
        self._lost = stored.facts.get(LOST_FACT, "")
        self._rings.restore(stored.rows, stored.reasons)
        self.book.restore(stored.tallies, _counters(stored.facts.get(COUNTERS_FACT)))
        if stored.lost:
            self._begin_anew(stored.lost)

    def _begin_anew(self, reason: str) -> None:
        """The file is gone: all that memory still holds is to be written into a fresh one."""
        self._loaded = True
        self._lost = self._lost or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._wall()))
        self._rings.closed.clear()  # the rings have them too
        self._rings.closed.extend(self._rings.rows())
        self.book.changed = set(self.book.tallies)
        self._record(
            "history.lost",
            "the history's file was broken and is begun anew",
            "warn",
            {"evidence": reason},
        )

    def _batch(self) -> Batch:
        rows = list(self._rings.closed)
        self._rings.closed.clear()
        changed, self.book.changed = self.book.changed, set()
        now_s = self._wall()
        facts = {LOST_FACT: self._lost} if self._lost else {}
        if self.book.last is not None:
            facts[COUNTERS_FACT] = json.dumps(encode(self.book.last))
        return Batch(
            rows=rows,
            reasons=self._rings.reasons.texts,
            tallies={key: self.book.tallies[key] for key in changed if key in self.book.tallies},
            facts=facts,
            keep_rows=self._keep_rows,
            keep_tallies_from_s={step_s: int(now_s) - kept for step_s, kept in KEPT_S.items()},
        )

    def _put_back(self, batch: Batch) -> None:
        """Keep for the next time what was not written; where it is too much the oldest goes."""
        since = list(self._rings.closed)
        self._rings.closed.clear()
        self._rings.closed.extend([*batch.rows, *since])
        self.book.changed |= set(batch.tallies)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _counters(text: str | None) -> Counters | None:
    try:
        return None if text is None else decode(Counters, parse_json(text))
    except (ValueError, DecodeError):
        return None
