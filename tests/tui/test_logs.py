"""The engine's output: followed, searched, bounded, and harmless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.tui.app import ConsoleApp
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.log_view import MAX_LINES, LogView, plain
from tests.tui.driving import Driven, running, toasts, until
from tests.tui.fake_service import FakeService


async def opened(app: ConsoleApp, pilot: Driven, lines: int = 200) -> LogView:
    await pilot.press("3")
    await until(pilot, lambda: bool(app.screen.query(LogView)))
    log = app.screen.query_one(LogView)
    await until(pilot, lambda: log.line_count >= lines)
    await pilot.pause()
    return log


def visible(log: LogView) -> str:
    return "\n".join(log.render_line(y).text.rstrip() for y in range(log.size.height))


def about(app: ConsoleApp) -> str:
    return app.screen.query_one("#about", Panel).plain


async def test_the_end_is_shown_and_followed() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        assert "engine: line 199" in visible(log)
        assert "following" in about(app)
        service.log += "WARNING new line\n"
        await until(pilot, lambda: "WARNING new line" in visible(log))


async def test_scrolling_up_holds_the_place_and_f_follows_again() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        await pilot.press("g")
        await until(pilot, lambda: "engine: line 0" in visible(log))
        await until(pilot, lambda: "held" in about(app))
        service.log += "one more\n"
        await until(pilot, lambda: log.line_count == 201)
        assert "engine: line 0" in visible(log)
        await pilot.press("f")
        await until(pilot, lambda: "one more" in visible(log))


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
        first = log.current_match
        await pilot.press("N")
        await until(pilot, lambda: log.current_match != first)
        await pilot.press("n")
        await until(pilot, lambda: log.current_match == first)


async def test_a_search_for_nothing_that_is_there_says_so() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("slash", *"zebra", "enter")
        await until(pilot, lambda: "Nothing holds 'zebra'" in toasts(app))


async def test_output_is_read_only_while_it_is_looked_at() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        assert service.logs_asked == 0
        await opened(app, pilot)
        await pilot.press("1")
        await pilot.pause(0.2)
        asked = service.logs_asked
        await pilot.pause(1.3)
        assert service.logs_asked == asked


async def test_a_rotated_file_is_read_from_its_new_start() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        service.log = "after the rotation\n"
        await until(pilot, lambda: "after the rotation" in visible(log))
        assert "the output was rotated" in visible(log)


async def test_the_next_engines_output_is_shown_from_its_first_line() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        service.log = "".join(f"next engine: line {number}\n" for number in range(900))
        service.log_path = "/root/.a40/engines/next/output.log"
        await until(pilot, lambda: "next engine: line 899" in visible(log))
        shown = [line for line in log.held if line.startswith("next engine")]
        assert shown == [f"next engine: line {number}" for number in range(900)]
        assert "another engine start" in "\n".join(log.held)


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


async def test_memory_is_bounded_and_what_was_dropped_is_counted() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        log = await opened(app, pilot)
        log.feed("".join(f"extra {n}\n" for n in range(MAX_LINES + 10)))
        await pilot.pause()
        assert log.line_count == MAX_LINES
        assert log.dropped == 210
        assert f"extra {MAX_LINES + 9}" in visible(log)


async def test_a_line_that_comes_in_pieces_is_one_line() -> None:
    async with running(FakeService()) as (app, pilot):
        log = await opened(app, pilot)
        before = log.line_count
        log.feed("half a li")
        assert log.line_count == before
        log.feed("ne\n")
        assert list(log.held)[-1] == "half a line"


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ("\x1b[31mred\x1b[0m text", "red text"),
        ("loading  10%\rloading  90%", "loading  90%"),
        ("a\tb", "a   b"),
        ("bell\x07", "bell "),
        ("[bold]not markup[/bold]", "[bold]not markup[/bold]"),
    ],
)
def test_escape_sequences_are_taken_out(raw: str, read: str) -> None:
    assert plain(raw) == read


@given(st.text())
def test_no_line_can_move_the_cursor(raw: str) -> None:
    assert plain(raw).isprintable()
