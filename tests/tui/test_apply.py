"""The key that lets an edited profile be in force: its changes, the question, what is applied."""

from __future__ import annotations

from dataclasses import replace

from a40console.model.event import Finding
from a40console.tui.screens.apply import ApplyDialog
from tests import make_snapshot as make
from tests.tui.driving import running, screen_text, toasts, until
from tests.tui.fake_service import FakeService

DIFF = make.profile_diff()
KEY = "d"


async def test_the_changes_are_shown_asked_and_applied() -> None:
    service = FakeService(make.snapshot())
    async with running(service) as (app, pilot):
        await pilot.press(KEY)
        await until(pilot, lambda: isinstance(app.screen, ApplyDialog))
        await pilot.pause()
        said = screen_text(app)
        for words in (
            "Takes a restart:",
            "max_model_len: 262144 → 131072",
            "Taken over while it runs:",
            "usd_per_hour: not set → 0.44",
            "Restart the engine with it?",
        ):
            assert words in said
        assert service.commands == []
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("engine.apply", {"changes": DIFF.id})])


async def test_what_takes_no_restart_says_so_and_a_no_leaves_it() -> None:
    service = FakeService(make.snapshot())
    service.changes = replace(DIFF, changes=DIFF.changes[1:])
    async with running(service) as (app, pilot):
        await pilot.press(KEY)
        await until(pilot, lambda: isinstance(app.screen, ApplyDialog))
        await pilot.pause()
        said = screen_text(app)
        assert "Nothing restarts." in said
        assert "Takes a restart" not in said
        await pilot.press("n")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert service.commands == []


async def test_a_profile_as_its_file_says_is_told() -> None:
    service = FakeService(make.snapshot())
    service.changes = replace(DIFF, id="", changes=())
    async with running(service) as (app, pilot):
        await pilot.press(KEY)
        await until(pilot, lambda: "mine runs as its file says." in toasts(app))
        assert len(app.screen_stack) == 1


async def test_the_hint_stands_where_there_is_something_to_apply() -> None:
    service = FakeService(make.snapshot())
    async with running(service) as (app, pilot):
        assert "d apply" not in screen_text(app)
        edited = Finding(
            code="profile-edited",
            severity="info",
            title="1 setting of mine runs otherwise than its file says",
            evidence="usd_per_hour: not set → 0.44",
            remedy="",
            since="2026-11-30T05:00:00.000Z",
            command="engine.apply",
        )
        service.push(make.snapshot(findings=(edited,)))
        await until(pilot, lambda: "d apply" in screen_text(app))
