"""How much memory a console takes after so many readings, dialogs and changes of view."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

from a40console.tui.messages import SnapshotArrived
from tests import make_snapshot as make
from tests.tui.driving import Driven

MIB = 2**20


def resident_mib() -> float:
    """Resident memory of this process, without what the allocator merely keeps."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return float(psutil.Process().memory_info().rss) / MIB


async def tick(pilot: Driven, number: int, *, slots: int = 8) -> None:
    """So many readings in which every figure moves, each drawn."""
    moving = make.moving(slots, start_s=make.NOW.timestamp())
    for step in range(number):
        pilot.app.post_message(SnapshotArrived(next(moving)))
        await pilot.pause(0 if step % 4 else 0.001)


async def open_and_close(pilot: Driven, keys: str, number: int) -> None:
    """So many dialogs, one after the other."""
    for step in range(number):
        await pilot.press(keys[step % len(keys)])
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()


async def grown_mib(act: Callable[[int], Awaitable[None]], *, warm: int, number: int) -> float:
    """How much memory grows over so many acts, after as many as it takes to be warm."""
    await act(warm)
    before = resident_mib()
    await act(number)
    return resident_mib() - before


def threads() -> int:
    """Threads of this process."""
    return len(list(Path("/proc/self/task").iterdir()))
