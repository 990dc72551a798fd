"""A pause that cannot be kept is told to whoever asked for it."""

from __future__ import annotations

from pathlib import Path

from a40console.service.pause_note import PauseNote
from tests.service.test_control_handlers import holding, steered


async def test_a_pause_on_a_full_disk_holds_and_says_how_long(tmp_path: Path) -> None:
    service = steered(tmp_path, holding(0))
    service.note.path.mkdir()  # a file cannot be written there
    told = await service.do("admission.pause")
    assert service.gate.paused is not None
    kept = "until this service ends: it could not be kept (Is a directory)"
    assert f"new requests are held, {kept}. Let them go" in told["report"]
    assert service.noted[-1][2]["result"] == f"new requests are held, {kept}"


async def test_a_pause_that_is_kept_says_no_more_than_that(tmp_path: Path) -> None:
    service = steered(tmp_path, holding(0))
    told = await service.do("admission.pause")
    assert told["report"].startswith("Admission is paused: new requests are held. Let them go")
    assert (service.note.read() or "").startswith("admission is paused by")


def test_why_it_is_not_written_is_the_answer(tmp_path: Path) -> None:
    assert PauseNote(tmp_path / "paused").write("why") == ""
    assert PauseNote(tmp_path).write("why") == "Is a directory"
