"""The service's memory: on the disk within seconds, whole after a kill, there without a disk."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from decimal import Decimal
from pathlib import Path

import pytest

from a40console.model.control import History
from a40console.model.figures import Missing, number
from a40console.service.chronicle import Chronicle
from a40console.service.history import Question
from a40console.service.history_store import HistoryStore, StoreError
from a40console.service.journal import Journal
from a40console.service.tally import Counters, Reading
from tests.service.past import chronicle
from tests.service.test_history import NOON_S, point

ALL = Question(since_s=0.0, until_s=None, points=5000, step_s=0.0)


class Wall:
    """The clock on the wall."""

    def __init__(self) -> None:
        self.at_s = NOON_S

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "events.jsonl")


def live(kept: Chronicle, wall: Wall, readings: int, *, every_s: float = 1.0) -> None:
    """Time passes while an engine generates."""
    for _ in range(readings):
        wall.at_s += every_s
        tokens = (wall.at_s - NOON_S) * 10.0
        kept.add(
            point(wall.at_s, 10.0),
            Reading(
                counters=Counters(at_s=wall.at_s, run="run-1", generated_tokens=tokens),
                counters_reset_s=None,
                run_age_s=wall.at_s - NOON_S,
                elapsed_s=every_s,
                usd_per_hour=Decimal("0.36"),
                busy=True,
            ),
            None,
        )


async def test_a_disk_that_hangs_and_refuses_is_given_the_newest_not_the_oldest(
    tmp_path: Path, journal: Journal, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, may_fail = chronicle(tmp_path, journal, wall=wall), threading.Event()
    await kept.open()

    def write(store: HistoryStore, batch: object) -> None:
        may_fail.wait(10)
        raise StoreError("the disk is full")

    live(kept, wall, 8_000)  # more than memory keeps to be written
    with monkeypatch.context() as patched:
        patched.setattr(HistoryStore, "write", write)
        flushing = asyncio.create_task(kept.flush())
        await asyncio.sleep(0.05)
        live(kept, wall, 120)  # while the disk hangs
        may_fail.set()
        await flushing
    assert kept.trouble == "the disk is full"
    await kept.close()

    again = chronicle(tmp_path, journal, wall=wall)
    await again.open()
    fine = await again.history(Question(since_s=-120.0, until_s=None, points=120, step_s=1.0))
    assert known(fine) >= 118
    assert fine.points[-1].at_s >= wall.at_s - 2
    await again.close()


def known(history: History) -> int:
    return sum(number(one.generation_tokens_per_s) is not None for one in history.points)


async def test_what_was_written_is_there_after_a_kill(
    tmp_path: Path, journal: Journal, wall: Wall
) -> None:
    first = chronicle(tmp_path, journal, wall=wall)
    await first.open()
    live(first, wall, 100)
    await first.flush()
    live(first, wall, 3)  # these are lost with the process
    tokens = first.book.since(NOON_S, wall.at_s).generated_tokens

    wall.at_s += 20
    second = chronicle(tmp_path, journal, wall=wall)
    await second.open()
    live(second, wall, 10)
    history = await second.history(ALL)
    assert known(history) in (109, 110)
    gap = [one for one in history.points if one.known_ratio == 0]
    assert len(gap) >= 20
    assert all(isinstance(one.generation_tokens_per_s, Missing) for one in gap)
    assert history.trouble is None
    assert tokens == 1020, "the first reading only notes the counter"
    assert second.book.since(NOON_S, wall.at_s).generated_tokens == 1320, (
        "the engine went on meanwhile"
    )
    assert second.complete
    await second.close()
    await first.close()


async def test_no_disk_costs_the_permanence_only(
    tmp_path: Path, journal: Journal, wall: Wall
) -> None:
    folder = tmp_path / "gone"
    kept = chronicle(folder, journal, wall=wall)
    await kept.open()
    live(kept, wall, 50)
    await kept.flush()
    history = await kept.history(ALL)
    assert known(history) == 50
    assert history.trouble is not None
    assert "unable to open" in history.trouble
    folder.mkdir()
    live(kept, wall, 5)
    await kept.flush()
    assert (await kept.history(ALL)).trouble is None
    await kept.close()
    again = chronicle(folder, journal, wall=wall)
    await again.open()
    assert known(await again.history(ALL)) == 54, "only the second that was not over is missing"
    assert again.book.since(NOON_S, wall.at_s).generated_tokens == 540
    await again.close()


async def test_a_broken_file_is_begun_anew_from_memory(
    tmp_path: Path, journal: Journal, wall: Wall
) -> None:
    file = tmp_path / "history.sqlite"
    file.write_bytes(b"not a database at all" * 1000)
    kept = chronicle(tmp_path, journal, wall=wall)
    await kept.open()
    live(kept, wall, 30)
    await kept.flush()
    [lost] = [event for event in journal.since(0, 10) if event.kind == "history.lost"]
    assert lost.severity == "warn"
    assert "history.sqlite.broken" in lost.data["evidence"]
    assert (tmp_path / "history.sqlite.broken").read_bytes().startswith(b"not a database")
    assert not kept.complete
    await kept.close()
    again = chronicle(tmp_path, journal, wall=wall)
    await again.open()
    assert known(await again.history(ALL)) == 29
    assert not again.complete, "what was counted before it broke stays lost"
    await again.close()


async def test_one_that_breaks_under_way_loses_nothing_of_memory(
    tmp_path: Path, journal: Journal, wall: Wall
) -> None:
    file = tmp_path / "history.sqlite"
    kept = chronicle(tmp_path, journal, wall=wall)
    await kept.open()
    live(kept, wall, 300)
    await kept.flush()
    other = sqlite3.connect(file)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    with file.open("r+b") as disk:
        disk.seek(4096)
        disk.write(b"\xff" * (file.stat().st_size - 4096))
    live(kept, wall, 10)
    await kept.flush()
    await kept.flush()
    assert [event.kind for event in journal.since(0, 10)] == ["history.lost"]
    await kept.close()
    again = chronicle(tmp_path, journal, wall=wall)
    await again.open()
    assert known(await again.history(ALL)) == 309
    await again.close()


async def test_days_of_readings_stay_within_five_megabytes(
    tmp_path: Path, journal: Journal, wall: Wall
) -> None:
    kept = chronicle(tmp_path, journal, wall=wall, interval_s=5.0)
    await kept.open()
    for _ in range(26):
        live(kept, wall, 720, every_s=5.0)
        await kept.flush()
    await kept.close()
    size = sum(path.stat().st_size for path in tmp_path.glob("history.sqlite*"))
    assert size < 5_000_000
    again = chronicle(tmp_path, journal, wall=wall, interval_s=5.0)
    await again.open()
    history = await again.history(Question(since_s=-86_400, until_s=None, points=1440, step_s=0))
    assert history.step_s == 60.0
    assert known(history) == len(history.points) >= 1439
    await again.close()


async def test_another_interval_keeps_the_coarser_past(
    tmp_path: Path, journal: Journal, wall: Wall
) -> None:
    first = chronicle(tmp_path, journal, wall=wall)
    await first.open()
    live(first, wall, 200)
    await first.close()
    second = chronicle(tmp_path, journal, wall=wall, interval_s=5.0)
    await second.open()
    live(second, wall, 40, every_s=5.0)
    await second.close()
    history = await second.history(ALL)
    assert known(history) == len(history.points)
    assert history.points[0].at_s == NOON_S
    rows = sqlite3.connect(tmp_path / "history.sqlite")
    steps = {step_s for (step_s,) in rows.execute("SELECT DISTINCT step_s FROM rows")}
    rows.close()
    assert steps == {5, 10, 60}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tallies SET data = 'x'",
        "UPDATE rows SET data = X'00' WHERE id % 2",
        "UPDATE facts SET value = X'FF' WHERE name = 'counters'",
    ],
)
async def test_damaged_entries_cost_neither_the_service_nor_the_others(
    tmp_path: Path, journal: Journal, wall: Wall, statement: str
) -> None:
    first = chronicle(tmp_path, journal, wall=wall)
    await first.open()
    live(first, wall, 300)
    await first.close()
    with sqlite3.connect(tmp_path / "history.sqlite") as other:
        other.execute(statement)
    other.close()

    again = chronicle(tmp_path, journal, wall=wall)
    await again.open()
    live(again, wall, 10)
    await again.flush()
    assert again.trouble is None
    assert not again.complete
    assert [event.kind for event in journal.since(0, 10)] == ["history.lost"]
    assert (tmp_path / "history.sqlite.broken").exists()
    before = known(await again.history(ALL))
    assert before >= 100
    await again.close()
    third = chronicle(tmp_path, journal, wall=wall)
    await third.open()
    assert known(await third.history(ALL)) >= before - 1, "what could be read is written anew"
    assert len(journal.since(0, 10)) == 1, "told once"
    await third.close()


async def test_a_bug_of_ours_in_the_history_is_named_and_stops_nothing(
    tmp_path: Path, journal: Journal, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = chronicle(tmp_path, journal, wall=wall)
    monkeypatch.setattr(HistoryStore, "load", lambda self: 1 / 0)
    await kept.open()
    assert kept.trouble == "a bug of ours: ZeroDivisionError: division by zero"
    monkeypatch.undo()
    live(kept, wall, 10)
    await kept.flush()
    assert kept.trouble is None
    await kept.close()
