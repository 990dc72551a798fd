"""Time on the screen: back and forward, spans, pause, and the request that is opened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.model.control import HistoryPoint
from a40console.model.engine import EngineState
from a40console.model.event import Event
from a40console.model.figures import Estimated, Missing
from a40console.tui.app import ConsoleApp
from a40console.tui.instant import at_instant
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.screens.slot import SlotDialog
from a40console.tui.widgets.lines import Panel
from tests import make_snapshot as make
from tests.tui.driving import Driven, running, screen_text, toasts, until
from tests.tui.fake_service import FakeService

NOW_S = make.NOW.timestamp()


def panel(app: ConsoleApp, name: str) -> Panel:
    return app.screen_stack[0].query_one(f"#{name}", Panel)


def day(hours: int = 24) -> tuple[HistoryPoint, ...]:
    """A reading a minute whose speed is its age in minutes."""
    return tuple(
        HistoryPoint(
            at_s=NOW_S - 60 * minute,
            generation_tokens_per_s=float(minute),
            prefill_tokens_per_s=0.0,
            running=2,
            waiting=0,
            gpu_power_w=151.0,
            kv_held_ratio=0.25,
        )
        for minute in range(60 * hours, 0, -1)
    )


async def settled(app: ConsoleApp, pilot: Driven) -> None:
    await until(pilot, lambda: not app.time_control.fetching)
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_the_past_says_so_and_shows_the_figures_of_its_instant(size: tuple[int, int]) -> None:
    async with running(FakeService(), size=size) as (app, pilot):
        assert "PAST" not in panel(app, "clock").plain
        await pilot.press("left")
        await until(pilot, lambda: "PAST" in panel(app, "clock").plain)
        await settled(app, pilot)
        assert "◀ PAST 13:50–14:05" in panel(app, "clock").plain
        table = panel(app, "slots").plain
        assert "at 14:05:0" in table
        assert "what ran is not kept one by one" in table
        assert "1,204" not in table
        # The verdict stays that of now, whatever is looked at.
        assert "509 tok/s" in panel(app, "verdict").plain
        await pilot.press("0")
        await until(pilot, lambda: "PAST" not in panel(app, "clock").plain)
        assert "1,204" in panel(app, "slots").plain


@pytest.mark.parametrize(
    ("back", "forward"), [("left", "right"), ("comma", "full_stop"), ("left", "end")]
)
async def test_time_has_keys_for_every_keyboard(back: str, forward: str) -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press(back)
        await until(pilot, lambda: not app.reading.view.live)
        await app.run_action("app.command('time.now')") if forward == "end" else await pilot.press(
            forward
        )
        await until(pilot, lambda: app.reading.view.live)


async def test_what_the_history_does_not_keep_is_a_dash_with_its_reason() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("left")
        await settled(app, pilot)
        gpu = panel(app, "gpus")
        assert "283/300 W" in gpu.plain
        assert "– °C" in gpu.plain
        app.screen.set_focus(gpu)
        status = panel(app, "status")
        await until(pilot, lambda: "the history does not keep it" in status.plain)


async def test_of_a_past_in_which_nothing_ran_nothing_is_claimed() -> None:
    service = FakeService()
    none = Missing("no engine runs")
    service.history = tuple(
        replace(
            one, generation_tokens_per_s=none, running=none, waiting=none, held=none, ttft_s=none
        )
        for one in service.history
    )
    async with running(service, size=(200, 50)) as (app, pilot):
        await pilot.press("left")
        await settled(app, pilot)
        await until(pilot, lambda: "– no engine runs" in panel(app, "slots").plain)
        assert "First token  – no engine runs" in panel(app, "latencies").plain
        queue = panel(app, "queue")
        assert "– held at the gate" in queue.plain
        app.screen.set_focus(queue)
        status = panel(app, "status")
        await until(pilot, lambda: "held, in the engine –: no engine runs" in status.plain)
        assert at_instant(app.drawn).snapshot.engine.state is not EngineState.SERVING


async def test_where_the_history_has_nothing_the_queue_says_so() -> None:
    service = FakeService()
    async with running(service, size=(200, 50)) as (app, pilot):
        app.look_at(NOW_S - 80_000)
        app.show_reading()
        await settled(app, pilot)
        await until(pilot, lambda: "– held at the gate" in panel(app, "queue").plain)
        assert "the history has nothing of this instant" in panel(app, "slots").plain


async def test_an_estimate_of_the_past_keeps_its_mark() -> None:
    service = FakeService()
    service.history = tuple(
        replace(one, ttft_s=Estimated(0.42), held=3, running=0, simulated=True)
        for one in service.history
    )
    async with running(service, size=(200, 50)) as (app, pilot):
        await pilot.press("left")
        await settled(app, pilot)
        await until(pilot, lambda: "≈0.42 s  at the gateway" in panel(app, "latencies").plain)
        assert "3 held at the gate" in panel(app, "queue").plain
        assert "no request was running" in panel(app, "slots").plain
        assert "SIMULATED   0 running" in panel(app, "slots").plain


async def test_a_day_is_fetched_once_and_drawn_with_its_clock_times() -> None:
    service = FakeService()
    service.history = day()
    asked: list[str] = []
    whole = service.answer

    async def noted(request: object) -> object:
        asked.append(str(request.url))  # type: ignore[attr-defined]
        return await whole(request)  # type: ignore[arg-type]

    service.answer = noted  # type: ignore[method-assign,assignment]
    async with running(service) as (app, pilot):
        await pilot.press("]", "]", "]")
        await until(pilot, lambda: "24 h" in panel(app, "speed-heading").plain)
        await until(pilot, lambda: not app.past.timeline.trouble)
        await settled(app, pilot)
        await until(pilot, lambda: "peak 1,4" in panel(app, "speed-heading").plain)
        times = panel(app, "chart").plain.splitlines()[-1].split()
        assert len(times) >= 3
        assert all(time.endswith(":00") for time in times)
        before = len([url for url in asked if "history" in url])
        for _ in range(5):
            app.show_reading()
        await settled(app, pilot)
        assert len([url for url in asked if "history" in url]) == before
        await pilot.press("[", "[")
        await until(pilot, lambda: "1 h" in panel(app, "speed-heading").plain)


async def test_a_service_that_is_lost_while_the_past_is_fetched_is_told() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        service.up = False
        await pilot.press("]", "]")
        await until(pilot, lambda: bool(app.past.timeline.trouble))
        assert "No service answers" in app.past.timeline.trouble
        assert app.is_running


async def test_an_instant_can_be_looked_at_from_elsewhere() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: "Identity" in screen_text(app))
        app.look_at(NOW_S - 656)
        await until(pilot, lambda: "PAST" in panel(app, "clock").plain)
        await until(pilot, lambda: "·" in panel(app, "chart").plain.splitlines()[-2])
        since_s, end_s = app.reading.view.window(NOW_S)
        assert since_s < NOW_S - 656 < end_s


async def test_notes_stand_on_the_time_axis_in_their_own_words() -> None:
    service = FakeService()
    service.events = (*make.events(), Event(9132, make.at(500), "note.added", "pruning off"))
    async with running(service, size=(200, 50)) as (app, pilot):
        await until(pilot, lambda: "◆pruning off" in panel(app, "chart").plain)
        assert "◆ pruning off" in panel(app, "events").plain


async def test_pause_freezes_what_is_drawn_and_readings_keep_arriving() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("space")
        await until(pilot, lambda: "PAUSED" in panel(app, "clock").plain)
        before = [panel(app, name).plain for name in ("verdict", "slots", "chart", "trends")]
        for step in range(1, 4):
            service.push(make.snapshot(seq=412 + step, at=make.at(-step), slots=()))
            await until(pilot, lambda step=step: app.reading.snapshot.seq == 412 + step)  # type: ignore[misc]
        await pilot.pause()
        after = [panel(app, name).plain for name in ("verdict", "slots", "chart", "trends")]
        assert after == before
        assert len(app.past.speed) > 900
        await pilot.press("space")
        await until(pilot, lambda: "PAUSED" not in panel(app, "clock").plain)
        assert "no request is running" in panel(app, "slots").plain


async def test_a_frozen_picture_still_tells_when_the_engine_or_the_service_fails() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("space")
        service.push(make.failed())
        await until(pilot, lambda: "the engine has failed" in panel(app, "clock").plain)
        assert "SERVING" in panel(app, "verdict").plain
        service.go_down()
        await until(pilot, lambda: "no service answers" in panel(app, "clock").plain)


async def test_a_paused_screen_still_acts() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("space", "X")
        await until(pilot, lambda: not isinstance(app.screen, MonitorScreen))
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("engine.stop", {})])
        assert "PAUSED" in panel(app, "clock").plain


@pytest.mark.parametrize("width", [80, 100, 120])
async def test_time_goes_back_in_a_frozen_picture_too(width: int) -> None:
    async with running(FakeService(), size=(width, 24)) as (app, pilot):
        await pilot.press("space", "left")
        await until(pilot, lambda: "PAST" in panel(app, "clock").plain)
        assert "PAUSED" in panel(app, "clock").plain


async def test_enter_opens_the_request_under_the_cursor_and_it_lives() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SlotDialog))
        await pilot.pause()
        said = screen_text(app)
        for words in ("req-7f3a-0127", "31,204", "29,956 (96 %)", "1,204", "qwen3-coder-30b"):
            assert words in said
        assert "by the engine itself, pass by pass: exact" in said
        assert "– sessions are not followed" in said
        first, *rest = make.four_slots()
        service.push(make.snapshot(slots=(replace(first, generated_tokens=1500), *rest)))
        await until(pilot, lambda: "1,500" in screen_text(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen))


async def test_a_request_that_ends_while_it_is_open_says_how() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SlotDialog))
        done = make.recent(
            request_id="req-7f3a-0127",
            prompt_tokens=31_204,
            generated_tokens=1311,
            ended_at=make.at(-1),
        )
        service.push(make.snapshot(at=make.at(-1), slots=(), recent=(done,)))
        await until(pilot, lambda: "ended at 14:07:32" in screen_text(app))
        said = " ".join(screen_text(app).split())
        assert "the model called a tool: the client has the turn" in said
        assert "1,311" in said
        assert "31,204" in said


async def test_a_finished_request_is_opened_with_the_mouse() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.click("#slots", offset=(12, 6))
        await pilot.pause()
        assert isinstance(app.screen, MonitorScreen)
        await pilot.click("#slots", offset=(12, 6))
        await until(pilot, lambda: isinstance(app.screen, SlotDialog))
        await pilot.pause()
        said = screen_text(app)
        assert "ended at" in said
        assert "20,480 tokens" in said
        assert "this console never saw it run" not in said


async def test_where_no_request_is_listed_enter_says_where_they_are() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: "Identity" in screen_text(app))
        app.action_command("slot.show")
        await until(pilot, lambda: "the overview lists them" in toasts(app))
        await pilot.press("1")
        await until(pilot, lambda: "pass/s × tok/pass" in screen_text(app))


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (3, "The history begins at 11:07:31, 3 h ago: nothing was recorded before. It keeps 24 h."),
        (24, "Nothing older is kept: the history reaches 24 h back."),
    ],
)
async def test_at_its_begin_going_back_says_whether_more_was_recorded(
    hours: int, said: str
) -> None:
    service = FakeService()
    service.history = day(hours)
    async with running(service) as (app, pilot):
        for _ in range(4):
            await pilot.press("]")
        await until(pilot, lambda: app.past.timeline.version > 0)
        await settled(app, pilot)
        assert "history" not in toasts(app)
        for _ in range(9):
            await pilot.press("left")
        await until(pilot, lambda: said in " ".join(toasts(app).split()))
