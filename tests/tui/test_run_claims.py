"""Hypotheses on the runs screen: listed with what decided them, added and concluded by key."""

from __future__ import annotations

from a40console.tui.panels.texts import manual
from a40console.tui.screens.dialog import PickDialog
from a40console.tui.screens.note import NoteDialog
from a40console.tui.screens.run_claims import ClaimsDialog
from a40console.tui.widgets.lines import Lines
from tests.tui.driving import dialog, running, screen_text, until
from tests.tui.fake_runs import DONE, RUNNING, records
from tests.tui.fake_service import FakeService
from tests.tui.test_runs_screen import at, opened


async def test_each_claim_stands_with_its_state_why_and_the_runs_that_did_it() -> None:
    async with running(FakeService(), size=(80, 24)) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("h")
        told = " ".join((await dialog(app, pilot, ClaimsDialog)).split())
        assert "confirmed block compaction beats per-turn pruning" in told
        assert "since 11-30 12:00:00: 1.47 × [1.41, 1.52]" in told
        assert f"by {DONE}" in told
        assert "open n=12 is better" in told


async def test_a_claim_is_concluded_by_the_run_under_the_cursor() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await at(app, pilot, DONE)
        await pilot.press("h")
        await dialog(app, pilot, ClaimsDialog)
        await pilot.press("2")
        said = await dialog(app, pilot, PickDialog)
        assert "Refuted" in said
        assert "Open" not in said
        await pilot.press("2")
        assert DONE in await dialog(app, pilot, NoteDialog)
        await pilot.press(*"slower", "enter")
        asked = {"id": "2", "state": "refuted", "runs": DONE, "why": "slower"}
        await until(pilot, lambda: service.commands == [("hypotheses.conclude", asked)])


async def test_a_run_that_has_not_ended_concludes_nothing() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("h")
        await dialog(app, pilot, ClaimsDialog)
        await pilot.press("1")
        await dialog(app, pilot, PickDialog)
        await pilot.press("enter")
        assert "No run is named" in await dialog(app, pilot, NoteDialog)
        await pilot.press("escape")
        await until(pilot, lambda: not app.asking)
        assert service.commands == []


async def test_a_claim_is_written_down_also_where_no_run_is() -> None:
    service = FakeService()
    service.runs.runs, service.runs.claims = [], ()
    async with running(service) as (app, pilot):
        await pilot.press("7")
        await until(pilot, lambda: "No experiment has been run yet" in screen_text(app))
        await pilot.press("h")
        assert "No hypothesis is written down" in await dialog(app, pilot, ClaimsDialog)
        await pilot.press("enter", "n")
        await dialog(app, pilot, NoteDialog)
        await pilot.press(*"fast", "enter")
        await until(pilot, lambda: service.commands == [("hypotheses.add", {"text": "fast"})])


async def test_the_help_names_the_key() -> None:
    async with running(FakeService()) as (app, _):
        rows = ["".join(span.text for span in row) for row in manual(app.keys, 80)]
        assert any(row.split()[:2] == ["h", "Hypotheses:"] for row in rows)


async def test_a_claim_that_another_writes_down_comes_while_they_are_listed() -> None:
    service = FakeService()
    told, service.runs.claims = service.runs.claims, ()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("h")
        assert "No hypothesis is written down" in await dialog(app, pilot, ClaimsDialog)
        service.runs.claims = told[1:]
        await until(pilot, lambda: "n=12 is better" in screen_text(app))
        await pilot.press("down")
        service.runs.claims = told
        await until(pilot, lambda: "beats per-turn pruning" in screen_text(app))
        await pilot.press("enter")
        assert "Retracted" in await dialog(app, pilot, PickDialog)
        await pilot.press("1")
        assert told[2].text.rstrip(".") in await dialog(app, pilot, NoteDialog)


async def test_the_list_behind_them_follows() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("h")
        await dialog(app, pilot, ClaimsDialog)
        service.runs.records[RUNNING] = records(50)
        behind = app.screen_stack[0].query_one("#detail", Lines)
        await until(pilot, lambda: "turn 50 of 60" in behind.plain)
