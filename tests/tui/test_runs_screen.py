"""The runs screen: history, a run under way, what was found, two side by side, and what keys do."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.config import Settings
from a40console.model.run import RunTarget
from a40console.tui.app import ConsoleApp
from a40console.tui.ink import width_of
from a40console.tui.screens.dialog import ConfirmDialog, PickDialog, TextDialog
from a40console.tui.screens.note import NoteDialog
from a40console.tui.screens.runs import RunsScreen
from a40console.tui.terminal_app import Surroundings
from a40console.tui.widgets.lines import Lines
from tests import make_runs as make
from tests.tui.driving import Driven, dialog, running, screen_text, toasts, until
from tests.tui.fake_runs import BROKEN, DONE, REFERENCE, RUNNING, SIMULATED, records
from tests.tui.fake_service import FakeService

SIZES = [(80, 24), (120, 40), (200, 50)]


def painted(app: ConsoleApp, name: str) -> str:
    return app.screen.query_one(name, Lines).plain


async def opened(app: ConsoleApp, pilot: Driven) -> None:
    await pilot.press("7")
    await until(pilot, lambda: "Time of each request" in screen_text(app))
    await pilot.pause()


async def at(app: ConsoleApp, pilot: Driven, run_id: str) -> None:
    """The cursor on a run."""
    places = [run.id for run in make.several()]
    await pilot.press("home", *["down"] * places.index(run_id))
    screen = app.screen
    assert isinstance(screen, RunsScreen)
    await until(pilot, lambda: screen.chosen is not None and screen.chosen.id == run_id)
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_kind_of_run_fits(size: tuple[int, int]) -> None:
    async with running(FakeService(), size=size) as (app, pilot):
        await opened(app, pilot)
        for run in make.several():
            await at(app, pilot, run.id)
            assert app.screen.query_one("#hints", Lines).region.bottom == size[1]
            for panel in app.screen.query(Lines):
                assert all(width_of(row) <= size[0] for row in panel.lines), panel.id


async def test_the_cursor_begins_on_the_run_that_is_under_way() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        assert RUNNING in painted(app, "#heading")
        told = painted(app, "#detail")
        assert re.search(r"33 %.*20 m left.*cc-clear  turn 40 of 60", told)
        assert re.search(r"a cc-auto +58 +0 ", told)
        assert re.search(r"b cc-clear +38 +1 ", told)
        assert "HTTP 500: the engine said no" in told
        assert "foreign-traffic" in told


async def test_a_run_under_way_moves_as_its_records_come() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        service.runs.records[RUNNING] = records(50)
        await until(pilot, lambda: "turn 50 of 60" in painted(app, "#detail"))
        await pilot.press("p")
        await until(pilot, lambda: "Time to first token" in painted(app, "#detail"))


async def test_a_run_that_ends_shows_what_it_found() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        ended = replace(
            make.running(),
            state="done",
            ended_at="2026-11-29T14:30:00Z",
            result=make.compaction_result(),
        )
        service.runs.runs[1] = ended
        service.push(replace(service.snapshot, events_last_id=999, seq=service.snapshot.seq + 1))
        await until(pilot, lambda: "Verdict: block" in painted(app, "#detail"))
        assert "export CLAUDE_CODE_AUTO_COMPACT_WINDOW=96000" in painted(app, "#detail")


async def test_a_verdict_stands_with_its_interval_its_doubts_and_why_a_dash_is_one() -> None:
    async with running(FakeService(), size=(120, 40)) as (app, pilot):
        await opened(app, pilot)
        await at(app, pilot, DONE)
        told = painted(app, "#detail")
        assert "Ratio: 1.47 × [1.41, 1.52], 95 %, 3 repeats" in told
        assert "vcpu-throttled" in told
        assert "– recovers in (none): it never shrank" in told
        assert "≈1,204,000" in told


async def test_what_is_simulated_says_so_in_the_list_and_above_the_run() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        assert len(re.findall("SIMULATED", painted(app, "#list"))) == 1
        await at(app, pilot, REFERENCE)
        assert "REFERENCE" in painted(app, "#heading")
        assert "REFERENCE" in painted(app, "#list")
        await at(app, pilot, SIMULATED)
        assert "SIMULATED" in painted(app, "#heading")


async def test_those_that_wait_stand_in_the_order_in_which_they_will_run() -> None:
    service = FakeService()
    engine = replace(make.queued().spec, experiment="sweep", target=RunTarget())
    later = make.queued(id="20261130-150300-sweep-00f2", asked_at="2026-11-30T15:03:00Z")
    service.runs.runs.insert(0, replace(later, spec=engine))
    service.snapshot = replace(service.snapshot, simulated=True)
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        _, first, second, third = painted(app, "#list").splitlines()[:4]
        assert "protocol" in first
        assert "sweep" in second
        assert "running" in third
        # A run against a URL may be of any engine; ours is simulated, and so what waits for it.
        assert "SIMULATED" not in first
        assert "SIMULATED" in second


async def test_what_a_run_found_has_the_room_and_its_setting_the_rest() -> None:
    async with running(FakeService(), size=(120, 40)) as (app, pilot):
        await opened(app, pilot)
        assert "preset" not in painted(app, "#list")
        await pilot.resize_terminal(200, 50)
        await until(pilot, lambda: "preset" in painted(app, "#list"))


async def test_the_help_begins_with_the_keys_of_the_screen_in_front() -> None:
    async with running(FakeService(), size=(80, 24)) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("question_mark")
        text = await dialog(app, pilot, TextDialog)
        assert text.index("In the runs") < text.index("Hypotheses:") < text.index("Commands")
        assert text.count("In the runs") == 1


async def test_an_invalid_run_shows_the_reason_first() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        await at(app, pilot, BROKEN)
        assert "INVALID: the client was saturated" in painted(app, "#detail")


async def test_no_key_is_offered_for_a_plot_that_is_not_there() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        assert "p plot" in painted(app, "#about")
        await at(app, pilot, make.failed().id)
        await until(pilot, lambda: "CUDA out of memory" in painted(app, "#detail"))
        assert "p plot" not in painted(app, "#about")


async def test_enter_gives_the_run_the_screen_and_escape_takes_it_back() -> None:
    async with running(FakeService(), size=(80, 24)) as (app, pilot):
        await opened(app, pilot)
        await at(app, pilot, DONE)
        rows = app.screen.query_one("#scroll").size.height
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.query_one("#scroll").size.height > rows)
        await pilot.press("end")
        await until(pilot, lambda: app.screen.query_one("#scroll").scroll_y > 0)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen.query_one("#list").display)
        assert app.focused is app.screen.query_one("#list")


async def test_two_runs_stand_side_by_side_with_every_difference() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        await at(app, pilot, DONE)
        await pilot.press("v", "down", "down", "v")
        await until(pilot, lambda: "Not one effect" in painted(app, "#detail"))
        told = painted(app, "#detail")
        assert re.search(r"left  compaction.*right  sweep", told)
        assert re.search(r"block +wall s +500 +536  1\.07 × \[1\.04, 1\.10\]", told)
        assert re.search(r"cc-auto.*within noise", told)
        assert told.index("speculation ") < told.index("driver ") < told.index("seed ")
        await pilot.press("escape")
        await until(pilot, lambda: "Not one effect" not in painted(app, "#detail"))


async def test_a_run_under_way_is_not_compared() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("v")
        await until(pilot, lambda: "it has not ended" in toasts(app))


async def test_cancelling_asks_first() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("x")
        assert "as a partial run" in await dialog(app, pilot, ConfirmDialog)
        await pilot.press("n")
        await pilot.pause(0.1)
        assert service.commands == []
        await pilot.press("x")
        await dialog(app, pilot, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("run.cancel", {"id": RUNNING})])


async def test_a_note_and_a_reason_go_to_the_run_under_the_cursor() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await at(app, pilot, DONE)
        for key, text, sent in (
            ("n", "quiet", ("runs.note", {"id": DONE, "text": "quiet"})),
            ("i", "fan", ("runs.invalidate", {"id": DONE, "reason": "fan"})),
        ):
            await pilot.press(key)
            assert DONE in await dialog(app, pilot, NoteDialog)
            await pilot.press(*text, "enter")
            await until(pilot, lambda sent=sent: service.commands[-1:] == [sent])  # type: ignore[misc]
            await until(pilot, lambda: not app.asking)


async def test_an_export_says_where_the_file_is(tmp_path: Path) -> None:
    app = ConsoleApp(FakeService().client, Settings(), surroundings=Surroundings(state=tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.reading.link.state == "live")
        await opened(app, pilot)
        await at(app, pilot, DONE)
        await pilot.press("f")
        await dialog(app, pilot, PickDialog)
        await pilot.press("1")
        path = tmp_path / "exports" / f"{DONE}.html"
        await until(pilot, lambda: f"Saved to {path}" in toasts(app))
        assert path.read_text() == f"html of {DONE}"
        assert path.stat().st_mode & 0o777 == 0o600


async def test_a_frozen_picture_asks_for_no_records() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("space")
        await pilot.pause(0.3)
        asked = service.runs.asked.count(f"/v1/runs/{RUNNING}/records")
        await pilot.pause(1.3)
        assert service.runs.asked.count(f"/v1/runs/{RUNNING}/records") == asked
        await pilot.press("space")
        await until(
            pilot,
            lambda: service.runs.asked.count(f"/v1/runs/{RUNNING}/records") > asked,
        )


async def test_a_frozen_picture_shows_what_a_run_found_that_has_ended() -> None:
    async with running(FakeService(), size=(120, 40)) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("space")
        await at(app, pilot, DONE)
        await until(pilot, lambda: "it never shrank" in painted(app, "#detail"))


async def test_behind_another_view_nothing_is_asked() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("1")
        await pilot.pause(0.3)
        asked = len(service.runs.asked)
        await pilot.pause(1.3)
        assert len(service.runs.asked) == asked


async def test_without_runs_it_says_how_one_comes() -> None:
    service = FakeService()
    service.runs.runs = []
    async with running(service) as (app, pilot):
        await pilot.press("7")
        await until(pilot, lambda: "No experiment has been run yet" in screen_text(app))
        assert "b chooses one" in screen_text(app)


async def test_a_service_that_does_not_tell_is_told() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        service.runs.runs = [run for run in service.runs.runs if run.id != DONE]
        await at(app, pilot, DONE)
        await until(pilot, lambda: "No run is known as" in painted(app, "#detail"))
