"""A bug of ours ends with a few lines and a log, never with a traceback on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from a40console.config import Settings
from a40console.tui.app import ConsoleApp
from a40console.tui.crash import report_crash
from a40console.tui.terminal_app import Surroundings
from tests.tui.driving import until
from tests.tui.fake_service import FakeService


def test_the_operator_reads_what_happened_and_where_the_details_are(tmp_path: Path) -> None:
    log = tmp_path / "state" / "console.log"
    lines = report_crash(KeyError("slot"), log)
    assert "keep running" in lines[0]
    assert "KeyError" in lines[1]
    assert str(log) in lines[2]
    assert "KeyError" in log.read_text()


def test_a_log_that_cannot_be_written_is_no_second_failure() -> None:
    lines = report_crash(KeyError("slot"), Path("/proc/none/console.log"))
    assert len(lines) == 2


async def test_a_bug_closes_the_console_with_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "console.log"
    service = FakeService()
    app = ConsoleApp(service.client, Settings(), surroundings=Surroundings(state=tmp_path))

    async def meet_a_bug() -> None:
        async with app.run_test() as pilot:
            await until(pilot, lambda: app.reading.link.state == "live")
            monkeypatch.setattr(ConsoleApp, "show_reading", lambda self: 1 / 0)
            service.push(service.snapshot)
            await until(pilot, log.exists)
            await pilot.pause(0.2)

    with pytest.raises(ZeroDivisionError):
        await meet_a_bug()
    assert app.return_code == 1
    assert "ZeroDivisionError" in log.read_text()
