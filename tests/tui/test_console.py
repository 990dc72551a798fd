"""The console end to end without a terminal: what each key does, and what the screen then says."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import pytest
from textual.strip import Strip
from textual.widgets import Button

from a40console.config import ConsoleSettings, Settings
from a40console.model.command import COMMANDS
from a40console.model.control import CommandResult, Trouble
from a40console.model.engine import EngineState
from a40console.model.event import Event
from a40console.tui.actions import HANDLERS
from a40console.tui.app import ConsoleApp
from a40console.tui.screens.dialog import ConfirmDialog, Dialog, PickDialog, TextDialog
from a40console.tui.screens.digest import DigestDialog
from a40console.tui.screens.environment import EnvironmentDialog
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.terminal_app import Surroundings
from a40console.tui.widgets.lines import Lines, Panel
from tests import make_snapshot as make
from tests.tui.driving import Driven, running, screen_text, toasts, until
from tests.tui.fake_service import FakeService


async def dialog(app: ConsoleApp, pilot: Driven, kind: type[Dialog[Any]]) -> str:
    """The text of the dialog that has opened."""
    await until(pilot, lambda: isinstance(app.screen, kind))
    await pilot.pause()
    return screen_text(app)


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


@pytest.mark.parametrize(
    ("key", "command", "snapshot"),
    [
        ("X", "engine.stop", make.snapshot()),
        ("R", "engine.restart", make.snapshot()),
        ("K", "engine.clean", make.orphaned()),
    ],
)
async def test_what_cuts_requests_asks_first(key: str, command: str, snapshot: object) -> None:
    service = FakeService(snapshot)  # type: ignore[arg-type]
    async with running(service) as (app, pilot):
        for refusal in ("n", "escape", "enter"):
            await pilot.press(key)
            await dialog(app, pilot, ConfirmDialog)
            await pilot.press(refusal)
            await until(pilot, lambda: not isinstance(app.screen, ConfirmDialog))
        assert service.commands == []
        await pilot.press(key)
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [(command, {})])
        await until(pilot, lambda: "Done." in toasts(app))


async def test_a_question_says_what_is_running() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("X")
        said = await dialog(app, pilot, ConfirmDialog)
        assert "Stop the engine? Running requests are cut." in said
        assert "3 requests running now." in said


async def test_an_engine_is_started_with_one_more_key() -> None:
    service = FakeService(make.without_engine(EngineState.ABSENT))
    async with running(service) as (app, pilot):
        await pilot.press("S")
        said = await dialog(app, pilot, PickDialog)
        assert "not ready: vLLM is not installed" in said
        await pilot.press("2")
        await until(pilot, lambda: "vLLM is not installed" in toasts(app))
        assert service.commands == []
        await pilot.press("3")
        await until(
            pilot, lambda: service.commands == [("engine.start", {"profile": "smollm2-135m"})]
        )


async def test_the_picker_is_worked_with_arrows_too() -> None:
    service = FakeService(make.without_engine(EngineState.ABSENT))
    async with running(service) as (app, pilot):
        await pilot.press("S")
        await dialog(app, pilot, PickDialog)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: bool(service.commands))
        assert service.commands[0][1] == {"profile": "smollm2-135m"}


async def test_another_profile_is_chosen_then_confirmed() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("m")
        assert "(running)" in await dialog(app, pilot, PickDialog)
        await pilot.press("3")
        said = await dialog(app, pilot, ConfirmDialog)
        assert "From qwen3-coder-30b to smollm2-135m." in said
        assert "Profile:" not in said
        told = " ".join(said.split())
        assert "Clients wait ≈ 42 s for smollm2-135m to start (the median of 3 starts)." in told
        assert "80,000 tokens, ≈ 20 s at the 4,000 tok/s measured here." in told
        assert "clients that believe in more: claude-code 7f3a (250,000)." in told
        await pilot.press("y")
        await until(
            pilot, lambda: service.commands == [("engine.switch", {"profile": "smollm2-135m"})]
        )


async def test_speculation_is_turned_to_its_other_side() -> None:
    service = FakeService(make.snapshot(speculation=make.speculation(control="live")))
    async with running(service) as (app, pilot):
        await pilot.press("s")
        said = await dialog(app, pilot, ConfirmDialog)
        assert "Speculation is turned off." in said
        assert "Live, from the next pass on: no restart" in " ".join(said.split())
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("engine.speculation", {"mode": "off"})])


async def test_a_restart_for_speculation_says_what_the_last_one_took() -> None:
    service = FakeService(make.snapshot(speculation=make.speculation(control="restart")))
    serving = service.starts[0]
    service.starts = (replace(serving, profile="qwen3-coder-30b", ready_after_s=73.2),)
    async with running(service) as (app, pilot):
        await pilot.press("s")
        said = " ".join((await dialog(app, pilot, ConfirmDialog)).split())
        assert "By restart, with clients waiting: the last start took 73 s." in said
        assert "Live" not in said
        await pilot.press("escape")
        assert service.commands == []


async def test_a_test_request_shows_its_answer() -> None:
    service = FakeService()
    service.results["request.test"] = CommandResult(
        command="request.test",
        id="id-test",
        state="done",
        result={"answer": "Paris [bold]is[/bold] it.", "tok/s": "412"},
    )
    async with running(service) as (app, pilot):
        await pilot.press("t")
        said = await dialog(app, pilot, TextDialog)
        assert service.commands == [("request.test", {})]
        assert "Paris [bold]is[/bold] it." in said
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen))


async def test_a_long_command_is_followed_to_its_end() -> None:
    service = FakeService()
    service.results["engine.restart"] = CommandResult(
        command="engine.restart", id="id-long", state="running"
    )
    async with running(service) as (app, pilot):
        await pilot.press("R")
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: "Under way" in toasts(app))
        trouble = Trouble(
            message="The engine did not start",
            evidence="exit 1 after 3.1 s [/weights]",
            remedy="Read its log: press 3.",
            exit_code=4,
        )
        service.finish(
            "id-long",
            CommandResult(command="engine.restart", id="id-long", state="failed", trouble=trouble),
        )
        await until(pilot, lambda: "The engine did not start" in toasts(app))
        assert "exit 1 after 3.1 s [/weights]" in toasts(app)
        assert "Read its log: press 3." in toasts(app)


async def test_an_action_has_one_toast_that_ends_as_its_outcome() -> None:
    service = FakeService()
    service.results["engine.restart"] = CommandResult(
        command="engine.restart", id="id-long", state="running"
    )
    async with running(service) as (app, pilot):
        await pilot.press("R")
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: toasts(app) == "Restart engine: Under way.")
        served = Event(9132, make.at(), "engine.serving", "qwen3-coder-30b serves, 77 s later")
        service.finish(
            "id-long",
            CommandResult(
                command="engine.restart",
                id="id-long",
                state="done",
                result={"profile": "qwen3-coder-30b"},
                events=(Event(9131, make.at(), "engine.starting", "it starts"), served),
            ),
        )
        await until(pilot, lambda: "Done." in toasts(app))
        assert toasts(app) == "Restart engine: Done.\nqwen3-coder-30b serves, 77 s later"


async def test_what_ends_at_once_is_said_once() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("X")
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: "Done." in toasts(app))
        assert toasts(app) == "Stop engine: Done."


async def test_the_service_stops_with_the_engine_where_that_is_chosen() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        app.action_command("service.stop")
        said = await dialog(app, pilot, PickDialog)
        assert "Service only" in said
        assert "Service and engine" in said
        await pilot.press("2")
        assert "The engine too." in await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("service.stop", {"engine": "yes"})])


async def test_nothing_is_cleaned_up_where_nothing_is_left_over() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("K")
        await until(pilot, lambda: "Not now: nothing of an engine is left over." in toasts(app))
        assert service.commands == []


async def test_a_refusal_is_a_toast_with_its_remedy() -> None:
    service = FakeService()
    service.refusals["engine.stop"] = Trouble(
        message="A start is under way", evidence="since 14:07:02", remedy="Wait for it."
    )
    async with running(service) as (app, pilot):
        await pilot.press("X")
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: "A start is under way" in toasts(app))
        assert "Wait for it." in toasts(app)


async def test_a_key_that_does_nothing_now_says_why() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("S")
        await until(pilot, lambda: "Not now: the engine is serving." in toasts(app))
        assert service.commands == []


async def test_the_token_is_covered_until_it_is_asked_for() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("e")
        said = await dialog(app, pilot, EnvironmentDialog)
        assert "export ANTHROPIC_BASE_URL='http://127.0.0.1:8080'" in said
        assert "a40-secret-token" not in said
        await pilot.press("r")
        await until(pilot, lambda: "a40-secret-token" in screen_text(app))
        await pilot.press("r")
        await until(pilot, lambda: "a40-secret-token" not in screen_text(app))


async def test_the_environment_is_copied_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    async with running(FakeService()) as (app, pilot):
        monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
        await pilot.press("e")
        await dialog(app, pilot, EnvironmentDialog)
        await pilot.press("c")
        await until(pilot, lambda: bool(copied))
        assert "export ANTHROPIC_AUTH_TOKEN='a40-secret-token'\n" in copied[0]


async def test_new_events_are_counted_until_they_are_read() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        assert "new event" not in screen_text(app)
        service.push(make.snapshot(events_last_id=9134))
        await until(pilot, lambda: "3 new events [u]" in screen_text(app))
        await pilot.press("u")
        assert "Since you looked" in await dialog(app, pilot, DigestDialog)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen))
        assert "new event" not in screen_text(app)


async def test_why_slow_gives_the_evidence_and_what_was_ruled_out() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "Could not be judged" in screen_text(app))
        said = screen_text(app)
        assert "1 prompt in prefill · for 2.2 s" in said
        assert "throttled 0 ms/s, below 10; 3.1 of 9.0 vCPU used" in said
        await pilot.press("escape")
        await until(pilot, lambda: app.current_mode == "overview")
        await pilot.press("2")
        await pilot.press("w")
        await until(pilot, lambda: app.current_mode == "why")
        await pilot.press("w")
        await until(pilot, lambda: app.current_mode == "engine")


async def test_help_lists_the_keys_and_the_figures() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("question_mark")
        said = await dialog(app, pilot, TextDialog)
        assert "Start engine" in said
        assert "pass/s × tok/pass" in said


async def test_leaving_says_what_keeps_running_and_what_it_costs() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("q")
        said = await dialog(app, pilot, ConfirmDialog)
        assert "The service and the engine qwen3-coder-30b keep running with 3 requests." in said
        assert "It costs $0.454 an hour until it is stopped." in said
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen))
        assert app.is_running
        await pilot.press("q")
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: app.return_code == 0)


async def test_leaving_a_demo_says_that_it_ends_and_costs_nothing() -> None:
    around = Surroundings(demo=True)
    app = ConsoleApp(FakeService().client, Settings(), surroundings=around)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.reading.link.state == "live")
        await pilot.press("q")
        said = " ".join((await dialog(app, pilot, ConfirmDialog)).split())
        assert "The demo ends with this screen." in said
        assert "Nothing is paid: the price and the dollars shown are SIMULATED." in said
        assert "keep running" not in said


@pytest.mark.parametrize("width", [80, 120])
async def test_the_profile_that_runs_is_marked_on_any_width(width: int) -> None:
    service = FakeService()
    long = replace(service.profiles[0], title="a title that no terminal is wide enough for " * 3)
    service.profiles = (long, *service.profiles[1:])
    async with running(service, size=(width, 24)) as (app, pilot):
        await pilot.press("m")
        assert "(running)" in await dialog(app, pilot, PickDialog)
        rows = app.screen.query_one("#text", Lines).lines
        assert "(running)" in "".join(span.text for span in rows[0])[: width - 10]


@pytest.mark.parametrize(("ran", "chosen"), [("smollm2-135m", None), (None, "smollm2-135m")])
async def test_start_begins_at_the_profile_that_ran_last_or_is_chosen(
    ran: str | None, chosen: str | None
) -> None:
    service = FakeService(make.failed())
    last = service.starts[0]
    service.starts = (replace(last, profile=ran), *service.starts[1:]) if ran else ()
    async with running(service, settings=Settings(profile=chosen)) as (app, pilot):
        await pilot.press("S")
        said = await dialog(app, pilot, PickDialog)
        assert re.search(r"▸ \d  smollm2-135m", said)
        await pilot.press("enter")
        await until(pilot, lambda: bool(service.commands))
        assert service.commands[0][1] == {"profile": "smollm2-135m"}


async def test_leaving_tells_of_processes_that_an_engine_left() -> None:
    async with running(FakeService(make.orphaned())) as (app, pilot):
        await pilot.press("q")
        said = " ".join((await dialog(app, pilot, ConfirmDialog)).split())
        assert "so do processes that an engine left behind" in said
        assert "Stay and press K to end them" in said


async def test_leaving_says_that_the_engine_failed() -> None:
    async with running(FakeService(make.failed())) as (app, pilot):
        await pilot.press("q")
        said = await dialog(app, pilot, ConfirmDialog)
        assert "The service keeps running; the engine has failed." in said


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


@pytest.mark.parametrize("key", ["2", "3", "4", "5", "w"])
async def test_leaving_while_a_view_still_reads_is_no_crash(key: str) -> None:
    """Its reader may come back to a screen that is being taken down."""
    for part in range(6):
        async with running(FakeService()) as (_, pilot):
            await pilot.press(key)
            await asyncio.sleep(0.006 * part)
