"""A demo's service ends with its owner, however both end: its clients may be gone as well."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from a40console.engines.launching import KEEPER_SCRIPT, end_keeper
from a40console.engines.tree import ProcessId, ProcFs
from a40console.paths import DEMO_MARK, Paths
from a40console.service.run_process import end_runs

LOOK_EVERY_S = 1.0
ENDING_TAKES_S = 5.0
"""The demo's clients see to its end first: what they leave is ended here."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Demo:
    """What makes a service a demo's, as it was known when the service began."""

    owner: ProcessId
    """Whose demo it is."""

    ending: tuple[str, ...]
    """The command that removes what the service cannot: its own folders."""


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


def goes_on(home: Path, whose: ProcessId) -> bool:
    """Whether a demo's owner lives and its home is there."""
    return (home / DEMO_MARK).exists() and ProcFs().is_alive(whose)


def end_unrecorded(runs: Path) -> None:
    """End engines whose records went with their folder: by their keepers, which name it.

    Args:
        runs: The folder of a demo's engine starts.
    """
    proc = ProcFs()
    for pid, process in proc.read_table().items():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        names_runs = any(word.startswith(os.fsencode(runs) + b"/") for word in words)
        if names_runs and os.fsencode(KEEPER_SCRIPT) in words:
            end_keeper(process.id)


async def end_with_owner(paths: Paths, demo: Demo, stop: Callable[[], Awaitable[None]]) -> None:
    """Wait until the owner of a demo's home or that home is gone; then end everything of it.

    Args:
        paths: The demo's.
        demo: Whose it is, and how it ends.
        stop: Ends engine and service.
    """
    while goes_on(paths.home, demo.owner):  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(LOOK_EVERY_S)
    await asyncio.sleep(ENDING_TAKES_S)
    log.warning("the demo's console is gone: the demo ends")
    try:
        if (paths.home / DEMO_MARK).exists():  # its folders too, after we are gone
            _begin(demo.ending)
    finally:
        await stop()
        end_runs(paths.runs)
        end_unrecorded(paths.engine_runs)


def _begin(words: Sequence[str]) -> None:
    subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
