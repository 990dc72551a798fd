"""A run's progress on stderr while a command follows it to its end."""

from __future__ import annotations

import asyncio
import shutil
import time

import click

from a40console.commands.output import note, printable, stderr_is_terminal
from a40console.errors import NoServiceError, TimedOutError
from a40console.model.figures import Missing, is_estimate, number
from a40console.model.run import ENDED, Run
from a40console.service.client import ServiceClient
from a40console.tui.format import dollars, duration

POLL_S = 0.4
SERVICE_GONE_S = 60.0
"""A service that crashed is back within 5 s, and the run goes on meanwhile."""

QUIET_S = 15.0
"""Without a terminal, a line every so often within an arm."""


async def follow(client: ServiceClient, run_id: str, *, quiet: bool) -> Run:
    """Wait for a run's end, telling how far it is.

    Args:
        client: The service.
        run_id: The run.
        quiet: Without telling anything.

    Raises:
        NoServiceError: If the service is gone for a minute; the run goes on.
    """
    shown = Shown(quiet=quiet)
    try:
        while True:
            run = await _look(client, run_id)
            if run.state in ENDED:
                return run
            shown.show(run)
            await asyncio.sleep(POLL_S)
    finally:
        shown.clear()


async def _look(client: ServiceClient, run_id: str) -> Run:
    deadline = time.monotonic() + SERVICE_GONE_S
    while True:
        try:
            return await client.run(run_id)
        except (NoServiceError, TimedOutError):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(POLL_S)


class Shown:
    """One line refreshed on a terminal, else a line an arm and every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        """With whether nothing is to be told."""
        self._quiet = quiet
        self._refreshes = stderr_is_terminal()
        self._arm = ""
        self._text = ""
        self._told_s = float("-inf")
        self._drawn = False

    def show(self, run: Run) -> None:
        """Bring what is shown up to date."""
        if self._quiet:
            return
        text, arm = told(run), _arm(run)
        if self._refreshes:
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\x1b[K{printable(text)[:width]}", err=True, nl=False, color=True)
            self._drawn = True
        elif text != self._text and (arm != self._arm or time.monotonic() - self._told_s > QUIET_S):
            note(text)
            self._arm, self._text, self._told_s = arm, text, time.monotonic()

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            click.echo("\r\x1b[K", err=True, nl=False, color=True)


def told(run: Run) -> str:
    """How far a run is, in one line."""
    if run.state == "queued":
        return f"{run.id}: {run.reason}" if run.reason else f"{run.id} waits for its turn"
    progress = run.progress
    if isinstance(progress, Missing):
        return f"{run.id} begins"
    parts = [f"{progress.arm}: {progress.text}" if progress.arm else progress.text]
    if progress.total:
        parts.append(f"{progress.done / progress.total:.0%}")
    parts.append(duration(progress.elapsed_s))
    if (left_s := number(progress.eta_s)) is not None:
        parts.append(f"≈ {duration(left_s)} left")
    if (usd := number(progress.usd)) is not None:
        parts.append(f"{'≈ ' if is_estimate(progress.usd) else ''}{dollars(usd)}")
    return "   ".join(parts)


def _arm(run: Run) -> str:
    return run.state if isinstance(run.progress, Missing) else run.progress.arm
