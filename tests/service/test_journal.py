"""The journal outlives the service, and a full disk costs nothing that is still in memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from a40console.model.event import Event, Severity
from a40console.operations.desire import desired
from a40console.operations.past_starts import PastStarts
from a40console.service import journal as journal_module
from a40console.service.journal import Journal, Wanted
from a40console.service.read_marks import ReadMarks


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


def noted(journal: Journal, count: int) -> None:
    for number in range(1, count + 1):
        kind = ("engine.started", "note.added", "command.failed")[number % 3]
        journal.record(kind, str(number), "warn" if kind == "command.failed" else "info")


def ids(events: tuple[Event, ...]) -> list[int]:
    return [event.id for event in events]


def test_pages_go_back_through_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "KEPT_IN_MEMORY", 10)
    monkeypatch.setattr(journal_module, "FILE_LIMIT_BYTES", 12_000)
    journal = Journal(tmp_path / "events.jsonl")
    noted(journal, 200)
    pages = journal.pages()
    seen, before = list[int](), None
    while page := pages.find(Wanted(before=before, limit=7)):
        assert ids(page) == sorted(ids(page))
        seen = [*ids(page), *seen]
        before = page[0].id
    oldest = pages.first_after(0)[0].id
    assert oldest < 120, "the older file is read too"
    assert seen == list(range(oldest, 201))


def test_events_by_kind_severity_and_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    noted(journal, 30)
    pages = journal.pages()
    assert ids(pages.find(Wanted(kind="engine", limit=3))) == [24, 27, 30]
    assert ids(pages.find(Wanted(kind="engine.started", since=24))) == [27, 30]
    assert pages.find(Wanted(kind="eng")) == ()
    assert ids(pages.find(Wanted(severity="warn", limit=2))) == [26, 29]
    assert pages.find(Wanted(severity="error")) == ()
    assert ids(pages.find(Wanted(since_s=time.time() - 60))) == list(range(1, 31))
    assert pages.find(Wanted(since_s=time.time() + 60)) == ()
    assert pages.find(Wanted(limit=0)) == ()
    assert ids(pages.first_after(29)) == [30]
    assert pages.first_after(30) == ()


def test_what_the_disk_has_not_taken_is_in_the_pages(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "gone" / "events.jsonl")
    noted(journal, 3)
    assert ids(journal.pages().find(Wanted())) == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "severity", "marked"),
    [
        ("engine.serving", "info", True),
        ("note.added", "info", True),
        ("service.started", "info", True),
        ("finding.began", "warn", True),
        ("finding.ended", "info", False),
        ("command.refused", "info", False),
    ],
)
def test_what_belongs_on_the_time_axis(kind: str, severity: Severity, marked: bool) -> None:
    assert Event(1, "2026-11-29T10:00:00Z", kind, "…", severity).marked is marked


def line_of(event_id: int) -> str:
    return f'{{"id": {event_id}, "at": "2026-11-29T10:00:00Z", "kind": "note", "text": "x"}}\n'


@pytest.mark.parametrize(
    "last", [line_of(-5), line_of(0), line_of(10**300), line_of(2), "[" * 100_000 + "\n"]
)
def test_a_damaged_last_line_hides_no_new_event(tmp_path: Path, last: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(line_of(6) + line_of(7) + last)
    journal = Journal(path)
    assert journal.last_id == 7
    assert journal.record("note", "new").id == 8
    assert [event.id for event in journal.since(7, 10)] == [8]
    assert [event.id for event in journal.pages().find(Wanted(since=5))] == [6, 7, 8]


def test_depth_in_other_state_is_broken_content(tmp_path: Path) -> None:
    for name in ("read-mark.json", "starts.json", "desired.json"):
        (tmp_path / name).write_text("[" * 100_000)
    assert ReadMarks(tmp_path / "read-mark.json", lambda: 9).mark.event == 0
    assert PastStarts(tmp_path / "starts.json").list(5) == ()
    assert desired(tmp_path / "desired.json") is None
