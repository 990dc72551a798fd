"""The demo's end, however it comes: service and engine by their own records, runs, its folder.

Run as `python -m a40console.commands.demo_ending HOME` by the demo's clients, when they are told to
end or whoever started them is gone, and by its service, when they are gone as well. Nothing is
ended that is not proven the demo's own: the service is the process that holds this home's lock, the
engine what its keeper has recorded.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from a40console.commands.running import is_locked, lock_holder
from a40console.commands.stop import service_processes
from a40console.engines.process import EngineProcess
from a40console.files import holds_open
from a40console.paths import DEMO_MARK, Paths, locate
from a40console.service.run_process import end_runs

COMES_UP_WITHIN_S = 5.0
"""A service that was started a moment ago has its lock by then."""

HEEDS_WITHIN_S = 3.0
POLL_S = 0.05

MODULE = (sys.executable, "-P", "-m")
"""Runs a module of ours; nothing in the working folder may stand in for one."""


def ending_command(paths: Paths) -> list[str]:
    """The demo's end as a process of its own."""
    return [*MODULE, "a40console.commands.demo_ending", str(paths.home)]


async def end(paths: Paths) -> None:
    """End what is left of a demo and remove its folders; a home without its mark is left alone."""
    if not (paths.home / DEMO_MARK).is_file():
        return
    if not paths.service_lock.exists():
        await _until(lambda: is_locked(paths), COMES_UP_WITHIN_S)
    await _end_service(paths)
    end_runs(paths.runs)
    await _end_engines(paths)
    shutil.rmtree(paths.home, ignore_errors=True)
    shutil.rmtree(paths.runtime, ignore_errors=True)


async def _end_service(paths: Paths) -> None:
    """By the pid in the lock, as long as that process holds the lock open."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        pid = lock_holder(paths)
        if pid is None or not holds_open(pid, paths.service_lock):
            return
        for each in [pid] if number is signal.SIGTERM else service_processes(pid, paths):
            with suppress(OSError):
                os.kill(each, number)
        await _until(lambda: not is_locked(paths), HEEDS_WITHIN_S)


async def _end_engines(paths: Paths) -> None:
    with suppress(OSError):
        for folder in list(paths.engine_runs.iterdir()):
            if (engine := EngineProcess.adopt(folder)) is not None:
                await engine.stop(term_timeout_s=HEEDS_WITHIN_S, kill_timeout_s=HEEDS_WITHIN_S)


async def _until(condition: Callable[[], bool], within_s: float) -> None:
    give_up_s = time.monotonic() + within_s
    while time.monotonic() < give_up_s:
        if condition():
            return
        await asyncio.sleep(POLL_S)


if __name__ == "__main__":
    asyncio.run(end(locate({"A40CONSOLE_HOME": sys.argv[1]})))
