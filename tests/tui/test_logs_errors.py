"""Errors in the engine's output: found, explained, copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from a40console.model.engine_log import LogMeaning
from a40console.tui.app import ConsoleApp
from a40console.tui.screens import logs as screen
from a40console.tui.widgets.lines import Panel
from tests.tui.driving import running, toasts, until
from tests.tui.fake_service import FakeService
from tests.tui.log_screen import STAMP, about, cursor_line, levels, opened, visible

pytestmark = pytest.mark.usefixtures("eager_reading")

DATA = Path(__file__).parents[1] / "data" / "engine_logs"


def meaning(app: ConsoleApp) -> str:
    return app.screen.query_one("#meaning", Panel).plain


# --- Errors -----------------------------------------------------------------------------------


async def test_a_jump_to_the_first_error_and_on_to_the_next() -> None:
    service = FakeService()
    service.log = (DATA / "fail-kv-too-small-bytes2.log").read_text()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot, 100)
        await pilot.press("E")
        await until(pilot, lambda: log.cursor is not None)
        assert "EngineCore failed to start." in cursor_line(log)
        await pilot.press("full_stop")
        assert "Worker proc VllmWorker-0 died" in cursor_line(log)
        await pilot.press("comma")
        assert "EngineCore failed to start." in cursor_line(log)
        await pilot.press("y")
        await until(pilot, lambda: "Copy" in toasts(app))


async def test_the_first_error_is_found_beyond_what_is_held() -> None:
    """The screen begins with the end of a long output."""
    service = FakeService()
    early = f"{STAMP.format('ERROR')}the very first\n"
    service.log = levels(9000).replace("ERROR", "INFO") + early + levels(20_000)
    async with running(service) as (app, pilot):
        log = await opened(app, pilot, 1000)
        assert not any("the very first" in text for text in log.buffer.texts)
        await pilot.press("E")
        await until(pilot, lambda: log.cursor is not None)
        assert "the very first" in cursor_line(log)
        assert " lines before ──" in log.buffer.texts[0]
        assert len(log.buffer.texts) >= 200, "with some of what came before it"
        await pilot.press("F")
        await until(pilot, lambda: "line 19999" in visible(log))
        assert any("lines skipped" in text for text in log.buffer.texts)
        await until(pilot, lambda: "lines skipped" in about(app))


async def test_an_output_without_an_error_says_so() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("E")
        await until(pilot, lambda: "The output holds no error" in toasts(app))


async def test_a_line_that_is_known_is_marked_and_explained_under_the_cursor() -> None:
    service = FakeService()
    service.log = (DATA / "fail-port-in-use.log").read_text()
    service.meanings["Address already in use"] = LogMeaning(
        cause="its address is taken by another program", remedy="Set listen = 'socket'."
    )
    async with running(service) as (app, pilot):
        log = await opened(app, pilot, 30)
        await until(pilot, lambda: any(log.buffer.meanings.values()))
        asked = next(text for text in service.passages if "Address already" in text)
        assert asked.startswith("Traceback")
        assert asked.endswith("Address already in use"), "the traceback as a whole"
        await pilot.press("E")
        await until(pilot, lambda: "taken by another program" in meaning(app))
        assert "Set listen = 'socket'" in meaning(app)
        assert "✖*" in visible(log)
        await pilot.press("down")
        await until(pilot, lambda: "taken by another program" in meaning(app))
        await pilot.press("F")
        assert not app.screen.query_one("#meaning").display


async def test_a_line_of_which_nothing_is_known_says_so() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("up")
        await until(pilot, lambda: "nothing more is known" in meaning(app))


# --- Copying ----------------------------------------------------------------------------------


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []

    def copy(app: Any, text: str) -> str:
        texts.append(text)
        return "into the test"

    monkeypatch.setattr(screen, "copy", copy)
    return texts


async def test_selected_lines_are_copied_and_how_is_said(copied: list[str]) -> None:
    async with running(FakeService()) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("up", "v", "up", "up")
        assert "selecting" in about(app)
        await pilot.press("y")
        await until(pilot, lambda: "3 lines: into the test" in toasts(app))
        assert copied[0].count("\n") == 3
        assert copied[0].endswith("engine: line 199\n")
        assert log.marked_from is None


async def test_a_traceback_is_copied_as_one(copied: list[str]) -> None:
    service = FakeService()
    service.log = (DATA / "fail-port-in-use.log").read_text()
    async with running(service) as (app, pilot):
        await opened(app, pilot, 30)
        await pilot.press("E", "y")
        await until(pilot, lambda: bool(copied))
        assert copied[0].startswith("Traceback (most recent call last)")
        assert copied[0].endswith("Address already in use\n")


async def test_copying_while_it_runs_on_says_what_to_do(copied: list[str]) -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("y")
        await until(pilot, lambda: "Hold the output first" in toasts(app))
        assert not copied
