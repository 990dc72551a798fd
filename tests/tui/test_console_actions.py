"""What each key of the console does, what is asked before, and what is said after."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from a40console.config import Settings
from a40console.model.control import CommandResult, Trouble
from a40console.model.engine import EngineState
from a40console.model.event import Event
from a40console.model.turning import TurningWay
from a40console.tui.app import ConsoleApp
from a40console.tui.screens.dialog import Choice, ConfirmDialog, Fitted, PickDialog, TextDialog
from a40console.tui.screens.digest import DigestDialog
from a40console.tui.screens.environment import EnvironmentDialog
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.terminal_app import Surroundings
from a40console.tui.widgets.lines import Lines
from tests import make_snapshot as make
from tests.tui.driving import dialog, running, screen_text, toasts, until
from tests.tui.fake_service import FakeService


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
        await pilot.press("3")
        await until(pilot, lambda: "vLLM is not installed" in toasts(app))
        assert service.commands == []
        await pilot.press("2")
        await until(
            pilot, lambda: service.commands == [("engine.start", {"profile": "smollm2-135m"})]
        )


async def test_the_picker_is_worked_with_arrows_too() -> None:
    service = FakeService(make.without_engine(EngineState.ABSENT))
    async with running(service) as (app, pilot):
        await pilot.press("S")
        await dialog(app, pilot, PickDialog)
        await pilot.press("down", "enter")
        await until(pilot, lambda: bool(service.commands))
        assert service.commands[0][1] == {"profile": "smollm2-135m"}


async def test_another_profile_is_chosen_then_confirmed() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("m")
        assert "(running)" in await dialog(app, pilot, PickDialog)
        await pilot.press("2")
        said = await dialog(app, pilot, ConfirmDialog)
        assert "From qwen3-coder-30b to smollm2-135m." in said
        assert "Profile:" not in said
        told = " ".join(said.split())
        assert "Clients wait ≈ 42 s for smollm2-135m to start (the median of 3 starts)." in told
        assert "80,000 tokens, ≈ 20 s at the 4,000 tok/s measured here (3 long prompts)." in told
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


async def test_a_restart_for_speculation_says_why_and_what_the_last_one_took() -> None:
    service = FakeService(make.snapshot(speculation=make.speculation(control="live")))
    service.way = TurningWay(
        how="restart", tokens=0, why="it is starting", last_start_s=73.2
    )  # what the service says counts, not what the snapshot said a second ago
    async with running(service) as (app, pilot):
        await pilot.press("s")
        said = " ".join((await dialog(app, pilot, ConfirmDialog)).split())
        assert (
            "By restart, with clients waiting (it is starting): the last start took 73 s." in said
        )
        assert "Live" not in said
        await pilot.press("escape")
        assert service.commands == []


async def test_a_change_of_speculation_that_would_be_refused_is_not_asked_about() -> None:
    service = FakeService(make.snapshot(speculation=make.speculation(control="live")))
    service.way = Trouble(message="Speculation is off already", exit_code=5)
    async with running(service) as (app, pilot):
        await pilot.press("s")
        await until(pilot, lambda: "Speculation is off already" in toasts(app))
        assert not isinstance(app.screen, ConfirmDialog)
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


def in_sight(app: ConsoleApp, title: str) -> bool:
    """Whether the cursor stands on that choice, and the list shows it."""
    scroll, text = app.screen.query_one("#scroll"), app.screen.query_one("#text", Fitted)
    drawn = enumerate(text.plain.splitlines())
    rows = [y for y, row in drawn if row.startswith("▸") and title in row]
    first = scroll.scroll_offset.y
    return [first <= y < first + scroll.size.height for y in rows] == [True]


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
@pytest.mark.parametrize("last", [0, 17, 25])
async def test_a_list_opens_with_its_cursor_in_sight(size: tuple[int, int], last: int) -> None:
    choices = [
        Choice(value=f"p{n}", title=f"profile {n}.", detail="what it is " * 12) for n in range(26)
    ]
    async with running(FakeService(), size=size) as (app, pilot):
        app.push_screen(PickDialog("Switch profile", choices, at=f"p{last}"))
        await dialog(app, pilot, PickDialog)
        await until(pilot, lambda: in_sight(app, f"profile {last}."))


async def test_the_cursor_stays_in_sight_where_the_screen_becomes_smaller() -> None:
    choices = [Choice(value=f"p{n}", title=f"profile {n}.") for n in range(26)]
    async with running(FakeService(), size=(120, 40)) as (app, pilot):
        app.push_screen(PickDialog("Switch profile", choices, at="p20"))
        await dialog(app, pilot, PickDialog)
        await pilot.resize_terminal(80, 16)
        await until(pilot, lambda: app.screen.query_one("#scroll").size.height < 16)
        await until(pilot, lambda: in_sight(app, "profile 20."))


async def test_profiles_that_can_run_stand_first() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("m")
        said = await dialog(app, pilot, PickDialog)
        names = ["qwen3-coder-30b", "smollm2-135m", "kimi-linear-48b"]
        assert sorted(names, key=said.index) == names


async def test_a_switch_that_would_be_refused_is_not_asked_about() -> None:
    service = FakeService()
    service.cost = Trouble(message="smollm2-135m cannot run here", exit_code=5)
    async with running(service) as (app, pilot):
        await pilot.press("m")
        await dialog(app, pilot, PickDialog)
        await pilot.press("2")
        await until(pilot, lambda: "smollm2-135m cannot run here" in toasts(app))
        assert not isinstance(app.screen, ConfirmDialog)
        assert service.commands == []
