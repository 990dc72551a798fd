"""What the console shows of the past is the service's past, asked for seldom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from textual.message import Message

from a40console.model.figures import number
from a40console.model.history import history_point
from a40console.model.instants import iso_utc
from a40console.model.snapshot import Snapshot
from a40console.service.history import Question
from a40console.service.journal import Journal
from a40console.service.tally import Counters, Reading
from a40console.tui.feed import Feed
from a40console.tui.messages import HistoryArrived, ServiceFound, SnapshotArrived
from a40console.tui.past import Past
from a40console.tui.timeline import LIVE
from tests import make_snapshot as make
from tests.service.past import chronicle
from tests.tui.fake_service import FakeService

NOON_S = make.NOW.timestamp()
ALL = Question(since_s=0.0, until_s=None, points=5000, step_s=0.0)
MEAN_S = 5


class Console:
    """A feed and the memory that it fills."""

    def __init__(self, service: FakeService, clock: Callable[[], float]) -> None:
        self.past = Past()
        self.fetched = 0
        self.feed = Feed(service.client, self._take, clock=clock)

    def _take(self, message: Message) -> None:
        if isinstance(message, SnapshotArrived):
            self.past.observe(message.snapshot)
        elif isinstance(message, ServiceFound):
            self.past.recall(message.history)
        elif isinstance(message, HistoryArrived):
            self.fetched += 1
            self.past.recall(message.points)

    @property
    def peak(self) -> float:
        """The highest speed of the last quarter of an hour."""
        values = self.past.series("generation_tokens_per_s", LIVE, 100, "highest")
        return max(value for value in values if value is not None)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.feed.follow())
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await self.feed.close()


class Served:
    """A service's real record, played by the second; its counters are those of a burst."""

    def __init__(self, folder: Path) -> None:
        self.at_s = NOON_S
        journal = Journal(folder / "events.jsonl")
        self._kept = chronicle(folder, journal, wall=lambda: self.at_s)
        self._came = [0.0] * MEAN_S
        self.fake = FakeService(self._snapshot())
        self.fake.history = ()

    async def second(self, tokens: float) -> None:
        """One more second, in which so many tokens were generated."""
        self.at_s += 1
        self._came = [*self._came[1:], tokens]
        snapshot = self._snapshot()
        reading = Reading(
            counters=Counters(at_s=self.at_s),
            counters_reset_s=None,
            run_age_s=60.0,
            elapsed_s=1.0,
            usd_per_hour=None,
            busy=tokens > 0,
        )
        alone = replace(snapshot.throughput, window_s=1.0, generation_tokens_per_s=tokens)
        self._kept.add(history_point(snapshot, self.at_s), reading, alone)
        self.fake.history = (await self._kept.history(ALL)).points
        self.fake.push(snapshot)
        await asyncio.sleep(0.01)

    def _snapshot(self) -> Snapshot:
        mean = sum(self._came) / MEAN_S
        speed = make.throughput(mean, prefill_tokens_per_s=0.0, passes_per_s=mean / 2)
        return make.snapshot(at=iso_utc(self.at_s), throughput=speed, slots=(), recent=())


async def test_a_console_that_watched_shows_what_one_opened_later_does(tmp_path: Path) -> None:
    served = Served(tmp_path)
    watched = Console(served.fake, lambda: served.at_s)
    async with watched.following():
        for second in range(40):
            await served.second(50.0 if second == 20 else 0.0)
    later = Console(served.fake, lambda: served.at_s)
    async with later.following():
        await asyncio.sleep(0.1)
    assert watched.peak == 50.0
    assert later.peak == 50.0
    told = [number(point.generation_tokens_per_s) for point in watched.past.speed]
    assert sum(value or 0.0 for value in told) == 50.0
    known = {point.at_s: point.generation_tokens_per_s for point in later.past.speed}
    assert all(known[point.at_s] == point.generation_tokens_per_s for point in watched.past.speed)


async def test_it_asks_every_five_seconds_while_tokens_come_and_never_while_none_do(
    tmp_path: Path,
) -> None:
    served = Served(tmp_path)
    console = Console(served.fake, lambda: served.at_s)
    async with console.following():
        for _ in range(30):
            await served.second(0.0)
        assert console.fetched == 0
        for _ in range(30):
            await served.second(100.0)
        assert 5 <= console.fetched <= 7
        for _ in range(10):
            await served.second(0.0)
        asked = console.fetched
        for _ in range(30):
            await served.second(0.0)
        assert console.fetched == asked
