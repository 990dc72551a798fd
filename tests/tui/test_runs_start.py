"""A run before it starts: chosen, set, planned, asked about; nothing begins without that."""

from __future__ import annotations

import json

from a40console.model.codec import decode
from a40console.model.control import CommandResult
from a40console.model.figures import Missing
from a40console.model.run import RunSpec
from a40console.tui.app import ConsoleApp
from a40console.tui.screens.dialog import ConfirmDialog, PickDialog
from a40console.tui.screens.run_form import RunFormDialog
from tests import make_runs as make
from tests.tui.driving import Driven, dialog, running, screen_text, toasts, until
from tests.tui.fake_runs import QUEUED
from tests.tui.fake_service import FakeService


async def set_up(app: ConsoleApp, pilot: Driven, key: str = "c") -> None:
    await pilot.press(key)
    await until(pilot, lambda: isinstance(app.screen, RunFormDialog))
    await until(pilot, lambda: "takes ≈1 h 42 m" in screen_text(app))


async def test_compaction_is_one_key_from_the_overview_and_shows_its_cost_before() -> None:
    service = FakeService()
    async with running(service, size=(80, 24)) as (app, pilot):
        await set_up(app, pilot)
        told = screen_text(app)
        assert "costs ≈$0.748" in told
        assert "Session 7f3a9c52 is active" in told
        assert service.commands == []
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, RunFormDialog))
        assert app.current_mode == "runs"


async def test_a_window_that_shrinks_leaves_the_cursor_the_cost_and_the_keys_in_view() -> None:
    async with running(FakeService(), size=(200, 50)) as (app, pilot):
        await set_up(app, pilot)
        await pilot.press(*["down"] * 12)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "▸ note" in screen_text(app))
        told = screen_text(app)
        assert "takes ≈1 h 42 m" in told
        assert "esc cancel" in told


async def test_the_question_before_a_start_tells_time_and_dollars_in_a_sentence() -> None:
    async with running(FakeService(), size=(120, 40)) as (app, pilot):
        await set_up(app, pilot)
        await pilot.press("s")
        said = await dialog(app, pilot, ConfirmDialog)
        assert "It takes ≈1 h 42 m, costs ≈$0.748, 1,860 requests" in said


async def test_others_are_chosen_from_a_list() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("b")
        assert "Streams sweep" in await dialog(app, pilot, PickDialog)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, RunFormDialog))
        assert "where does that end?" in screen_text(app).replace("\n", " ")


async def test_what_is_set_is_planned_anew_and_started_after_a_yes() -> None:
    service = FakeService()
    service.results["run.start"] = CommandResult(
        command="run.start", id="id-1", state="done", result={"id": QUEUED}
    )
    async with running(service) as (app, pilot):
        await set_up(app, pilot)
        await pilot.press("left", "down", "down", "enter", *"20", "enter")
        await until(
            pilot,
            lambda: (
                service.runs.plans_asked[-1].preset == "quick"
                and service.runs.plans_asked[-1].parameters == {"turns": "20"}
            ),
        )
        await until(pilot, lambda: "2 arms: per-turn, block" in screen_text(app))
        await pilot.press("s")
        assert "Session 7f3a9c52 is active" in await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: bool(service.commands))
        name, arguments = service.commands[0]
        assert name == "run.start"
        spec = decode(RunSpec, json.loads(arguments["spec"]))
        assert (spec.experiment, spec.preset, spec.parameters) == (
            "compaction",
            "quick",
            {"turns": "20"},
        )


async def test_what_is_refused_does_not_start_and_says_why() -> None:
    service = FakeService()
    service.runs.plan = make.plan(refusal="a run of 900 turns does not fit the window")
    async with running(service) as (app, pilot):
        await set_up(app, pilot)
        assert "does not fit the window" in screen_text(app)
        await pilot.press("s")
        await until(pilot, lambda: "does not fit the window" in toasts(app))
        assert isinstance(app.screen, RunFormDialog)
        assert service.commands == []


async def test_an_impossible_value_is_said_in_its_row_and_not_asked_about() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await set_up(app, pilot)
        asked = len(service.runs.plans_asked)
        await pilot.press("down", "down", "enter", *"9999", "enter")
        await until(pilot, lambda: "turns is at most 400" in screen_text(app))
        await pilot.press("s")
        await until(pilot, lambda: "turns is at most 400" in toasts(app))
        assert len(service.runs.plans_asked) == asked


async def test_a_figure_that_is_not_known_says_why() -> None:
    service = FakeService()
    service.runs.plan = make.plan(usd=Missing("the price is not known"))
    async with running(service) as (app, pilot):
        await set_up(app, pilot)
        assert "costs –" in screen_text(app)
        assert "the price is not known" in screen_text(app)


async def test_the_key_of_an_address_is_covered_and_goes_to_the_service_alone() -> None:
    service = FakeService()
    service.runs.plan = make.plan(intrusion="nothing", consequences=())
    async with running(service) as (app, pilot):
        await set_up(app, pilot)
        form = app.screen
        assert isinstance(form, RunFormDialog)
        await pilot.press(*["down"] * 5, "right", "right", "down", "enter")
        await pilot.press(*"http://h:1", "enter", "down", "down", "down", "enter")
        await pilot.press(*"sesame", "enter")
        await pilot.pause(0.5)
        assert "sesame" not in app.export_screenshot()
        assert "••••" in screen_text(app)
        await pilot.press("s")
        await until(pilot, lambda: bool(service.commands))
        assert service.commands[0][1]["key"] == "sesame"
        assert "sesame" not in service.commands[0][1]["spec"]
        assert '"http://h:1"' in service.commands[0][1]["spec"]
