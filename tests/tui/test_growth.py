"""The console does not grow, however long it is open and whatever is opened and closed on it.

Row 46 of the faults.
"""

from __future__ import annotations

import gc
from typing import Any

import pytest

from a40console.tui.panels import texts
from a40console.tui.screens.dialog import ConfirmDialog, Dialog, TextDialog
from tests.tui.driving import Driven, running, until
from tests.tui.fake_service import FakeService
from tests.tui.growth import grown_mib, tick

pytestmark = pytest.mark.slow

BOUND_MIB = 3.0
"""Measured: 0.3 MiB. A widget that is kept for each dialog makes 30 MiB of the same."""

SIZE = (80, 24)


async def test_five_thousand_readings_leave_nothing_behind() -> None:
    async with running(FakeService(), size=SIZE) as (_, pilot):
        grown = await grown_mib(lambda number: tick(pilot, number, slots=3), warm=1000, number=4000)
        assert grown < BOUND_MIB


async def test_three_hundred_dialogs_leave_nothing_behind() -> None:
    async with running(FakeService(), size=SIZE) as (_, pilot):
        grown = await grown_mib(lambda number: dialogs(pilot, number), warm=40, number=260)
        assert grown < BOUND_MIB
        await until(pilot, lambda: not living_dialogs())


def living_dialogs() -> list[Dialog[Any]]:
    gc.collect()
    return [thing for thing in gc.get_objects() if isinstance(thing, Dialog)]


async def dialogs(pilot: Driven, number: int) -> None:
    app = pilot.app
    for step in range(number):
        app.push_screen(
            ConfirmDialog("Stop", "Stop the engine?", lambda: ["Two requests run."])
            if step % 2
            else TextDialog("Help", lambda width: texts.manual(app.keys, width))  # type: ignore[attr-defined]
        )
        await pilot.pause(0.005)
        app.screen.dismiss(None)
        await pilot.pause(0.005)
