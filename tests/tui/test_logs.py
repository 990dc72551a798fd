"""The engine's output: followed, filtered, searched, explained, bounded, and harmless."""

from __future__ import annotations

import pytest

from a40console.model.log_line import Level
from tests.tui.driving import running, toasts, until
from tests.tui.fake_service import FakeService
from tests.tui.log_screen import about, cursor_line, levels, opened, visible

pytestmark = pytest.mark.usefixtures("eager_reading")

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


def test_the_levels_have_an_order() -> None:
    assert Level.DEBUG < Level.INFO < Level.WARN < Level.ERROR
