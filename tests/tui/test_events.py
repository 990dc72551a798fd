"""The events screen: the journal newest first, what mends an entry, filters, paging, read marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from a40console.model.control import CommandResult, Digest, HistoryPoint
from a40console.model.event import Event
from a40console.model.figures import Missing
from a40console.tui.app import ConsoleApp
from a40console.tui.format import unix_seconds
from a40console.tui.ink import width_of
from a40console.tui.journal import Filter
from a40console.tui.panels.event_strip import strip
from a40console.tui.screens.dialog import ConfirmDialog
from a40console.tui.screens.events import EventsScreen
from a40console.tui.screens.note import NoteDialog
from a40console.tui.widgets.event_list import EventList
from a40console.tui.widgets.lines import Lines
from tests import make_snapshot as make
from tests.tui import fake_past
from tests.tui.driving import Driven, running, screen_text, toasts, until
from tests.tui.fake_service import FakeService

KILLED = Event(
    9131,
    make.at(95),
    "engine.failed",
    "qwen3-coder-30b ended: out of memory",
    "error",
    {
        "evidence": "oom_kill 1 in memory.events",
        "remedy": "Rent a pod with more memory.",
        "command": "engine.restart",
    },
)
HOSTILE = "[bold]\x1b[2J\x07" + "e\u0301vil " * 400


def journal(number: int) -> list[Event]:
    """That many entries, five minutes apart, the last one a failure."""
    first = KILLED.id - number + 1
    return [
        Event(
            first + place, make.at(95 + 300 * (number - 1 - place)), "engine.serving", f"n{place}"
        )
        for place in range(number - 1)
    ] + [KILLED]


def service_with(events: Sequence[Event], read: int = 0) -> FakeService:
    service = FakeService(make.snapshot(events_last_id=events[-1].id if events else 0))
    service.events = tuple(events)
    service.read_mark = read or (events[-1].id if events else 0)
    return service


def panel(app: ConsoleApp, name: str) -> str:
    return app.screen.query_one(name, Lines).plain


def calm() -> Digest:
    """A time in which nothing happened and nobody asked anything."""
    quiet = fake_past.digest()
    quiet = replace(quiet, starts=(), ends=(), findings=(), notes=(), warnings=0, errors=0)
    return replace(quiet, requests_finished=0)


async def opened(app: ConsoleApp, pilot: Driven) -> EventsScreen:
    """The events screen, its first page there."""
    await pilot.press("4")
    await until(pilot, lambda: isinstance(app.screen, EventsScreen))
    screen = app.screen
    assert isinstance(screen, EventsScreen)
    await until(pilot, lambda: screen._journal.whole or _listed(screen) > 100)
    await pilot.pause()
    return screen


def _listed(screen: EventsScreen) -> int:
    return len(screen._journal.entries)


async def test_entries_are_listed_newest_first_with_words_for_what_they_are() -> None:
    async with running(service_with(journal(4))) as (app, pilot):
        await opened(app, pilot)
        rows = panel(app, "#list").splitlines()
        assert "✖ error engine.failed" in rows[1]
        assert "· info  engine.serving" in rows[2]
        assert [row.split()[-1] for row in rows[2:]] == ["n2", "n1", "n0"]


async def test_the_chosen_entry_shows_its_evidence_and_remedy() -> None:
    async with running(service_with(journal(4))) as (app, pilot):
        await opened(app, pilot)
        said = panel(app, "#detail")
        assert "oom_kill 1 in memory.events" in said
        assert "Rent a pod with more memory." in said
        assert "enter Restart engine" in said
        await pilot.press("down")
        await until(pilot, lambda: "oom_kill" not in panel(app, "#detail"))


async def test_enter_asks_and_then_runs_what_mends_the_entry() -> None:
    service = service_with(journal(4))
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: service.commands == [("engine.restart", {})])


async def test_enter_on_an_entry_without_a_command_says_so() -> None:
    service = service_with(journal(4))
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: "names no command" in toasts(app))
        assert service.commands == []


async def test_severity_narrows_the_list_and_goes_round() -> None:
    async with running(service_with(journal(4))) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("v")
        await until(pilot, lambda: _listed(screen) == 1)
        assert "v warn and error" in panel(app, "#about")
        await pilot.press("v", "v")
        await until(pilot, lambda: _listed(screen) == 4)


async def test_a_text_is_found_in_the_evidence_too_and_escape_lists_all_again() -> None:
    async with running(service_with(journal(30))) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("slash", *"MEMORY.ev", "enter")
        await until(pilot, lambda: _listed(screen) == 1)
        await until(pilot, lambda: "1 event of 30, all there are" in panel(app, "#about"))
        await pilot.press("escape")
        await until(pilot, lambda: _listed(screen) == 30)


async def test_nothing_found_says_so() -> None:
    async with running(service_with(journal(3))) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("slash", *"nowhere", "enter")
        await until(pilot, lambda: "– nothing passes the filter" in panel(app, "#list"))
        assert "none chosen" in panel(app, "#detail")


async def test_an_empty_journal_says_so() -> None:
    async with running(service_with([])) as (app, pilot):
        await opened(app, pilot)
        await until(pilot, lambda: "– nothing has happened yet" in panel(app, "#list"))


async def test_scrolling_pages_back_to_the_journals_begin() -> None:
    async with running(service_with(journal(1100))) as (app, pilot):
        screen = await opened(app, pilot)
        assert _listed(screen) < 500
        for _ in range(12):
            await pilot.press("end")
            await pilot.pause(0.02)
        await until(pilot, lambda: "1,100 events, all there are" in panel(app, "#about"))
        await pilot.press("end")
        await until(pilot, lambda: "n0" in panel(app, "#detail"))
        assert len({event.id for event in screen._journal.entries}) == 1100


async def test_the_cursor_stays_on_its_entry_when_a_new_one_comes() -> None:
    service = service_with(journal(6))
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("down", "down")
        chosen = app.screen.query_one(EventList).chosen
        later = Event(9132, make.at(2), "engine.serving", "back again")
        service.events = (*service.events, later)
        service.push(make.snapshot(events_last_id=9132))
        await until(pilot, lambda: "back again" in panel(app, "#list"))
        assert app.screen.query_one(EventList).chosen == chosen


async def test_new_entries_have_a_dot_and_opening_reads_them() -> None:
    service = service_with(journal(6), read=9129)
    service.digest = calm()
    async with running(service) as (app, pilot):
        await until(pilot, lambda: "2 new events [u]" in screen_text(app))
        await opened(app, pilot)
        rows = panel(app, "#list").splitlines()[1:]
        assert ["•" in row for row in rows] == [True, True, False, False, False, False]
        await until(pilot, lambda: service.read_mark == 9131)
        assert app.reading.unread == 0
        await pilot.press("u")
        await until(pilot, lambda: "•" not in panel(app, "#list"))


async def test_the_read_mark_is_the_services_and_outlives_the_console() -> None:
    service = service_with(journal(6), read=9129)
    service.digest = calm()
    async with running(service) as (app, pilot):
        await until(pilot, lambda: "2 new events [u]" in screen_text(app))
        await opened(app, pilot)
        await until(pilot, lambda: service.read_mark == 9131)
    async with running(service) as (app, _):
        assert app.reading.unread == 0


async def test_the_overview_is_shown_as_it_was_at_the_entry() -> None:
    async with running(service_with(journal(60))) as (app, pilot):
        await opened(app, pilot)
        asked: list[float] = []
        app.look_at = asked.append  # type: ignore[method-assign,assignment]
        await pilot.press("down", "o")
        await until(pilot, lambda: bool(asked))
        assert asked == [unix_seconds(make.at(395))]


async def test_text_from_elsewhere_stays_text() -> None:
    evil = Event(9131, make.at(1), HOSTILE, HOSTILE, "warn", {HOSTILE: HOSTILE, "remedy": HOSTILE})
    async with running(service_with([evil]), size=(80, 24)) as (app, pilot):
        await opened(app, pilot)
        text = screen_text(app)
        assert "[bold]" in text
        assert "\x1b" not in text
        assert "\x07" not in text
        for name in ("#list", "#detail", "#about", "#strip"):
            widget = app.screen.query_one(name, Lines)
            assert all(width_of(row) <= 80 for row in widget.lines)
            assert len(widget.lines) <= widget.size.height
        assert "more lines" in panel(app, "#detail")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50), (40, 12)])
async def test_it_fits(size: tuple[int, int]) -> None:
    async with running(service_with(journal(300)), size=size) as (app, pilot):
        await opened(app, pilot)
        hints = app.screen.query_one("#hints", Lines)
        assert hints.region.bottom == size[1]
        entries = app.screen.query_one("#list", Lines)
        assert entries.size.height >= (6 if size[1] >= 24 else 1)
        assert all(width_of(row) <= size[0] for row in entries.lines)


async def test_a_service_that_is_gone_leaves_the_entries_and_says_so() -> None:
    service = service_with(journal(6))
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        service.go_down()
        service.events = ()
        await until(pilot, lambda: app.reading.link.state == "lost")
        assert "n3" in panel(app, "#list")


async def test_another_journal_begins_again() -> None:
    service = service_with(journal(6))
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        service.events = (Event(1, make.at(1), "service.started", "the service starts"),)
        service.push(make.snapshot(events_last_id=1))
        await until(pilot, lambda: "the service starts" in panel(app, "#list"))
        assert "n3" not in panel(app, "#list")


async def test_a_note_is_asked_for_and_recorded() -> None:
    service = service_with(journal(3))
    noted = {"report": "Noted: off now"}
    service.finish(
        "note.add", CommandResult(command="note.add", id="c1", state="done", result=noted)
    )
    async with running(service) as (app, pilot):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NoteDialog))
        await pilot.press(*"off now", "enter")
        await until(pilot, lambda: service.commands == [("note.add", {"text": "off now"})])
        await until(pilot, lambda: "Note: Done: off now." in toasts(app))
        assert toasts(app).count("off now") == 1


@pytest.mark.parametrize("key", ["escape", "enter"])
async def test_no_note_is_none(key: str) -> None:
    service = service_with(journal(3))
    async with running(service) as (app, pilot):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NoteDialog))
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(app.screen, NoteDialog))
        await pilot.pause(0.1)
        assert service.commands == []


# the strip, which is pure


def points(number: int) -> list[HistoryPoint]:
    now_s = make.NOW.timestamp()
    return [
        HistoryPoint(
            at_s=now_s - 86_400 + 86_400 / number * place,
            generation_tokens_per_s=100.0 if place % 2 else Missing("gap"),
            prefill_tokens_per_s=0.0,
            running=1,
            waiting=0,
        )
        for place in range(number)
    ]


def test_an_entry_lies_on_the_strip_where_its_time_is() -> None:
    events = [Event(1, make.at(43_200), "x.y", "t", "warn"), Event(2, make.at(0), "x.y", "t")]
    now_s = make.NOW.timestamp()
    rows = strip([], events, now_s=now_s, chosen_s=now_s - 43_200, width=102, rows=1)
    marks = "".join(span.text for span in rows[-2])
    assert marks[1 + 50] == "▲"
    assert marks[1 + 99] == "·"
    assert "".join(span.text for span in rows[-1])[1 + 50] == "▲"
    assert "12:00" in "".join(span.text for span in rows[-1])


def test_the_gravest_of_a_cell_is_shown() -> None:
    events = [
        Event(number, make.at(0), "x.y", "t", severity)  # type: ignore[arg-type]
        for number, severity in enumerate(("info", "error", "warn"))
    ]
    rows = strip([], events, now_s=make.NOW.timestamp(), chosen_s=None, width=82, rows=1)
    assert "".join(span.text for span in rows[-2]).rstrip()[-1] == "✖"


@settings(deadline=None, max_examples=60)
@given(
    ages=st.lists(st.floats(-1e5, 2e5), max_size=30),
    width=st.integers(0, 200),
    rows=st.integers(0, 6),
    chosen=st.none() | st.floats(-2e5, 2e5),
)
def test_the_strip_keeps_to_its_room(
    ages: list[float], width: int, rows: int, chosen: float | None
) -> None:
    now_s = make.NOW.timestamp()
    events = [Event(n, make.at(age), "x.y", "t", "warn") for n, age in enumerate(ages)]
    chosen_s = None if chosen is None else now_s + chosen
    drawn = strip(points(200), events, now_s=now_s, chosen_s=chosen_s, width=width, rows=rows)
    assert len(drawn) in {0, rows + 2}
    assert all(sum(cell_len(span.text) for span in row) <= width for row in drawn)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=20), st.sampled_from(("info", "warn", "error")))
def test_a_filter_never_adds_and_an_empty_one_keeps_all(text: str, severity: Any) -> None:
    events = journal(4)
    assert all(map(Filter().keeps, events))
    narrow = Filter(severity=severity, text=text)
    for event in filter(narrow.keeps, events):
        words = (event.kind, event.text, *(f"{k} {v}" for k, v in event.data.items()))
        assert any(text.casefold() in word.casefold() for word in words)


@pytest.mark.parametrize("ways", [["4", "1", "4"], ["4", "1", "4", "2", "4", "1", "4", "1", "4"]])
async def test_a_first_page_that_was_given_up_is_fetched_on_return(ways: list[str]) -> None:
    service = service_with(journal(4))
    async with running(service) as (app, pilot):
        for key in ways:
            app.simulate_key(key)  # without waiting for what each begins
        await pilot.pause()
        await opened(app, pilot)
        assert "n2" in panel(app, "#list")


async def test_a_page_whose_worker_was_cancelled_before_it_began_is_asked_for_again() -> None:
    async with running(service_with(journal(4))) as (app, pilot):
        screen = await opened(app, pilot)
        screen._journal.begin_again(Filter())
        screen._want_older()
        screen._pause()  # the worker has had no turn yet
        await pilot.press("1", "4")
        await until(pilot, lambda: _listed(screen) == 4)


async def test_a_console_shrunk_before_the_first_page_lists_it_when_it_grows() -> None:
    async with running(service_with(journal(4))) as (app, pilot):
        await pilot.press("4")
        await pilot.resize_terminal(30, 8)
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: isinstance(app.screen, EventsScreen))
        await until(pilot, lambda: "n2" in panel(app, "#list"))
