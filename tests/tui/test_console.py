"""The console end to end without a terminal: what each key does, and what the screen then says."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from textual.widgets import Button

from a40console.config import ConsoleSettings, Settings
from a40console.model.command import COMMANDS
from a40console.tui.actions import HANDLERS
from a40console.tui.app import ConsoleApp
from a40console.tui.screens.dialog import ConfirmDialog, PickDialog, TextDialog
from a40console.tui.screens.environment import EnvironmentDialog
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.widgets.lines import Panel
from tests import make_snapshot as make
from tests.tui.driving import dialog, running, screen_text, toasts, until
from tests.tui.fake_service import FakeService


def verdict(app: ConsoleApp) -> str:
    screen = app.screen_stack[0]
    assert isinstance(screen, MonitorScreen)
    return screen.query_one("#verdict", Panel).plain


async def test_the_first_snapshot_is_drawn() -> None:
    async with running(FakeService()) as (app, _):
        assert "SERVING" in verdict(app)
        assert "7f3a" in screen_text(app)
        assert "live 14:07:31" in screen_text(app)


async def test_each_snapshot_replaces_the_one_before() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        service.push(make.idle())
        await until(pilot, lambda: "the client's own turn" in verdict(app))


async def test_before_the_first_snapshot_the_screen_says_so() -> None:
    service = FakeService()
    service.up = False
    async with running(service, live=False) as (app, pilot):
        await until(pilot, lambda: "never seen" in verdict(app))
        assert "NO SERVICE reconnecting" in verdict(app)
        service.up = True
        await until(pilot, lambda: "SERVING" in verdict(app))


async def test_a_lost_service_greys_the_last_figures_and_is_found_again() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        service.go_down()
        await until(pilot, lambda: "NO SERVICE reconnecting" in verdict(app))
        assert "SERVING" in verdict(app)
        slots = app.screen.query_one("#slots", Panel)
        assert {span.role for row in slots.lines for span in row} == {"muted"}
        await pilot.press("X")
        await until(pilot, lambda: "Not now: no service answers" in toasts(app))
        service.up = True
        await until(pilot, lambda: "NO SERVICE" not in verdict(app))
        assert len({span.role for row in slots.lines for span in row}) > 1


async def test_an_answer_cut_short_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    service = FakeService()
    whole = service._stream

    async def cut() -> object:
        async for line in whole():
            yield line[:200] + b"\n"

    monkeypatch.setattr(service, "_stream", cut)
    async with running(service, live=False) as (app, pilot):
        await until(pilot, lambda: app.reading.link.state == "lost")
        monkeypatch.setattr(service, "_stream", whole)
        await until(pilot, lambda: app.reading.link.state == "live")


async def test_another_protocol_is_explained() -> None:
    service = FakeService()
    service.protocol = 99
    async with running(service, live=False) as (app, pilot):
        await until(pilot, lambda: "speaks another protocol" in verdict(app))


@pytest.mark.parametrize(
    ("key", "said"), [("2", "Identity"), ("3", "following"), ("1", "pass/s × tok/pass")]
)
async def test_digits_change_the_view(key: str, said: str) -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: said in screen_text(app))
        assert "SERVING" in verdict(app)


async def test_a_view_that_comes_back_shows_what_arrived_meanwhile() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: "Identity" in screen_text(app))
        service.push(make.idle())
        await until(pilot, lambda: "0 decoding" in verdict(app))
        await pilot.press("1")
        await until(pilot, lambda: "no request is running" in screen_text(app))


async def test_ctrl_c_asks_rather_than_kills() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("ctrl+c")
        assert "Only this screen closes." in await dialog(app, pilot, ConfirmDialog)


async def test_the_palette_offers_every_command() -> None:
    async with running(FakeService()) as (app, _):
        titles = {entry.title for entry in app.get_system_commands(app.screen)}
        assert {command.title for command in COMMANDS} <= titles
        assert "Theme" in titles


async def test_a_command_without_a_key_runs_from_the_palette() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("ctrl+p")
        await pilot.press(*"stop service")
        await pilot.pause(0.3)
        await pilot.press("enter")
        await dialog(app, pilot, PickDialog)
        await pilot.press("1")
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("service.stop", {"engine": "no"})])


def test_every_command_is_done_here_or_by_the_service() -> None:
    for command in COMMANDS:
        here = command.id in HANDLERS or command.id.startswith(("view.", "time."))
        assert here or not command.local, command.id


async def test_buttons_do_what_their_keys_do() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("2")
        await until(pilot, lambda: "Identity" in screen_text(app))
        buttons = {button.name: button for button in app.screen.query(Button)}
        assert buttons["engine.start"].disabled
        assert "the engine is serving" in str(buttons["engine.start"].tooltip)
        assert not buttons["engine.stop"].disabled
        await pilot.click(buttons["engine.stop"])
        await dialog(app, pilot, ConfirmDialog)
        await pilot.click("#yes")
        await until(pilot, lambda: service.commands == [("engine.stop", {})])


async def test_tabs_can_be_clicked() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.click("#tabs", offset=(18, 0))
        await until(pilot, lambda: "Identity" in screen_text(app))


async def test_the_operators_keys_are_used_and_clashes_told_in_one_toast() -> None:
    settings = Settings(
        keys={"engine.stop": "f5", "engine.restrat": "f6", "request.test": "R", "service.stop": "Z"}
    )
    service = FakeService()
    async with running(service, settings=settings) as (app, pilot):
        told = toasts(app)
        assert told.count("Settings:") == 1
        assert "did you mean engine.restart?" in told
        assert "engine.restart lost the key 'R'" in told
        assert "f5 stop" in screen_text(app).lower()
        await pilot.press("X")
        await pilot.pause(0.1)
        assert isinstance(app.screen, MonitorScreen)
        await pilot.press("f5")
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("n")
        await pilot.press("R")
        await until(pilot, lambda: service.commands == [("request.test", {})])
        await pilot.press("escape", "Z")
        await dialog(app, pilot, PickDialog)


async def test_an_unknown_theme_falls_back_and_is_told() -> None:
    settings = Settings(console=ConsoleSettings(theme="noon"))
    async with running(FakeService(), settings=settings) as (app, _):
        assert app.theme == "midnight"
        assert "there is no theme 'noon'" in toasts(app)


async def test_another_theme_is_worn_at_once() -> None:
    async with running(FakeService()) as (app, pilot):
        app.theme = "textual-light"
        await pilot.pause(0.1)
        assert "SERVING" in verdict(app)
        strip = app.screen.query_one("#verdict", Panel).render_line(0)
        background = next(iter(strip)).style
        assert background is not None
        assert background.bgcolor is not None
        assert background.bgcolor.get_truecolor().red > 128


async def test_a_modal_does_not_stop_the_figures_below_it() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("X")
        await dialog(app, pilot, ConfirmDialog)
        service.push(make.idle())
        await until(pilot, lambda: "the client's own turn" in verdict(app))


async def test_snapshots_that_wait_are_replaced_by_the_newest() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        for seq in range(500, 600):
            service.push(replace(make.snapshot(), seq=seq))
        await until(pilot, lambda: app.reading.snapshot.seq == 599)


@pytest.mark.parametrize("size", [(40, 10), (40, 12), (60, 16), (99, 31), (120, 24), (300, 90)])
async def test_any_size_draws_every_view(size: tuple[int, int]) -> None:
    async with running(FakeService(), size=size) as (app, pilot):
        for key in ("2", "3", "1", "question_mark", "escape", "X", "n"):
            await pilot.press(key)
            await pilot.pause()
        assert isinstance(app.screen, MonitorScreen)


async def test_a_resize_changes_the_layout_at_once() -> None:
    async with running(FakeService(), size=(120, 40)) as (app, pilot):
        assert "pass/s × tok/pass" in screen_text(app)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "pass/s×tok" in screen_text(app))
        compact = app.screen.query_one("#compact", Panel)
        await until(pilot, lambda: "15 min, peak" in compact.plain)
        await pilot.resize_terminal(200, 50)
        await until(pilot, lambda: "counted by" in screen_text(app))


async def test_a_key_pressed_twice_opens_one_dialog() -> None:
    async with running(FakeService()) as (app, pilot):
        for key in ("e", "e", "m", "s"):
            app.simulate_key(key)
        await dialog(app, pilot, EnvironmentDialog)
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        await pilot.press("question_mark")
        await dialog(app, pilot, TextDialog)


@pytest.mark.parametrize("key", ["2", "3", "4", "5", "7", "w"])
async def test_leaving_while_a_view_still_reads_is_no_crash(key: str) -> None:
    """Its reader may come back to a screen that is being taken down."""
    for part in range(6):
        async with running(FakeService()) as (app, pilot):
            await pilot.press(key)
            await asyncio.sleep(0.006 * part)
        assert not app.is_running
