"""The why-slow view: live, readable at every size, and its keys do what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.tui.ink import width_of
from a40console.tui.screens.explain import ExplainScreen
from a40console.tui.widgets.lines import Lines, Panel
from tests import make_snapshot as make
from tests.tui.driving import running, screen_text, until
from tests.tui.fake_service import FakeService

SIZES = [(80, 24), (120, 40), (200, 50)]


@pytest.mark.parametrize("size", SIZES)
async def test_everything_is_there_at_every_size(size: tuple[int, int]) -> None:
    async with running(FakeService(), size=size) as (app, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "Could not be judged" in screen_text(app))
        said = screen_text(app)
        for words in (
            "prefill of 5,507 tokens (7f3a)",
            "Other candidates",
            "1 request waiting in the engine",
            "KV cache       11 % held, below 90 %",
            "setting-not-in-force",
            "[s] Speculation on or off",
        ):
            assert words in said
        panels = [app.screen.query_one(f"#{name}", Panel) for name in ("causes", "verdicts")]
        for panel in panels:
            assert all(width_of(row) <= panel.size.width for row in panel.lines)
        beside = panels[0].region.y == panels[1].region.y
        assert beside is (size[0] >= 160), "two columns where there is room"
        ends = [panel.plain.find("setting-not-in-force") for panel in panels]
        assert ends[0 if beside else 1] > 0, "findings come last"


async def test_it_follows_what_happens_while_it_is_open() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "PREFILL" in screen_text(app))
        full = make.snapshot(
            seq=service.snapshot.seq + 1,
            slots=(),
            requests=make.requests(waiting=4, running=64, waiting_by_reason={}),
        )
        service.push(full)
        await until(pilot, lambda: "max_running 64 is reached" in screen_text(app))
        assert "PREFILL" not in screen_text(app)


async def test_it_asks_only_while_it_is_looked_at() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        await pilot.press("w")
        await until(pilot, lambda: service.why_asked == 1)
        await pilot.press("escape")
        await until(pilot, lambda: app.current_mode == "overview")
        for _ in range(3):
            service.push(replace(service.snapshot, seq=service.snapshot.seq + 1))
            await pilot.pause(0.05)
        assert service.why_asked == 1


async def test_the_key_beside_a_remedy_works_here() -> None:
    service = FakeService(make.hung())
    async with running(service) as (app, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "[R] Restart engine" in screen_text(app))
        assert isinstance(app.screen, ExplainScreen)
        await pilot.press("R")
        await until(pilot, lambda: not isinstance(app.screen, ExplainScreen))
        assert "Restart the engine?" in screen_text(app)


async def test_a_service_that_cannot_explain_leaves_the_limit() -> None:
    service = FakeService()
    service.explains = False
    async with running(service) as (app, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "has no GET /v1/why" in screen_text(app))
        said = screen_text(app)
        assert "prefill of 5,507 tokens (7f3a)" in said
        assert "the service has not explained it yet" in said


async def test_what_cannot_be_known_is_said() -> None:
    gone = Missing("metrics answer HTTP 500")
    nothing = make.snapshot(
        slots=gone, gpus=gone, requests=make.requests(running=gone, waiting=gone)
    )
    async with running(FakeService(nothing)) as (app, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "Could not be judged" in screen_text(app))
        assert "unknown: metrics answer HTTP 500" in screen_text(app)


async def test_without_an_engine_it_says_what_to_do() -> None:
    async with running(FakeService(make.without_engine(EngineState.STOPPED))) as (app, pilot):
        await pilot.press("w")
        await until(pilot, lambda: "[S] Start engine" in screen_text(app))
        assert all(isinstance(lines, Lines) for lines in app.screen.query(Lines))
