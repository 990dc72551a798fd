"""The key that mends a failed start: the diff, the question, the change, and the start after it."""

from __future__ import annotations

from dataclasses import replace

from a40console.model.control import Trouble
from a40console.model.engine import EngineState
from a40console.model.event import Finding
from a40console.model.fix import FixOffer
from a40console.tui.screens.dialog import ConfirmDialog
from a40console.tui.screens.fix import FixDialog
from tests import make_snapshot as make
from tests.tui.driving import running, screen_text, toasts, until
from tests.tui.fake_service import FakeService

OFFER = make.fix_offer()


def failed_service(offer: FixOffer | None = OFFER) -> FakeService:
    service = FakeService(make.without_engine(EngineState.FAILED))
    service.fix = offer
    return service


async def test_the_change_is_shown_asked_made_and_started() -> None:
    service = failed_service()
    async with running(service) as (app, pilot):
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, FixDialog))
        await pilot.pause()
        said = screen_text(app)
        for words in (OFFER.diff[0], OFFER.diff[1], OFFER.evidence[:40], "Written in place"):
            assert words in said
        assert "Change the profile mine so?" in said
        assert service.commands == []
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("profile.fix", {"fix": OFFER.id})])
        await until(pilot, lambda: type(app.screen) is ConfirmDialog)
        await pilot.pause()
        assert "Start mine now?" in screen_text(app)
        await pilot.press("y")
        await until(pilot, lambda: service.commands[1:] == [("engine.start", {"profile": "mine"})])


async def test_the_key_and_the_button_show_where_a_fix_is_offered() -> None:
    service = failed_service()
    found = Finding(
        code="engine-failed",
        severity="error",
        title="The engine failed",
        evidence=OFFER.evidence,
        since=make.at(),
        remedy=f"This change of the profile mends it: {OFFER.change}.",
        command="profile.fix",
    )
    service.snapshot = replace(service.snapshot, findings=(found,))
    async with running(service) as (app, pilot):
        await until(pilot, lambda: "P fix profile" in screen_text(app))
        await pilot.press("2")
        await until(pilot, lambda: bool(app.screen.query("#profile-fix")))
        await until(pilot, lambda: app.screen.query_one("#profile-fix").display)
        await pilot.click("#profile-fix")
        await until(pilot, lambda: isinstance(app.screen, FixDialog))


async def test_neither_shows_where_none_is_offered() -> None:
    async with running(FakeService()) as (app, pilot):
        assert "fix profile" not in screen_text(app)
        await pilot.press("2")
        await until(pilot, lambda: bool(app.screen.query("#profile-fix")))
        await until(pilot, lambda: not app.screen.query_one("#profile-fix").display)


async def test_a_no_leaves_everything_as_it_is() -> None:
    service = failed_service()
    async with running(service) as (app, pilot):
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, FixDialog))
        await pilot.press("n")
        await until(pilot, lambda: len(app.screen_stack) == 1)
        assert service.commands == []


async def test_without_an_offer_the_reason_is_said() -> None:
    service = failed_service(None)
    async with running(service) as (app, pilot):
        await pilot.press("P")
        await until(pilot, lambda: "No start has failed of late" in toasts(app))
        assert len(app.screen_stack) == 1


async def test_a_change_that_fails_starts_nothing() -> None:
    service = failed_service()
    service.refusals["profile.fix"] = Trouble(
        message="What would be changed is no longer what was shown", exit_code=5
    )
    async with running(service) as (app, pilot):
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, FixDialog))
        await pilot.press("y")
        await until(pilot, lambda: "no longer what was shown" in toasts(app))
        assert len(app.screen_stack) == 1
        assert [name for name, _ in service.commands if name != "profile.fix"] == []
