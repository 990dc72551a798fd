"""The cursor in the table of requests, and what is painted again."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from textual.strip import Strip

from a40console.tui.widgets.lines import Panel
from tests import make_snapshot as make
from tests.tui.driving import running, screen_text, until
from tests.tui.fake_service import FakeService


async def test_parallel_requests_of_one_session_are_reached_with_the_cursor() -> None:
    pair = tuple(make.slot(slot=seat, request_id=f"sub-agent-{seat}") for seat in range(3))
    async with running(FakeService(make.snapshot(slots=pair, recent=()))) as (app, pilot):
        status = app.screen.query_one("#status", Panel)
        for seat in (1, 2):
            await pilot.press("down")
            await until(pilot, lambda seat=seat: f"sub-agent-{seat}" in status.plain)  # type: ignore[misc]


async def test_rows_that_the_table_does_not_need_are_the_charts() -> None:
    service = FakeService(make.idle())
    async with running(service, size=(200, 50)) as (app, pilot):
        chart, table = app.screen.query_one("#chart", Panel), app.screen.query_one("#slots", Panel)
        await until(pilot, lambda: chart.size.height > 24)
        assert "at 14:04:21" in table.plain
        assert app.screen.query_one("#hints", Panel).region.bottom == 50
        service.push(make.snapshot(slots=make.many_slots(32)))
        await until(pilot, lambda: table.size.height >= 23)
        assert chart.size.height >= 6
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: table.size.height >= 17 and chart.size.height >= 6)
        assert app.screen.query_one("#hints", Panel).region.bottom == 40


async def test_the_cursor_tells_why_a_dash_is_a_dash() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("down")
        status = app.screen.query_one("#status", Panel)
        await until(pilot, lambda: "TTFT –: no token yet" in " ".join(status.plain.split()))


async def test_tab_tells_the_source_of_each_panel() -> None:
    async with running(FakeService()) as (app, pilot):
        status = app.screen.query_one("#status", Panel)
        said = []
        for _ in range(8):
            await pilot.press("tab")
            await pilot.pause()
            said.append(status.plain)
        assert any("Speed: vllm.metrics, window 5 s, fresh" in text for text in said)
        assert any("Speculation: vllm.metrics, window 60 s" in text for text in said)
        assert any("quota from cgroup2" in text for text in said)


async def test_more_rows_than_room_are_reached_with_the_cursor() -> None:
    service = FakeService(make.snapshot(slots=make.many_slots(40)))
    async with running(service) as (app, pilot):
        slots = app.screen.query_one("#slots", Panel)
        assert re.search(r"… 2\d more rows   held at gate 0", slots.plain)
        assert "✓ counter" in slots.plain
        last = make.many_slots(40)[-1].session
        assert str(last) not in slots.plain
        await pilot.press("end")
        await until(pilot, lambda: "at 14:04:21" in slots.plain)
        await pilot.press("home")
        await until(pilot, lambda: str(make.many_slots(40)[0].session) in slots.plain)


async def test_the_cursor_stays_on_its_request() -> None:
    service = FakeService(make.snapshot(slots=make.many_slots(6), recent=()))
    async with running(service) as (app, pilot):
        slots = app.screen.query_one("#slots", Panel)
        await pilot.press("down", "down")
        await pilot.pause()
        here = next(row for row in slots.plain.splitlines() if row.startswith("▸"))
        service.push(make.snapshot(slots=make.many_slots(6)[1:], recent=()))
        await until(pilot, lambda: str(make.many_slots(6)[0].session) not in slots.plain)
        there = next(row for row in slots.plain.splitlines() if row.startswith("▸"))
        assert there[:15] == here[:15]


async def test_control_characters_from_elsewhere_do_not_reach_the_screen() -> None:
    nasty = make.slot(session="\x1b[2J\x07evil", client="a\nb")
    service = FakeService(make.snapshot(slots=(nasty,)))
    async with running(service) as (app, _):
        text = screen_text(app)
        assert "evil" in text
        assert "\x1b" not in text
        assert "\x07" not in text


async def test_only_rows_that_changed_are_painted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        slots = app.screen.query_one("#slots", Panel)
        painted: list[int] = []
        whole = slots._strip

        def noted(y: int, width: int) -> Strip:
            painted.append(y)
            return whole(y, width)

        monkeypatch.setattr(slots, "_strip", noted)
        first, *rest = make.four_slots()
        faster = replace(first, generated_tokens=1300)
        service.push(make.snapshot(slots=(faster, *rest)))
        await until(pilot, lambda: "1,300" in slots.plain)
        await pilot.pause(0.1)
        assert painted == [1]
