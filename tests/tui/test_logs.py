"""The engine's output: followed, filtered, searched, explained, bounded, and harmless."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from a40console.model.engine_log import LogMeaning
from a40console.model.log_line import Level
from a40console.tui.app import ConsoleApp
from a40console.tui.log_buffer import MAX_LINES
from a40console.tui.output import CHUNK_BYTES
from a40console.tui.screens import logs as screen
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.log_view import LogView
from tests.tui.driving import Driven, running, toasts, until
from tests.tui.fake_service import FakeService

DATA = Path(__file__).parents[1] / "data" / "engine_logs"
STAMP = "(APIServer pid=7) {} 11-29 14:00:00 [serving.py:929] "


@pytest.fixture(autouse=True)
def _eager_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output is looked at more often than an operator needs: tests wait for it."""
    monkeypatch.setattr(screen, "_QUIET_PERIOD_S", 0.1)


async def opened(app: ConsoleApp, pilot: Driven, lines: int = 200) -> LogView:
    await pilot.press("3")
    await until(pilot, lambda: bool(app.screen.query(LogView)))
    log = app.screen.query_one(LogView)
    await until(pilot, lambda: log.buffer.count >= lines)
    await pilot.pause()
    return log


def visible(log: LogView) -> str:
    return "\n".join(log.render_line(y).text.rstrip() for y in range(log.size.height))


def about(app: ConsoleApp) -> str:
    return app.screen.query_one("#about", Panel).plain


def meaning(app: ConsoleApp) -> str:
    return app.screen.query_one("#meaning", Panel).plain


def cursor_line(log: LogView) -> str:
    assert log.cursor is not None
    return log.buffer.line_at(log.buffer.row_of(log.cursor)).text


def levels(count: int = 40) -> str:
    """Lines of every level by turns."""
    names = ("DEBUG", "INFO", "WARNING", "ERROR")
    return "".join(f"{STAMP.format(names[n % 4])}line {n}\n" for n in range(count))


# --- Following and holding --------------------------------------------------------------------


async def test_the_end_is_shown_and_followed() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        assert "engine: line 199" in visible(log)
        assert "following" in about(app)
        service.log += "WARNING new line\n"
        await until(pilot, lambda: "WARNING new line" in visible(log))


async def test_moving_up_holds_the_place_and_f_follows_again() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("g")
        await until(pilot, lambda: "engine: line 0" in visible(log))
        await until(pilot, lambda: "held" in about(app))
        service.log += "one more\n"
        await until(pilot, lambda: log.buffer.count == 201)
        assert "engine: line 0" in visible(log)
        await pilot.press("F")
        await until(pilot, lambda: "one more" in visible(log))
        assert "following" in about(app)


async def test_the_cursor_walks_and_below_the_last_line_it_follows() -> None:
    async with running(FakeService()) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("up")
        assert "line 199" in cursor_line(log)
        await pilot.press("up", "k")
        assert "line 197" in cursor_line(log)
        assert "▸" in visible(log)
        await pilot.press("down", "down", "j")
        assert log.following
        assert log.cursor is None


async def test_what_is_written_of_a_line_without_an_end_is_shown() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        service.log += "shards:  10%| 1/8\rshards:  50%| 4/8"
        await until(pilot, lambda: "shards:  50%| 4/8" in visible(log))
        assert log.buffer.count == 200
        service.log += "\rshards: 100%| 8/8\n"
        await until(pilot, lambda: log.buffer.count == 201)
        assert log.buffer.texts[-1] == "shards: 100%| 8/8"


# --- Searching, filtering, levels -------------------------------------------------------------


async def test_search_finds_marks_and_steps() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("slash", *"LINE 42", "enter")
        await until(pilot, lambda: "engine: line 42" in visible(log))
        assert "1 lines with 'line 42'" in about(app)
        await pilot.press("escape")
        await until(pilot, lambda: "lines with" not in about(app))
        await pilot.press("slash", *"line 1", "enter")
        await until(pilot, lambda: "111 lines with" in about(app))
        first = log.cursor
        await pilot.press("N")
        await until(pilot, lambda: log.cursor != first)
        await pilot.press("n")
        await until(pilot, lambda: log.cursor == first)


async def test_a_search_for_nothing_that_is_there_says_so() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("slash", *"zebra", "enter")
        await until(pilot, lambda: "Nothing holds 'zebra'" in toasts(app))


async def test_without_a_search_n_is_the_consoles_own_key() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        assert app.screen.check_action("match", (1,)) is False
        await pilot.press("slash", *"line 3", "enter")
        await until(pilot, lambda: app.screen.check_action("match", (1,)) is True)


async def test_only_lines_with_a_text_are_shown_until_escape() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("f", *"line 7", "enter")
        await until(pilot, lambda: len(log.buffer) == 11)
        assert "line 6" not in visible(log)
        assert "only with 'line 7'" in about(app)
        assert "11 of 200 lines" in about(app)
        service.log += "engine: line 700\nengine: line 800\n"
        await until(pilot, lambda: "line 700" in visible(log))
        assert "line 800" not in visible(log)
        await pilot.press("escape")
        await until(pilot, lambda: "line 800" in visible(log))


async def test_a_filter_may_be_a_pattern() -> None:
    async with running(FakeService()) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("f", *"/line 1?5$/", "enter")
        await until(pilot, lambda: len(log.buffer) == 2)


async def test_a_filter_that_hangs_on_a_line_is_dropped_and_the_keys_go_on() -> None:
    service = FakeService()
    service.log += "a" * 4000 + "!\n"
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        everything = len(log.buffer)
        await pilot.press("f", *"/(a+)+$/", "enter")
        await until(pilot, lambda: "Filter dropped: it takes too long" in toasts(app))
        assert "Repeat nothing that is itself repeated" in toasts(app)
        assert len(log.buffer) == everything
        assert log.buffer.filter == ""
        await pilot.press("l")
        await until(pilot, lambda: "only info" in about(app))


async def test_l_cycles_the_lowest_level() -> None:
    service = FakeService()
    service.log = levels()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot, 40)
        for words, count in (("info", 30), ("warnings", 20), ("errors", 10)):
            await pilot.press("l")
            await until(pilot, lambda n=count: len(log.buffer) == n)  # type: ignore[misc]
            assert f"only {words}" in about(app)
        await pilot.press("l")
        await until(pilot, lambda: len(log.buffer) == 40)
        assert "only" not in about(app)


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


# --- Wrapping ---------------------------------------------------------------------------------


async def test_long_lines_are_broken_when_asked_and_the_end_stays_in_sight() -> None:
    service = FakeService()
    service.log += "x" * 500 + " the end\n"
    async with running(service, size=(80, 24)) as (app, pilot):
        log = await opened(app, pilot, 201)
        assert "the end" not in visible(log)
        await pilot.press("W")
        await until(pilot, lambda: "the end" in visible(log))
        await pilot.press("up", "up")
        await until(pilot, lambda: "line 199" in cursor_line(log))
        assert "▸" in visible(log)
        await pilot.press("g")
        await until(pilot, lambda: "line 0" in cursor_line(log))
        await pilot.press("W")
        await pilot.press("F")
        await until(pilot, lambda: log.following)


async def test_in_a_narrow_window_a_stamp_gives_way_to_the_message() -> None:
    service = FakeService()
    service.log = levels()
    async with running(service, size=(80, 24)) as (app, pilot):
        log = await opened(app, pilot, 40)
        assert "14:00:00 APIServer line 39" in visible(log)
        assert "[serving.py" not in visible(log)


# --- Where it is read from --------------------------------------------------------------------


async def test_output_is_read_only_while_it_is_looked_at() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        assert service.logs_asked == 0
        await opened(app, pilot)
        await pilot.press("1")
        await pilot.pause(0.2)
        asked = service.logs_asked
        await pilot.pause(0.5)
        assert service.logs_asked == asked


async def test_a_rotated_file_is_read_from_its_new_start() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        service.log = "after the rotation\n"
        await until(pilot, lambda: "after the rotation" in visible(log))
        assert "the output began anew" in visible(log)


async def test_the_next_engines_output_is_shown_from_its_first_line() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        service.log = "".join(f"next engine: line {number}\n" for number in range(900))
        service.log_path = "/root/.a40/engines/next/output.log"
        await until(pilot, lambda: "next engine: line 899" in visible(log))
        shown = [line for line in log.buffer.texts if line.startswith("next engine")]
        assert shown == [f"next engine: line {number}" for number in range(900)]
        assert "another engine start" in "\n".join(log.buffer.texts)


async def test_the_output_of_an_earlier_start_can_be_chosen() -> None:
    service = FakeService()
    earlier = service.starts[1]
    service.older_logs[earlier.id] = "of an earlier start\n"
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("o")
        await until(pilot, lambda: len(app.screen_stack) > 1)
        await pilot.press("2")
        await until(pilot, lambda: "of an earlier start" in visible(log))
        assert log.buffer.count == 1
        await until(pilot, lambda: "start of" in about(app))
        await pilot.press("o")
        await until(pilot, lambda: len(app.screen_stack) > 1)
        await pilot.press("1")
        await until(pilot, lambda: "engine: line 199" in visible(log))
        await until(pilot, lambda: "start of" not in about(app))


async def test_without_an_engine_it_says_so() -> None:
    service = FakeService()
    service.log, service.log_path = "", None
    async with running(service) as (app, pilot):
        await pilot.press("3")
        await until(pilot, lambda: "there is no engine whose output" in about(app))


async def test_a_lost_service_is_told_and_reading_goes_on() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        service.go_down()
        await until(pilot, lambda: "No service answers" in about(app))
        service.log += "back again\n"
        service.up = True
        await until(pilot, lambda: "back again" in visible(log))


# --- A flood ----------------------------------------------------------------------------------


async def test_memory_is_bounded_and_what_was_dropped_is_counted() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        service.log += "".join(f"extra {n}\n" for n in range(MAX_LINES + 10))
        await until(pilot, lambda: log.dropped == 210)
        assert log.buffer.count == MAX_LINES
        await until(pilot, lambda: f"extra {MAX_LINES + 9}" in visible(log))
        await until(pilot, lambda: "210 older dropped" in about(app))


async def test_what_comes_too_fast_is_skipped_and_counted() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        flood = [f"flood {number} {'x' * 90}" for number in range(12_000)]
        service.log += "\n".join(flood) + "\n"
        assert len(service.log) > 2 * CHUNK_BYTES
        await until(pilot, lambda: "flood 11999" in visible(log))
        shown = sum(text.startswith("flood") for text in log.buffer.texts)
        skipped = 12_000 - shown
        assert skipped > 0
        assert f"── {skipped:,} lines skipped: they came too fast ──" in log.buffer.texts
        told = f"{skipped:,} lines skipped"
        await until(pilot, lambda: told in about(app).replace("\u00a0", " "))


async def test_what_is_held_stays_however_much_is_written() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("up")
        held = cursor_line(log)
        for part in range(8):
            service.log += "".join(f"more {part} {n} {'x' * 80}\n" for n in range(3000))
            await pilot.pause(0.3)
        await until(pilot, lambda: "not read" in about(app), within_s=10)
        assert cursor_line(log) == held
        assert held.split()[-1] in visible(log)
        assert log.buffer.count <= MAX_LINES
        await pilot.press("F")
        await until(pilot, lambda: "more 7 2999" in visible(log))
        assert any("lines skipped" in text for text in log.buffer.texts)


async def test_keys_are_answered_while_ten_thousand_lines_a_second_come() -> None:
    """Measured by tests/bench/log_flood.py on a terminal; here with slack for a busy machine."""
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        with flooded(service):
            await pilot.pause(0.5)
            delays = []
            for _ in range(8):
                before, began_s = log.buffer.minimum, time.perf_counter()
                await pilot.press("l")
                await until(pilot, lambda b=before: log.buffer.minimum != b)  # type: ignore[misc]
                delays.append(time.perf_counter() - began_s)
                await pilot.pause(0.15)
        assert log.buffer.count > 2000
        assert sorted(delays)[len(delays) // 2] < 0.25, delays


@contextmanager
def flooded(service: FakeService) -> Iterator[None]:
    """The output grows by ten thousand lines a second."""

    async def write() -> None:
        number = 0
        while True:
            service.log += levels(1000)
            number += 1
            await asyncio.sleep(0.1)

    writing = asyncio.ensure_future(write())
    try:
        yield
    finally:
        writing.cancel()


def test_the_levels_have_an_order() -> None:
    assert Level.DEBUG < Level.INFO < Level.WARN < Level.ERROR
