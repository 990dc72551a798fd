"""Dialogs say what is true as long as they are open, and of a simulated engine that it is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.events import Key

from a40console.model.engine import EngineState
from a40console.model.snapshot import Snapshot
from a40console.tui.app import ConsoleApp
from a40console.tui.screens.dialog import ConfirmDialog, Fitted, PickDialog, TextDialog
from tests import make_snapshot as make
from tests.tui.driving import running, until
from tests.tui.fake_service import FakeService

SIMULATED = {"engine": make.engine(profile="sim-a40"), "simulated": True}


async def test_leaving_a_simulated_engine_costs_nothing_and_says_so() -> None:
    async with running(FakeService(make.snapshot(**SIMULATED))) as (app, pilot):
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        said = said_in(app)
        assert "SIMULATED engine sim-a40 keep running" in said
        assert "Nothing is paid for it: $0.454 an hour is SIMULATED." in said
        assert "It costs" not in said


@pytest.mark.parametrize("key", ["X", "R"])
async def test_a_question_about_a_simulated_engine_calls_it_so(key: str) -> None:
    async with running(FakeService(make.snapshot(**SIMULATED))) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        assert "Profile: sim-a40, SIMULATED" in said_in(app)


async def test_the_answer_of_a_simulated_engine_is_called_invented() -> None:
    async with running(FakeService(make.snapshot(**SIMULATED))) as (app, pilot):
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        assert "SIMULATED: the answer is invented." in said_in(app)


async def test_a_simulated_profiles_price_is_called_so() -> None:
    service = FakeService()
    kind = replace(service.profiles[0], kind="sim", name="sim-a40", usd_per_hour=0.44)
    service.profiles = (kind, *service.profiles[1:])
    async with running(service) as (app, pilot):
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        assert "SIMULATED $0.44/h" in said_in(app)


async def test_two_keys_at_once_answer_a_dialog_once() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        dialog = app.screen
        app.post_message(Key("2", "2"))
        app.post_message(Key("2", "2"))
        await until(pilot, lambda: dialog not in app.screen_stack)
        await pilot.pause()
        assert app.is_running


async def test_a_second_answer_changes_nothing() -> None:
    async with running(FakeService()) as (app, pilot):
        await pilot.press("X")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        dialog = app.screen
        dialog.dismiss(False)
        dialog.dismiss(False)
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.is_running


def said_in(app: ConsoleApp) -> str:
    """The words of the dialog in front."""
    lines = app.screen.query_one("#text", Fitted).lines
    return " ".join("".join(span.text for span in entry).strip() for entry in lines)


def _busier(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, requests=make.requests(running=7))


def _gone(snapshot: Snapshot) -> Snapshot:
    return make.without_engine(EngineState.STOPPED)


@pytest.mark.parametrize(
    ("key", "change", "says"),
    [
        ("q", _busier, "keep running with 7 requests"),
        ("q", _gone, "The service keeps running; "),
        ("X", _busier, "7 requests running now."),
        ("R", _busier, "7 requests running now."),
    ],
)
async def test_an_open_question_follows_what_happens(
    key: str, change: Callable[[Snapshot], Snapshot], says: str
) -> None:
    service = FakeService(make.snapshot())
    async with running(service) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        assert says not in said_in(app)
        service.push(change(make.snapshot()))
        await until(pilot, lambda: says in said_in(app))


async def test_an_open_question_says_when_no_service_answers_any_more() -> None:
    service = FakeService(make.snapshot())
    async with running(service) as (app, pilot):
        await pilot.press("X")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        service.go_down()
        await until(pilot, lambda: "what runs now is not known" in said_in(app))
