"""Where the log screen reads from, and a flood that it bears."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from a40console.tui.log_buffer import MAX_LINES
from a40console.tui.output import CHUNK_BYTES
from tests.tui.driving import running, until
from tests.tui.fake_service import FakeService
from tests.tui.log_screen import about, cursor_line, levels, opened, visible

pytestmark = pytest.mark.usefixtures("eager_reading")

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
