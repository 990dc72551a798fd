"""The console on its terminal: themes, characters, alarms and copies, whatever screen is open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from rich.segment import Segment

from a40console.config import ConsoleSettings, Settings
from a40console.model.engine import EngineState
from a40console.model.event import Finding
from a40console.tui.abilities import Abilities
from a40console.tui.app import ConsoleApp
from a40console.tui.screens.themes import ThemeDialog
from a40console.tui.terminal_app import Surroundings
from tests import make_snapshot as make
from tests.tui.driving import Driven, screen_text, toasts, until
from tests.tui.fake_service import FakeService

TOUR = ("2", "3", "4", "5", "1", "w", "X", "S", "e", "question_mark", "tab", "ctrl+p")
"""Every screen and every kind of dialog; escape follows each."""


@asynccontextmanager
async def console(
    service: FakeService | None = None,
    settings: Settings | None = None,
    *,
    size: tuple[int, int] = (120, 40),
    state: Path | None = None,
    themes: Iterable[Path] = (),
    **abilities: object,
) -> AsyncIterator[tuple[ConsoleApp, Driven]]:
    surroundings = Surroundings(
        abilities=Abilities(**abilities),  # type: ignore[arg-type]
        theme_folders=tuple(themes),
        state=state,
    )
    service = service or FakeService()
    app = ConsoleApp(service.client, settings or Settings(), surroundings=surroundings)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.reading.link.state == "live")
        await pilot.pause()
        yield app, pilot


def painted(app: ConsoleApp) -> list[Segment]:
    """Everything on the screen, as it would be sent."""
    return [segment for strip in app.screen._compositor.render_strips() for segment in strip]


async def tour(app: ConsoleApp, pilot: Driven) -> AsyncIterator[str]:
    """Opens one thing after the other."""
    yield "overview"
    for key in TOUR:
        await pilot.press(key)
        await pilot.pause()
        yield key
        await pilot.press("escape")


async def test_in_ascii_nothing_else_is_painted_anywhere() -> None:
    async with console(ascii=True) as (app, pilot):
        async for place in tour(app, pilot):
            strange = {c for s in painted(app) for c in s.text if not c.isascii()}
            assert not strange, place


async def test_in_mono_no_colour_is_painted_anywhere_and_what_is_chosen_still_shows() -> None:
    async with console(depth="mono") as (app, pilot):
        async for place in tour(app, pilot):
            styles = [s.style for s in painted(app) if s.style is not None]
            assert not [style for style in styles if style.color or style.bgcolor], place
        await pilot.press("ctrl+p")
        await pilot.pause(0.3)
        assert any(s.style and (s.style.reverse or s.style.bold) for s in painted(app))


@pytest.mark.parametrize("depth", ["mono", "16"])
async def test_every_state_is_a_word_too(depth: str) -> None:
    service = FakeService()
    async with console(service, depth=depth) as (app, pilot):
        for state in EngineState:
            engine = replace(make.snapshot().engine, state=state)
            service.push(make.snapshot(engine=engine))
            await until(pilot, lambda s=state: app.reading.snapshot.engine.state is s)  # type: ignore[misc]
            await pilot.pause()
            word = "NO ENGINE" if state is EngineState.ABSENT else state.value.upper()
            assert word in screen_text(app).upper()


async def test_all_that_is_wrong_with_settings_is_one_notice(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("primary = 1")
    (tmp_path / "worse.toml").write_text("=")
    settings = Settings(
        console=ConsoleSettings(theme="noon"), keys={"engine.restrat": "f5", "engine.stop": "tab"}
    )
    async with console(settings=settings, themes=[tmp_path]) as (app, pilot):
        await until(pilot, lambda: "broken.toml" in toasts(app))
        assert len(app._notifications) == 1
        for said in ("worse.toml", "'noon'", "did you mean engine.restart?", "'tab'"):
            assert said in toasts(app)
        assert app.theme == "midnight"


async def test_a_theme_is_worn_while_it_is_looked_at_and_kept_when_it_is_chosen(
    tmp_path: Path,
) -> None:
    async with console(state=tmp_path) as (app, pilot):
        app.action_change_theme()
        await until(pilot, lambda: isinstance(app.screen, ThemeDialog))
        await pilot.press("down")
        looked_at = app.theme
        assert looked_at != "midnight"
        await pilot.press("escape")
        await until(pilot, lambda: app.theme == "midnight")
        app.action_change_theme()
        await until(pilot, lambda: isinstance(app.screen, ThemeDialog))
        await pilot.press("down", "enter")
        await until(pilot, lambda: not isinstance(app.screen, ThemeDialog))
        assert app.theme == looked_at
    async with console(state=tmp_path) as (app, _):
        assert app.theme == looked_at
    changed = Settings(console=ConsoleSettings(theme="high-contrast"))
    async with console(settings=changed, state=tmp_path) as (app, _):
        assert app.theme == "high-contrast", "the settings named another since"


async def test_few_colours_have_one_theme_and_the_settings_keep_theirs(tmp_path: Path) -> None:
    async with console(depth="16", state=tmp_path) as (app, pilot):
        assert app.theme == "sixteen"
        assert not toasts(app)
        app.action_change_theme()
        await until(pilot, lambda: isinstance(app.screen, ThemeDialog))
        assert [choice.value for choice in app.screen._choices] == ["sixteen"]  # type: ignore[attr-defined]


def failing() -> Finding:
    return Finding(
        code="disk", severity="error", title="The disk is full", evidence="", remedy="", since="",
        command="",
    )  # fmt: skip


async def test_an_error_rings_once_and_a_muted_console_says_that_it_is_muted() -> None:
    service = FakeService(replace(make.snapshot(), findings=()))
    settings = Settings(console=ConsoleSettings(alarms="both"))
    async with console(service, settings, multiplexer="tmux") as (app, pilot):
        written: list[str] = []
        app.write_to_terminal = lambda text: not written.append(text)  # type: ignore[method-assign,func-returns-value]
        service.push(replace(make.snapshot(), seq=2, findings=(failing(),)))
        await until(pilot, lambda: bool(written))
        assert written == ["\a\x1bPtmux;\x1b\x1b]9;a40console: The disk is full\a\x1b\\"]
        service.push(replace(make.snapshot(), seq=3, findings=(failing(),)))
        await until(pilot, lambda: app.reading.snapshot.seq == 3)
        await pilot.press("A")
        await until(pilot, lambda: app.alarms.muted)
        service.push(replace(make.snapshot(), seq=4, findings=(failing(),)))
        await until(pilot, lambda: "alarms off" in screen_text(app))
        assert len(written) == 1


async def test_alarms_that_are_off_ring_nothing() -> None:
    service = FakeService(replace(make.snapshot(), findings=()))
    settings = Settings(console=ConsoleSettings(alarms="off"))
    async with console(service, settings) as (app, pilot):
        written: list[str] = []
        app.write_to_terminal = lambda text: not written.append(text)  # type: ignore[method-assign,func-returns-value]
        service.push(replace(make.snapshot(), seq=2, findings=(failing(),)))
        await until(pilot, lambda: app.reading.snapshot.seq == 2)
        assert not written
        await pilot.press("A")
        await until(pilot, lambda: "The settings have them off" in toasts(app))


async def test_what_a_widget_copies_is_said(tmp_path: Path) -> None:
    async with console(state=tmp_path) as (app, pilot):
        app.copy_to_clipboard("text")
        await until(pilot, lambda: "OSC 52" in toasts(app))
        app.copy_to_clipboard("x" * 200_000)
        await until(pilot, lambda: str(tmp_path) in toasts(app))
