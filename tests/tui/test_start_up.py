"""What is loaded before the first paint, and that a long watch does not grow."""

from __future__ import annotations

import gc
import subprocess
import sys

import psutil
import pytest

from a40console.config import Settings
from a40console.tui.app import ConsoleApp
from tests import make_snapshot as make
from tests.tui.fake_service import FakeService

LATE = ("httpx", "a40console.service.client", "uvicorn", "starlette", "aiohttp")
"""Loaded after the first paint or never by the console."""


def test_importing_the_console_loads_no_http_and_no_service() -> None:
    code = "import sys, a40console.tui.app; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not set(LATE) & set(loaded)


@pytest.mark.slow
async def test_memory_does_not_grow_over_a_long_watch() -> None:
    service = FakeService()
    app = ConsoleApp(service.client, Settings())
    snapshots = make.moving(32, start_s=make.NOW.timestamp())
    process = psutil.Process()
    sizes: list[float] = []
    async with app.run_test(size=(120, 40)) as pilot:
        for tick in range(3000):
            snapshot = next(snapshots)
            app.past.observe(snapshot)
            app._snapshot = snapshot
            app.show_reading()
            await pilot.pause()
            if tick % 500 == 499:
                gc.collect()
                sizes.append(process.memory_info().rss / 2**20)
    assert sizes[-1] - sizes[2] < 3.0, sizes
