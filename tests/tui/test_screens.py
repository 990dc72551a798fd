"""Pictures of the screens in every state at three sizes: nothing moves without being noticed."""

from __future__ import annotations

from typing import Any

import pytest

from a40console.config import Settings
from a40console.model.snapshot import Snapshot
from a40console.tui.app import ConsoleApp
from tests import make_snapshot as make
from tests.draw_screens import SIZES, STATES, remember
from tests.tui.driving import Driven, screen_text, until
from tests.tui.fake_service import FakeService

SHOWN = {
    "2": "vllm.metrics",
    "3": "200 lines",
    "4": "engine.adopted",
    "5": "14:00",
    "7": "Time of each request",
    "w": "Could not be judged",
}
"""What stands on a view once its answers came."""


class Clock:
    """A clock that stands still until it is moved."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def console(snapshot: Snapshot, clock: Clock) -> tuple[ConsoleApp, FakeService]:
    service = FakeService(snapshot)
    app = ConsoleApp(service.client, Settings(), clock=clock)
    remember(app, snapshot)
    return app, service


async def drawn(pilot: Driven) -> None:
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await until(pilot, lambda: "live" in screen_text(app))
    await until(pilot, lambda: len(app.past.speed) > 800)
    seen = ""
    while (now := screen_text(app)) != seen:  # what one panel draws depends on another's rows
        seen = now
        app.show_reading()
        await pilot.pause()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("state", STATES)
def test_overview(snap_compare: Any, state: str, size: tuple[int, int]) -> None:
    app, _ = console(STATES[state](), Clock())
    assert snap_compare(app, terminal_size=size, run_before=drawn)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_no_service(snap_compare: Any, size: tuple[int, int]) -> None:
    clock = Clock()
    app, service = console(make.snapshot(), clock)

    async def lose(pilot: Driven) -> None:
        await drawn(pilot)
        service.go_down()
        clock.now_s += 12
        await until(pilot, lambda: "last seen 12 s ago" in screen_text(app))
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=lose)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("key", ["2", "3", "4", "5", "7", "w"])
def test_other_views(snap_compare: Any, key: str, size: tuple[int, int]) -> None:
    """Each view once what it asks the service for is there."""
    app, _ = console(make.snapshot(), Clock())

    async def switch(pilot: Driven) -> None:
        await drawn(pilot)
        await pilot.press(key)
        await until(pilot, lambda: SHOWN[key] in screen_text(app))
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=switch)


@pytest.mark.parametrize("key", ["X", "m", "e", "question_mark"])
def test_dialogs(snap_compare: Any, key: str) -> None:
    app, _ = console(make.snapshot(), Clock())

    async def open_dialog(pilot: Driven) -> None:
        await drawn(pilot)
        await pilot.press(key)
        await until(pilot, lambda: bool(app.screen.query("#dialog")))
        await pilot.pause()

    assert snap_compare(app, terminal_size=(80, 24), run_before=open_dialog)
