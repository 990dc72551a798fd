"""A demo's service ends with its owner, however both end: its clients may be gone as well."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from a40console.engines.tree import ProcessId, ProcFs
from a40console.paths import DEMO_MARK

LOOK_EVERY_S = 1.0
ENDING_TAKES_S = 5.0
"""The demo's clients see to its end first: what they leave is ended here."""

log = logging.getLogger(__name__)


def mark_owned(home: Path) -> None:
    """Say that the home is a demo's, and that this process is whose.

    Raises:
        OSError: If the disk does not take it.
    """
    own = ProcFs().read_process(os.getpid())
    text = f"{own.id.pid} {own.id.start_ticks}\n" if own else ""
    (home / DEMO_MARK).write_text(text, encoding="ascii")


def owner(home: Path) -> ProcessId | None:
    """Whose demo this home is; None where it is none, or nobody said so."""
    try:
        pid, start_ticks = (home / DEMO_MARK).read_text(encoding="ascii").split()
        return ProcessId(int(pid), int(start_ticks))
    except (OSError, ValueError):
        return None


async def end_with_owner(home: Path, stop: Callable[[], Awaitable[None]]) -> None:
    """Wait until the owner of a demo's home or that home is gone; then end everything of it.

    Args:
        home: A home; one without an owner is left alone.
        stop: Ends engine and service.
    """
    whose = owner(home)
    if whose is None:
        return
    while ProcFs().is_alive(whose) and (home / DEMO_MARK).exists():  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(LOOK_EVERY_S)
    await asyncio.sleep(ENDING_TAKES_S)
    log.warning("the demo's console is gone: the demo ends")
    try:
        if (home / DEMO_MARK).exists():  # its folders too, after we are gone
            _begin_ending(home)
    finally:
        await stop()


def _begin_ending(home: Path) -> None:
    subprocess.Popen(
        [sys.executable, "-P", "-m", "a40console.commands.demo_ending", str(home)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
