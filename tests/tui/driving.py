"""Runs the console without a terminal and waits for what a test expects to see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from a40console.config import Settings
from a40console.tui.app import ConsoleApp
from a40console.tui.screens.dialog import Dialog
from a40console.tui.terminal_app import Surroundings
from a40console.tui.widgets.lines import Lines
from tests.tui.fake_service import FakeService

Driven = Pilot[Any]


@asynccontextmanager
async def running(
    service: FakeService,
    *,
    size: tuple[int, int] = (120, 40),
    settings: Settings | None = None,
    problems: tuple[str, ...] = (),
    live: bool = True,
    forbidden: str = "",
) -> AsyncIterator[tuple[ConsoleApp, Driven]]:
    """The console on the service, its first snapshot drawn."""
    around = Surroundings(settings_problems=problems, forbidden=forbidden)
    app = ConsoleApp(service.client, settings or Settings(), surroundings=around)
    async with app.run_test(size=size) as pilot:
        if live:
            await until(pilot, lambda: app.reading.link.state == "live")
            await pilot.pause()
        yield app, pilot


async def until(pilot: Driven, holds: Callable[[], bool], *, within_s: float = 5.0) -> None:
    """Wait until something holds.

    Raises:
        AssertionError: If it does not in time.
    """
    for _ in range(round(within_s / 0.02)):
        if holds():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"did not happen within {within_s} s:\n{screen_text(pilot.app)}")


async def dialog(app: ConsoleApp, pilot: Driven, kind: type[Dialog[Any]]) -> str:
    """The text of the dialog that has opened."""
    await until(pilot, lambda: isinstance(app.screen, kind))
    await pilot.pause()
    return screen_text(app)


def screen_text(app: Any) -> str:
    """The text of every panel of the screen in front."""
    return "\n".join(lines.plain for lines in app.screen.query(Lines))


def toasts(app: ConsoleApp) -> str:
    """The text of the toasts that are shown."""
    return "\n".join(f"{note.title}: {note.message}" for note in app._notifications)
