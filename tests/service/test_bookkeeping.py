"""What is written down of a snapshot: a simulated engine's figures stay out of the real books."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from a40console.config import RentSettings
from a40console.gateway.meter import RequestCounts
from a40console.model.engine import EngineState
from a40console.model.figures import Estimated, Missing
from a40console.model.snapshot import Snapshot
from a40console.operations.status import EngineStatus
from a40console.service.bookkeeping import Bookkeeper
from a40console.service.chronicle import Chronicle
from a40console.service.history import Question
from a40console.service.journal import Journal
from a40console.service.tally import HOUR_S, Tally
from tests import make_snapshot as make
from tests.service.past import chronicle
from tests.service.test_chronicle import Wall

COUNTS = RequestCounts(completed=3, failed=0, aborted=0)
NOBODY = EngineStatus(state=EngineState.ABSENT)


class Books:
    """A bookkeeper with a clock that a test moves."""

    def __init__(self, folder: Path, rent: RentSettings) -> None:
        self.wall = Wall()
        journal = Journal(folder / "events.jsonl")
        self.kept: Chronicle = chronicle(folder, journal, wall=self.wall)
        self.keeper = Bookkeeper(
            self.kept, journal, rent, wall=self.wall, clock=lambda: self.wall.at_s
        )

    def take(self, snapshot: Snapshot, counts: RequestCounts) -> None:
        self.wall.at_s += 1
        self.keeper.take(snapshot, None, counts, NOBODY)

    def total(self) -> Tally:
        return self.kept.book.since(0.0, self.wall.at_s)


@pytest.fixture
def books(tmp_path: Path) -> Books:
    began = datetime.fromtimestamp(Wall().at_s, UTC).isoformat()
    return Books(tmp_path, RentSettings(since=began, usd_per_hour=Decimal("0.40")))


async def test_a_simulated_engine_is_in_the_history_by_name_and_in_no_sum(books: Books) -> None:
    real = make.snapshot()
    simulated = replace(real, simulated=True)
    books.take(real, RequestCounts(aborted=0, failed=0))
    books.take(simulated, COUNTS)
    books.take(simulated, replace(COUNTS, completed=9))
    books.take(real, replace(COUNTS, completed=10))
    told = books.total()
    assert (told.finished, told.busy_s, told.observed_s) == (1, 1.0, 3.0)
    asked = Question(since_s=0.0, until_s=None, points=100, step_s=0.0)
    points = (await books.kept.history(asked)).points
    assert [point.simulated for point in points] == [False, True, True, False]
    asked = replace(asked, step_s=60.0)
    assert any(point.simulated for point in (await books.kept.history(asked)).points)


def test_busy_is_while_requests_run_and_not_while_the_rate_remembers_them(books: Books) -> None:
    running, slots = make.requests(running=1), (make.prefill_slot(),)
    idle = make.requests(running=0)
    books.take(make.snapshot(requests=idle, slots=()), COUNTS)
    books.take(make.snapshot(requests=running, slots=()), COUNTS)
    books.take(make.snapshot(requests=idle, slots=slots), COUNTS)
    for _ in range(5):
        books.take(make.snapshot(requests=idle, slots=()), COUNTS)
    assert books.total().busy_s == 2.0


def test_the_price_since_the_rent_counts_only_with_all_of_its_tokens(books: Books) -> None:
    def tokens() -> object:
        return books.keeper.account(None).generated_since_rent

    assert tokens() == Missing("no tokens were counted yet")
    began = int(books.wall.at_s) // HOUR_S * HOUR_S
    book = books.kept.book
    book.restore({(HOUR_S, began + 3 * HOUR_S): Tally(generated_tokens=1000)}, None)
    books.wall.at_s += 5 * HOUR_S
    late = tokens()
    assert isinstance(late, Missing)
    assert "tokens are counted only since" in late.reason
    book.restore({(HOUR_S, began): Tally(generated_tokens=500, earlier_tokens=20)}, None)
    assert tokens() == Estimated(1520)
