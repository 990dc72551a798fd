"""The history's file: whole batches, bounded, and put aside where it is broken."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from a40console.service.history_store import (
    Batch,
    HistoryStore,
    Stored,
    StoreError,
    StoreLostError,
)
from a40console.service.series import Reasons, pack, row_of
from a40console.service.tally import HOUR_S, MINUTE_S, Tally
from tests.service.test_history import NOON_S, point

TALLY = Tally(generated_tokens=12, usd=Decimal("0.000122222222"), priced_s=1.0, observed_s=1.5)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def row(number: int) -> bytes:
    """A second's row, as the rings pack it."""
    return pack(row_of(point(NOON_S + number, 10.0), Reasons()))


def batch(first: int, last: int) -> Batch:
    return Batch(
        rows=[(1, row(number)) for number in range(first, last)],
        reasons=("not known", "no engine runs"),
        tallies={(HOUR_S, 3600): TALLY},
        facts={"counters": "{}"},
        keep_rows={1: 100},
        keep_tallies_from_s={MINUTE_S: 0, HOUR_S: 0},
    )


def test_what_was_written_is_read_by_the_next(file: Path) -> None:
    store = HistoryStore(file)
    assert store.load() == replace(Stored(), facts={})
    store.write(batch(0, 3))
    store.write(batch(3, 5))
    del store  # as by a kill: it is never closed
    kept = HistoryStore(file).load()
    assert kept.rows == tuple((1, row(number)) for number in range(5))
    assert kept.reasons == ("not known", "no engine runs")
    assert kept.tallies == {(HOUR_S, 3600): TALLY}
    assert kept.facts["counters"] == "{}"


def test_the_file_does_not_grow_beyond_what_is_kept(file: Path) -> None:
    store = HistoryStore(file)
    for number in range(0, 5000, 50):
        store.write(batch(number, number + 50))
    store.close()
    rows = HistoryStore(file).load().rows
    assert len(rows) == 100
    assert rows[-1] == (1, row(4999))
    assert file.stat().st_size < 200_000


def test_old_tallies_go(file: Path) -> None:
    store = HistoryStore(file)
    tallies = {(HOUR_S, hour * HOUR_S): TALLY for hour in range(10)}
    store.write(replace(batch(0, 1), tallies=tallies))
    store.write(replace(batch(1, 2), tallies={}, keep_tallies_from_s={HOUR_S: 7 * HOUR_S}))
    assert sorted(store.load().tallies) == [(HOUR_S, hour * HOUR_S) for hour in (7, 8, 9)]


@pytest.mark.parametrize("damage", ["garbage", "middle", "header", "version"])
def test_a_broken_file_is_put_aside_and_named(file: Path, damage: str) -> None:
    store = HistoryStore(file)
    for number in range(0, 2000, 50):
        store.write(replace(batch(number, number + 50), keep_rows={}))
    store.close()
    data = bytearray(file.read_bytes())
    if damage == "garbage":
        data[:] = b"not a database at all" * 500
    elif damage == "middle":
        data[4096:12_288] = b"\xff" * 8192
    elif damage == "header":
        data[:100] = b"\0" * 100
    else:
        with sqlite3.connect(file) as newer:
            newer.execute("PRAGMA user_version = 99")
        data[:] = file.read_bytes()
    file.write_bytes(data)

    with pytest.raises(StoreLostError, match=r"it is kept as history\.sqlite\.broken"):
        HistoryStore(file).load()
    assert file.with_name("history.sqlite.broken").exists()
    assert not file.exists()
    again = HistoryStore(file)
    again.write(batch(0, 3))
    assert len(again.load().rows) == 3


def test_a_file_that_breaks_while_it_is_open(file: Path) -> None:
    store = HistoryStore(file)
    store.write(batch(0, 50))
    other = sqlite3.connect(file)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    with file.open("r+b") as disk:
        disk.seek(4096)
        disk.write(b"\xff" * (file.stat().st_size - 4096))
    with pytest.raises(StoreLostError):
        store.write(batch(50, 60))
    store.write(batch(0, 60))
    assert len(store.load().rows) == 60


def test_rows_of_other_series_are_left_out_and_tallies_stay(file: Path) -> None:
    store = HistoryStore(file)
    store.write(batch(0, 3))
    with sqlite3.connect(file) as other:
        other.execute("UPDATE facts SET value = '[\"speed\"]' WHERE name = 'series'")
    kept = HistoryStore(file).load()
    assert kept.rows == ()
    assert kept.tallies == {(HOUR_S, 3600): TALLY}
    again = HistoryStore(file)
    again.write(batch(7, 8))
    assert again.load().rows == ((1, row(7)),)


def test_a_disk_that_takes_nothing_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    store = HistoryStore(folder / "history.sqlite")
    with pytest.raises(StoreError, match="unable to open"):
        store.load()
    folder.mkdir()
    store.write(batch(0, 1))
    assert len(store.load().rows) == 1


def test_another_writer_is_waited_for_and_then_refused(file: Path) -> None:
    store = HistoryStore(file)
    store.write(batch(0, 1))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        store.write(batch(1, 2))
    other.execute("ROLLBACK")
    store.write(batch(1, 2))
    assert len(store.load().rows) == 2
    other.close()


DAMAGE = {
    "text of a tally": "UPDATE tallies SET data = 'x' WHERE at_s = 0",
    "list for a tally": "UPDATE tallies SET data = '[1, 2]' WHERE at_s = 0",
    "number for a tally": "UPDATE tallies SET data = 7 WHERE at_s = 0",
    "deep tally": "UPDATE tallies SET data = printf('%.*c', 99999, '[') WHERE at_s = 0",
    "strange key": 'UPDATE tallies SET data = \'{"usd": "1", "x": 1}\' WHERE at_s = 0',
    "no dollars": "UPDATE tallies SET data = '{\"finished\": 1}' WHERE at_s = 0",
    "dollars of no number": 'UPDATE tallies SET data = \'{"usd": "a"}\' WHERE at_s = 0',
    "dollars without end": 'UPDATE tallies SET data = \'{"usd": "1e999999"}\' WHERE at_s = 0',
    "seconds without end": (
        'UPDATE tallies SET data = \'{"usd": "1", "busy_s": 1e999}\' WHERE at_s = 0'
    ),
    "words for tokens": (
        'UPDATE tallies SET data = \'{"usd": "1", "finished": "1"}\' WHERE at_s = 0'
    ),
    "bytes that are no text": "UPDATE tallies SET data = CAST(X'FF80' AS TEXT) WHERE at_s = 0",
    "length that is none": "UPDATE tallies SET step_s = 61 WHERE at_s = 0",
    "begin that is none": "UPDATE tallies SET at_s = 'now' WHERE at_s = 0",
    "begin beyond all years": "UPDATE tallies SET at_s = 1 << 60 WHERE at_s = 0",
    "short row": "UPDATE rows SET data = X'00' WHERE id = 2",
    "text for a row": "UPDATE rows SET data = 'x' WHERE id = 2",
    "row of ones": "UPDATE rows SET data = CAST(replace(hex(zeroblob(length(data))), '00', "
    "X'7F') AS BLOB) WHERE id = 2",
    "row of zeros": "UPDATE rows SET data = zeroblob(length(data)) WHERE id = 2",
    "step of a row": "UPDATE rows SET step_s = 'x' WHERE id = 2",
    "reason": "UPDATE reasons SET text = X'00FF' WHERE code = 1",
    "fact": "UPDATE facts SET value = X'00FF' WHERE name = 'counters'",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_entry_that_cannot_be_read_costs_itself_alone(file: Path, damage: str) -> None:
    store = HistoryStore(file)
    tallies = {(HOUR_S, hour * HOUR_S): TALLY for hour in range(3)}
    store.write(replace(batch(0, 3), tallies=tallies))
    store.close()
    with sqlite3.connect(file) as other:
        assert other.execute(DAMAGE[damage]).rowcount == 1
    other.close()

    kept = HistoryStore(file).load()
    assert "1 of its entries cannot be read" in kept.lost
    assert "kept as history.sqlite.broken" in kept.lost
    assert file.with_name("history.sqlite.broken").exists()
    assert not file.exists()
    in_rows = damage in ("short row", "text for a row", "step of a row") or "row of" in damage
    assert kept.rows == tuple((1, row(number)) for number in ((0, 2) if in_rows else (0, 1, 2)))
    in_tallies = "UPDATE tallies" in DAMAGE[damage]
    assert kept.tallies == ({k: t for k, t in tallies.items() if k[1]} if in_tallies else tallies)
    assert len(kept.reasons) == 2
    assert HistoryStore(file).load() == Stored(), "the next file is sound"
