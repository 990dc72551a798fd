"""Before an engine or a service is stopped: which runs the machine would take with it."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from a40console.model.run_copies import NotCopied
from a40console.tui import actions
from a40console.tui.screens.dialog import ConfirmDialog, PickDialog
from tests.tui.driving import dialog, running
from tests.tui.fake_runs import DONE, SWEEP
from tests.tui.fake_service import FakeService

PULL = "a40console runs pull --ssh root@203.0.113.7:22022"


def on_a_pod(*, passing: bool = True) -> FakeService:
    service = FakeService()
    service.runs.left = NotCopied(ids=(DONE, SWEEP), passing=passing, pull=PULL)
    return service


@pytest.mark.parametrize("command", ["engine.stop", "service.stop"])
async def test_the_question_names_the_runs_that_nobody_else_has(command: str) -> None:
    async with running(on_a_pod()) as (app, pilot):
        app.action_command(command)
        if command == "service.stop":
            await dialog(app, pilot, PickDialog)
            await pilot.press("1")
        said = " ".join((await dialog(app, pilot, ConfirmDialog)).split())
        assert f"2 runs are on this machine alone, and lost with it: {DONE}, {SWEEP}." in said
        assert f"From your own machine: {PULL}" in said


async def test_a_machine_that_stays_and_a_restart_say_nothing_of_runs() -> None:
    for service, command in (
        (on_a_pod(passing=False), "engine.stop"),
        (on_a_pod(), "engine.restart"),
    ):
        async with running(service) as (app, pilot):
            app.action_command(command)
            assert "machine alone" not in await dialog(app, pilot, ConfirmDialog)


async def test_a_service_that_stands_still_keeps_nobody_from_stopping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(actions, "_RUNS_LEFT_WAIT_S", 0.1)
    service = on_a_pod()
    answer = service.answer

    async def late(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/runs/not-copied":
            await asyncio.sleep(60)
        return await answer(request)

    monkeypatch.setattr(service, "answer", late)
    async with running(service) as (app, pilot):
        await pilot.press("X")
        assert "machine alone" not in await dialog(app, pilot, ConfirmDialog)
