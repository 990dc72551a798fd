"""What was read stays read when the console and the service are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.model.figures import Missing
from a40console.service import read_marks
from a40console.service.read_marks import ReadMarks


def test_a_mark_outlives_the_service_and_never_goes_back(tmp_path: Path) -> None:
    file = tmp_path / "read-mark.json"
    marks = ReadMarks(file, lambda: 40)
    assert marks.mark.event == 0
    assert marks.set(12).event == 12
    assert marks.set(7).event == 12
    assert marks.set(999).event == 40, "nobody has read what has not happened"
    again = ReadMarks(file, lambda: 45)
    assert again.mark.event == 40
    assert again.mark == marks.mark


def test_a_mark_says_when_somebody_was_last_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = ReadMarks(tmp_path / "read-mark.json", lambda: 40)
    for hour in ("09", "18"):
        at = f"2026-11-29T{hour}:00:00.000Z"
        monkeypatch.setattr(read_marks, "now", lambda at=at: at)
        assert (marks.set(40).event, marks.mark.at) == (40, at)
    assert marks.set(12).at == "2026-11-29T18:00:00.000Z"
    assert ReadMarks(tmp_path / "read-mark.json", lambda: 40).mark == marks.mark


def test_a_mark_of_another_journal_is_none(tmp_path: Path) -> None:
    file = tmp_path / "read-mark.json"
    ReadMarks(file, lambda: 9000).set(9000)
    fresh = ReadMarks(file, lambda: 3)
    assert (fresh.mark.event, fresh.mark.at) == (0, Missing("nothing was read yet"))
    assert fresh.set(2).event == 2


def test_a_disk_that_takes_nothing_costs_the_permanence(tmp_path: Path) -> None:
    marks = ReadMarks(tmp_path / "gone" / "read-mark.json", lambda: 5)
    assert marks.set(4).event == 4
    (tmp_path / "broken.json").write_text('{"event": "x"}')
    assert ReadMarks(tmp_path / "broken.json", lambda: 5).mark.event == 0
