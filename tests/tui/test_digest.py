"""What is told after an absence: when, when not, and that it never is in another key's way."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.config import Settings
from a40console.model.control import Digest
from a40console.model.event import Event
from a40console.model.figures import Missing
from a40console.model.instants import unix_s
from a40console.tui.absence import AWAY_AFTER_S
from a40console.tui.app import ConsoleApp
from a40console.tui.ink import width_of
from a40console.tui.panels.digest import digest_text, weighty
from a40console.tui.screens.dialog import ConfirmDialog
from a40console.tui.screens.digest import DigestDialog
from a40console.tui.screens.monitor import MonitorScreen
from tests import make_snapshot as make
from tests.tui import fake_past
from tests.tui.driving import Driven, screen_text, toasts, until
from tests.tui.fake_service import FakeService
from tests.tui.fog import fogged


class Clock:
    """A clock that stands still until it is moved."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@asynccontextmanager
async def watching(
    service: FakeService, clock: Clock | None = None, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[ConsoleApp, Driven]]:
    app = ConsoleApp(service.client, Settings(), clock=clock or Clock())
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.reading.link.state == "live")
        await pilot.pause(0.1)
        yield app, pilot


def service(read: int = 9131) -> FakeService:
    made = FakeService()
    made.read_mark = read
    return made


def calm() -> Digest:
    """A time in which nothing happened and nobody asked anything."""
    quiet = fake_past.digest()
    quiet = replace(quiet, starts=(), ends=(), findings=(), notes=(), warnings=0, errors=0)
    return replace(quiet, requests_finished=0)


async def settled(pilot: Driven, made: FakeService, digests: int) -> None:
    """Wait until so many digests were asked for and answered; none more is on its way."""
    await until(pilot, lambda: len(made.digests_asked) >= digests)
    workers = pilot.app.workers
    await until(pilot, lambda: not any(one.group == "digest" for one in workers))
    await pilot.pause()
    assert len(made.digests_asked) == digests


def told(app: ConsoleApp) -> bool:
    return isinstance(app.screen, DigestDialog) and bool(screen_text(app).strip())


def text(digest: Digest, width: int = 78) -> str:
    return "\n".join("".join(span.text for span in row) for row in digest_text(digest, width))


async def test_opening_after_something_happened_tells_it() -> None:
    async with watching(service(read=9120)) as (app, pilot):
        await until(pilot, lambda: told(app))
        said = " ".join(screen_text(app).split())
        assert "While you were away" in said
        assert "out of memory: the kernel killed VLLM::EngineCore" in said
        assert "412 finished 2 failed 5 aborted" in said
        assert "1,204,331 tokens" in said
        assert "$3.52" in said
        assert "612 tok/s at 10:10:31" in said
        await pilot.press("escape")
        await until(pilot, lambda: not told(app))
        assert app.reading.unread == 0


async def test_what_is_told_counts_from_when_the_operator_was_last_here() -> None:
    made = service(read=9120)
    made.read_at = make.at(600)
    async with watching(made) as (app, pilot):
        await until(pilot, lambda: told(app))
        [asked] = made.digests_asked
        assert asked["since_event"] == "9120"
        assert float(asked["since"]) == unix_s(make.at(600))


async def test_somebody_who_is_here_says_so_now_and_then() -> None:
    made, clock = service(), Clock()
    async with watching(made, clock) as (_, pilot):
        await pilot.press("down")
        assert made.marks_set == []
        clock.now_s += 61
        await pilot.press("down", "down")
        await until(pilot, lambda: made.marks_set == [9131])


@pytest.mark.parametrize("read", [0, 9131])
async def test_nothing_unread_or_never_read_tells_nothing(read: int) -> None:
    made = service(read)
    async with watching(made) as (app, pilot):
        await until(pilot, lambda: made.read_mark == 9131)
        await settled(pilot, made, 0)
        assert not told(app)


async def test_a_quiet_time_is_not_told() -> None:
    made = service(read=9120)
    made.digest = calm()
    async with watching(made) as (app, pilot):
        await settled(pilot, made, 1)
        assert not told(app)
        assert app.reading.unread == 11


@pytest.mark.parametrize(("age_s", "tells"), [(20, False), (200, True)])
async def test_a_start_that_was_just_begun_is_no_news(age_s: float, tells: bool) -> None:
    made = service(read=9120)
    begun = replace(fake_past.starts()[0], started_at=make.at(age_s))
    made.digest = replace(calm(), starts=(begun,))
    async with watching(made) as (app, pilot):
        await settled(pilot, made, 1)
        if tells:
            await until(pilot, lambda: told(app))
        assert told(app) is tells


async def test_work_alone_is_told_when_the_console_opens() -> None:
    made = service(read=9120)
    made.digest = replace(calm(), requests_finished=80)
    async with watching(made) as (app, pilot):
        await until(pilot, lambda: told(app))
        assert "80 finished" in screen_text(app)


async def test_a_service_that_was_lost_is_asked_what_happened_meanwhile() -> None:
    made = service()
    async with watching(made) as (app, pilot):
        made.go_down()
        await until(pilot, lambda: app.reading.link.state == "lost")
        made.events = (*made.events, Event(9140, make.at(1), "engine.failed", "it died", "error"))
        made.snapshot = make.snapshot(events_last_id=9140)
        made.up = True
        await until(pilot, lambda: told(app))


async def test_a_link_that_comes_back_to_nothing_new_tells_nothing() -> None:
    made = service()
    async with watching(made) as (app, pilot):
        made.go_down()
        await until(pilot, lambda: app.reading.link.state == "lost")
        made.up = True
        await until(pilot, lambda: app.reading.link.state == "live")
        await settled(pilot, made, 0)
        assert not told(app)


@pytest.mark.parametrize(
    ("away_s", "happened", "tells"),
    [
        (AWAY_AFTER_S + 1, True, True),
        (AWAY_AFTER_S + 1, False, False),
        (AWAY_AFTER_S - 1, True, False),
    ],
)
async def test_a_key_after_an_absence_tells_what_happened_in_it(
    away_s: float, happened: bool, tells: bool
) -> None:
    made, clock = service(), Clock()
    async with watching(made, clock) as (app, pilot):
        await pilot.press("down")
        if happened:
            made.push(make.snapshot(events_last_id=9140))
            await until(pilot, lambda: app.reading.unread == 9)
        clock.now_s += away_s
        await pilot.press("2")
        await until(pilot, lambda: app.current_mode == "engine")
        await settled(pilot, made, 1 if tells else 0)
        if tells:
            await until(pilot, lambda: told(app))
            [asked] = made.digests_asked
            assert asked["since_event"] == "9131"
            assert float(asked["since"]) == -away_s, "from the last key on, whatever is unread"
        assert told(app) is tells


async def test_the_key_that_ends_an_absence_does_what_it_does_first() -> None:
    made, clock = service(), Clock()
    async with watching(made, clock) as (app, pilot):
        await pilot.press("down")
        made.push(make.snapshot(events_last_id=9140))
        await until(pilot, lambda: app.reading.unread == 9)
        clock.now_s += AWAY_AFTER_S + 1
        await pilot.press("X")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await settled(pilot, made, 1)
        assert not told(app)
        assert app.reading.unread == 9


async def test_a_commands_key_closes_it_and_acts() -> None:
    async with watching(service(read=9120)) as (app, pilot):
        await until(pilot, lambda: told(app))
        await pilot.press("X")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, MonitorScreen))
        assert app.reading.unread == 11


async def test_unread_is_opened_by_its_key_and_then_read() -> None:
    made = service()
    made.digest = calm()
    async with watching(made) as (app, pilot):
        made.push(make.snapshot(events_last_id=9140))
        await until(pilot, lambda: "9 new events [u]" in screen_text(app))
        await pilot.press("u")
        await until(pilot, lambda: told(app))
        assert "Since you looked" in screen_text(app)
        await until(pilot, lambda: made.read_mark == 9140)
        await pilot.press("u")
        await until(pilot, lambda: not told(app))
        await pilot.press("u")
        await until(pilot, lambda: app.current_mode == "events")
        assert re.search(r"Nothing new since \d\d:\d\d", toasts(app))


async def test_it_fits_a_small_terminal_and_scrolls() -> None:
    made = service(read=9120)
    made.digest = replace(
        fake_past.digest(),
        notes=tuple(Event(n, make.at(n), "note.added", f"note {n} " * 9) for n in range(60)),
    )
    async with watching(made, size=(80, 24)) as (app, pilot):
        await until(pilot, lambda: told(app))
        await pilot.pause()
        box = app.screen.query_one("#dialog").region
        assert box.bottom <= 24
        assert box.right <= 80
        assert app.screen.query_one("#scroll").max_scroll_y > 0


def test_what_happened_is_told_in_its_order() -> None:
    said = " ".join(text(fake_past.digest()).split())
    places = [said.index(words) for words in ("pruning off", "out of memory", "was started")]
    assert places == sorted(places)
    assert re.search(r"● qwen3-coder-30b was started, served 1 m 17 s later", said)
    assert "still so" in said
    assert "In the journal: 29 events, 1 error, 3 warnings." in said


def test_sums_that_begin_earlier_say_since_when() -> None:
    told = fake_past.digest()
    assert "sums count from" not in text(told)
    early = replace(told, counted_since_s=told.since_s - 1800)
    assert re.search(r"sums count from (\d\d \w+ )?\d\d:\d\d", text(early, 100))


def test_a_simulated_engine_is_called_so() -> None:
    simulated = tuple(replace(start, simulated=True) for start in fake_past.starts()[:1])
    said = text(replace(fake_past.digest(), simulated=True, starts=simulated))
    assert said.startswith("SIMULATED")
    assert "● SIMULATED qwen3-coder-30b was started" in said
    assert "SIMULATED" not in text(fake_past.digest())


def test_what_is_unknown_is_a_dash_with_its_reason() -> None:
    why = Missing("no price is set")
    assert re.search(r"spent +– no price is set", text(replace(fake_past.digest(), usd_spent=why)))


def test_a_stop_that_was_asked_for_is_no_failure() -> None:
    _, killed, _ = fake_past.starts()
    assert not isinstance(killed.end, Missing)
    asked = replace(killed, end=replace(killed.end, code=0, cause="stopped"))
    said = text(replace(fake_past.digest(), ends=(asked,)))
    assert "○ qwen3-coder-30b ended after serving for 1 h 41 m: stopped" in said


def test_the_operators_own_stop_is_no_failure_whatever_signal_it_took() -> None:
    _, killed, _ = fake_past.starts()
    assert not isinstance(killed.end, Missing)
    end = replace(killed.end, code=143, cause="stopped by the operator")
    said = text(replace(fake_past.digest(), ends=(replace(killed, end=end),)))
    assert "○ qwen3-coder-30b ended" in said


def test_a_simulated_engines_peak_is_called_so() -> None:
    digest = replace(fake_past.digest(), simulated=True)
    assert re.search(r"peak .*  perhaps SIMULATED", text(digest))
    alone = text(replace(digest, generated_tokens=Missing("a simulated engine's are not counted")))
    assert re.search(r"peak .* at \S+  SIMULATED", alone)


def test_what_no_longer_reaches_back_says_so() -> None:
    said = " ".join(text(replace(fake_past.digest(), complete=False)).split())
    assert "does not reach back" in said


@settings(deadline=None, max_examples=60)
@given(chance=st.floats(0, 1), seed=st.integers(0, 10**6), width=st.integers(20, 120))
def test_any_digest_is_drawn_within_its_width(chance: float, seed: int, width: int) -> None:
    digest: Any = fogged(fake_past.digest(), chance, seed)
    assert all(width_of(row) <= width for row in digest_text(digest, width))
    assert isinstance(weighty(digest), bool)
