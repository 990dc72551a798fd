"""The journal outlives the service, and a full disk costs nothing that is still in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.service import journal as journal_module
from a40console.service.journal import Journal


def test_ids_and_entries_go_on_after_a_restart(tmp_path: Path) -> None:
    first = Journal(tmp_path / "events.jsonl")
    first.record("engine.started", "smollm2 starts")
    first.record("engine.serving", "smollm2 serves", data={"after": "0.5 s"})

    second = Journal(tmp_path / "events.jsonl")
    assert second.last_id == 2
    assert [event.kind for event in second.since(0, 10)] == ["engine.started", "engine.serving"]
    assert second.record("engine.stopped", "gone").id == 3


def test_an_entry_that_the_disk_refuses_is_written_with_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    journal = Journal(folder / "events.jsonl")
    journal.record("engine.started", "no folder yet")
    assert journal.trouble is not None
    assert [event.text for event in journal.since(0, 10)] == ["no folder yet"]

    folder.mkdir()
    journal.record("engine.serving", "now it fits")
    assert journal.trouble is None
    kept = Journal(folder / "events.jsonl").since(0, 10)
    assert [event.text for event in kept] == ["no folder yet", "now it fits"]


def test_a_cut_line_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    Journal(path).record("engine.started", "whole")
    path.write_bytes(path.read_bytes() + b'{"id": 2, "at": "2026-')
    again = Journal(path)
    assert [event.text for event in again.since(0, 10)] == ["whole"]


def test_since_gives_the_newest(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    for number in range(10):
        journal.record("engine.noted", str(number))
    assert [event.text for event in journal.since(3, 2)] == ["8", "9"]
    assert journal.since(10, 5) == ()
    assert journal.since(0, 0) == ()


def test_the_file_is_rotated_and_both_halves_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "FILE_LIMIT_BYTES", 400)
    journal = Journal(tmp_path / "events.jsonl")
    for number in range(8):
        journal.record("engine.noted", f"entry {number}")
    again = Journal(tmp_path / "events.jsonl")
    assert again.last_id == 8
    assert (tmp_path / "events.jsonl").stat().st_size <= 600
