"""The sessions screen: who they are, turn by turn, what was lost, and what is captured."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.geometry import Size

from a40console.model.event import Finding
from a40console.model.figures import Missing
from a40console.model.session import SessionDetail, SessionRequest
from a40console.model.snapshot import Session
from a40console.tui.app import ConsoleApp
from a40console.tui.ink import Line, width_of
from a40console.tui.panels import session_blocks as blocks
from a40console.tui.panels import session_list, session_text, session_timeline
from a40console.tui.panels.session_words import context_gauge, phase_words, row_name, tool_words
from a40console.tui.screens.session import RequestDialog, SessionDialog
from a40console.tui.widgets.lines import Lines
from tests import make_session as one
from tests import make_sessions as many
from tests import make_snapshot as make
from tests.tui.driving import Driven, running, screen_text, toasts, until
from tests.tui.fake_service import FakeService
from tests.tui.fog import fogged

SIZES = [(80, 24), (120, 40), (200, 50)]
FIRST = many.several()[0].session


def plain(lines: list[Line] | Line) -> str:
    rows = lines if isinstance(lines, list) else [lines]
    return "\n".join("".join(span.text for span in row) for row in rows)


def busy() -> FakeService:
    service = FakeService(many.snapshot())
    service.sessions = many.details()
    return service


async def opened(app: ConsoleApp, pilot: Driven, shown: str = "Turn by turn") -> None:
    await pilot.press("6")
    await until(pilot, lambda: shown in screen_text(app))
    await pilot.pause()


def painted(app: ConsoleApp, name: str) -> str:
    return app.screen.query_one(name, Lines).plain


# --- Panels ---------------------------------------------------------------------------------


PARTS: dict[str, Callable[[SessionDetail, int], list[Line]]] = {
    "window": blocks.window,
    "losses": blocks.losses,
    "agents": blocks.agents,
    "tools": blocks.tools,
    "removed": blocks.removed,
    "brief": lambda detail, width: blocks.brief(detail, (), width),
    "full": lambda detail, width: session_text.full(detail, (), width),
    "overview": lambda detail, width: session_text.overview(detail, (), Size(width, 14)),
    "timeline": session_text.timeline,
}


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(PARTS)),
    st.sampled_from([58, 66, 79, 80, 118, 120, 200]),
    st.floats(0, 1),
    st.integers(0, 1000),
)
def test_no_line_is_wider_than_its_room(part: str, width: int, fog: float, seed: int) -> None:
    detail = fogged(many.details()[FIRST], fog, seed)
    for row in PARTS[part](detail, width):
        assert width_of(row) <= width, plain(row)


@settings(max_examples=40, deadline=None)
@given(st.integers(80, 210), st.floats(0, 1), st.integers(0, 1000), st.integers(0, 4))
def test_no_figure_of_the_list_is_cut(width: int, fog: float, seed: int, index: int) -> None:
    session = fogged(many.several()[index], fog, seed)
    row = session_list.row(session, width, here=True, focused=True)
    assert width_of(row) <= width
    assert session_list.widest(width) <= width
    names = len("▸●") + sum(
        len(column.gap) + column.width
        for column in session_list.columns(width)[:3]
        if column.name in ("session", "client", "phase")
    )
    assert "…" not in plain(row)[names:]


@settings(max_examples=40, deadline=None)
@given(st.integers(79, 210), st.floats(0, 1), st.integers(0, 1000))
def test_no_figure_of_a_turn_is_cut(width: int, fog: float, seed: int) -> None:
    listed = many.long_timeline()
    request: SessionRequest = fogged(listed[seed % len(listed)], fog, seed)
    scale_s = session_timeline.scale_of(listed)
    row = session_timeline.row(request, width, scale_s, here=False, focused=False)
    assert width_of(row) <= width
    tools = session_timeline.columns(width)[-1].width
    assert "…" not in re.sub(r"└ \S+", "", plain(row)[: width - tools - 2])


def test_a_bar_is_as_long_as_its_seconds() -> None:
    request = one.request(client_s=2.0, queue_s=1.0, prefill_s=3.0, decode_s=4.0)
    scale_s = session_timeline.scale_of([request])
    assert scale_s == 10.0
    drawn = plain(session_timeline.bar(request, 20, scale_s))
    assert drawn == "┈┈┈┈▂▂▅▅▅▅▅▅▇▇▇▇▇▇▇▇"


def test_a_clients_hours_are_cut_and_say_so() -> None:
    request = one.request(client_s=7200.0, queue_s=0.0, prefill_s=1.0, decode_s=1.0)
    drawn = plain(session_timeline.bar(request, 8, session_timeline.scale_of([request])))
    assert drawn == "«┈┈┈▅▅▇▇"


def test_one_long_request_does_not_dwarf_the_others() -> None:
    usual = one.request(client_s=0.0, queue_s=0.005, prefill_s=1.0, decode_s=1.0)
    long = one.request(client_s=0.0, queue_s=0.0, prefill_s=1.0, decode_s=99.0)
    scale_s = session_timeline.scale_of([usual, usual, long])
    assert scale_s == pytest.approx(8.02)
    assert plain(session_timeline.bar(usual, 16, scale_s)).rstrip() == "▅▅▇▇"
    assert plain(session_timeline.bar(long, 16, scale_s)) == "▅▅" + 13 * "▇" + "»"


def test_the_gauge_marks_where_the_client_compacts() -> None:
    assert plain(context_gauge(50_000, 75_000, 100_000, 10)) == "▇▇▇▇▇▁▁│▁▁"
    assert plain(context_gauge(1, 200_000, 100_000, 4)) == "▇▁▁▁"
    assert plain(context_gauge(Missing("untold"), 75_000, 100_000, 4)) == "–   "


def test_a_long_tool_gives_way_to_the_time() -> None:
    assert phase_words("client", "Bash", 190.0, 13) == "runs Bash 3 m"
    assert phase_words("client", "mcp__github__review", 12.0, 13) == "mcp__gi… 12 s"


def test_tools_say_how_their_time_is_known() -> None:
    calls = (
        one.call(),
        one.call(),
        one.call(name="Task", duration_s=41.0, origin="seen"),
        one.call(name="Grep", duration_s=0.3, failed=True),
        one.call(name="Edit", duration_s=Missing("it runs"), origin="seen"),
    )
    assert tool_words(calls) == ("Bash 2.50 s ×2  Task ≤41.0 s  Grep 0.30 s ✖  Edit runs")


def test_rows_of_the_overview_name_sessions_shortly() -> None:
    assert row_name(FIRST, "Explore") == "1a2b Explore"
    assert row_name("nightly-eval", "") == "nightly-eval"


def test_a_loss_names_block_kind_turn_and_remedy() -> None:
    said = plain(blocks.losses(one.detail(), 90))
    assert "▲ 14:02:31 turn 40, block 14: tool_result" in said
    assert "changed, ≈16,400 tokens re-read in ≈5.30 s: tool_result of message 3" in said
    assert "compact in blocks instead" in said.replace("\n ", "")


def test_findings_about_it_are_those_that_name_it() -> None:
    found = (
        Finding(
            code="prefix-changed",
            severity="warn",
            title="A prefix changed",
            evidence="session 7f3a9c52, turn 40",
            remedy="Compact in blocks.",
            since="2026-11-29T14:00:00Z",
        ),
        Finding(
            code="other",
            severity="warn",
            title="Another's",
            evidence="session ffffffff",
            remedy="",
            since="2026-11-29T14:00:00Z",
        ),
    )
    said = plain(blocks.findings(one.detail(), found, 80))
    assert "A prefix changed" in said
    assert "Compact in blocks." in said
    assert "Another's" not in said


# --- The screen -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_it_fits_and_shows_all_its_parts(size: tuple[int, int]) -> None:
    async with running(busy(), size=size) as (app, pilot):
        await opened(app, pilot)
        assert app.screen.query_one("#hints", Lines).region.bottom == size[1]
        for panel in app.screen.query(Lines):
            assert all(width_of(row) <= size[0] for row in panel.lines), panel.id
        assert "1a2b3c4d" in painted(app, "#list")
        assert re.search(r"96 % reused +268 tok/s sustained", painted(app, "#summary"))
        assert re.search(r"▲ ?≈16", painted(app, "#turns"))
        assert "compacts at" in painted(app, "#blocks")
        assert "live 14:07:31" in painted(app, "#clock")


async def test_the_cursor_chooses_whose_turns_are_shown() -> None:
    service = busy()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("down")
        second = many.several()[1].session
        await until(pilot, lambda: second in service.sessions_asked)
        await until(pilot, lambda: "41 turns in 57 requests, 2 of 5" in painted(app, "#heading"))
        await until(pilot, lambda: "Task ≤41.0 s" in painted(app, "#turns"))


async def test_without_sessions_it_says_how_one_comes() -> None:
    async with running(FakeService(make.snapshot(sessions=()))) as (app, pilot):
        await opened(app, pilot, "No client has sent anything")
        assert "e shows what to paste for Claude Code" in screen_text(app)
        assert not app.screen.query_one("#turns").display


async def test_enter_opens_the_session_and_from_a_turn_its_request() -> None:
    async with running(busy()) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SessionDialog))
        await until(
            pilot,
            lambda: (
                "known by      its session header" in screen_text(app)
                or "its session header" in screen_text(app)
            ),
        )
        assert FIRST in screen_text(app)
        await pilot.press("escape")
        await pilot.press("tab", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, RequestDialog))
        assert "a40-0039" in screen_text(app)
        assert "Grep at" in screen_text(app)


async def test_enter_on_the_overviews_client_turn_opens_the_session_in_full() -> None:
    service = busy()
    async with running(service) as (app, pilot):
        await until(pilot, lambda: "client's turn: Bash" in screen_text(app))
        await pilot.press("home", "enter")
        await until(pilot, lambda: isinstance(app.screen, SessionDialog))
        await until(pilot, lambda: "Turn by turn" in screen_text(app))


async def test_a_paused_picture_asks_for_nothing() -> None:
    service = busy()
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("space")
        await pilot.pause(0.2)
        asked = len(service.sessions_asked)
        changed = replace(many.details()[FIRST], turns=999)
        service.sessions[FIRST] = changed
        await pilot.pause(1.3)
        assert len(service.sessions_asked) == asked
        await pilot.press("space")
        await until(pilot, lambda: len(service.sessions_asked) > asked)


async def test_a_service_that_knows_it_no_more_is_told() -> None:
    service = busy()
    service.sessions = {}
    async with running(service) as (app, pilot):
        await pilot.press("6")
        await until(pilot, lambda: "✖ No session is known as 1a2b3c4d" in screen_text(app))


# --- Capture --------------------------------------------------------------------------------


def quiet(**changes: object) -> Session:
    return one.session(**changes)


async def test_the_mark_stands_on_every_screen_while_any_is_captured() -> None:
    service = busy()
    async with running(service, size=(80, 24)) as (app, pilot):
        for key in ("1", "2", "3", "4", "5", "6", "w"):
            await pilot.press(key)
            await pilot.pause(0.05)
            assert "● CAPTURE" in painted(app, "#verdict").splitlines()[0]
        service.push(replace(many.snapshot(sessions=(one.session(),)), seq=901))
        await until(pilot, lambda: "CAPTURE" not in painted(app, "#verdict"))


async def test_it_begins_only_after_a_yes() -> None:
    service = FakeService(make.snapshot(sessions=(one.session(),)))
    name = one.session().session
    service.sessions = {name: one.detail()}
    async with running(service) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("C")
        await until(pilot, lambda: "Capture the text of session 7f3a9c52?" in screen_text(app))
        assert "files that only you can read" in screen_text(app).replace("\n", " ")
        await pilot.press("n")
        await pilot.pause(0.1)
        assert service.commands == []
        await pilot.press("C")
        await until(pilot, lambda: bool(app.screen.query("#yes")))
        await pilot.press("y")
        await until(
            pilot, lambda: service.commands == [("sessions.capture", {"session": f"{name} on"})]
        )


async def test_it_ends_without_a_question() -> None:
    captured = one.session(capturing=True)
    service = FakeService(make.snapshot(sessions=(captured,)))
    async with running(service) as (app, pilot):
        await pilot.press("6")
        await until(pilot, lambda: app.current_mode == "sessions")
        await pilot.pause(0.1)
        await pilot.press("C")
        await until(
            pilot,
            lambda: (
                service.commands == [("sessions.capture", {"session": f"{captured.session} off"})]
            ),
        )


async def test_elsewhere_it_asks_which_and_without_any_says_so() -> None:
    service = busy()
    async with running(service) as (app, pilot):
        await pilot.press("C")
        await until(pilot, lambda: "is captured: choose it to end that" in screen_text(app))
    async with running(FakeService(make.snapshot(sessions=()))) as (app, pilot):
        await pilot.press("C")
        await until(pilot, lambda: "no session is known" in toasts(app))
