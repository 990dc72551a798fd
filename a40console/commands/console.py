"""The console on this terminal: what `a40console` without a command opens."""

from __future__ import annotations

import asyncio
import os
import sys

from a40console.commands.invocation import Invocation
from a40console.commands.running import ensure_service
from a40console.config import Settings
from a40console.errors import UsageError
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.paths import Paths
from a40console.tui.abilities import cannot_draw


def open_console(invocation: Invocation) -> int:
    """Start the service if none runs, then the console; its exit code.

    Raises:
        UsageError: If there is no terminal to draw on.
    """
    if invocation.plain:
        from a40console.commands.plain import run_plain

        return run_plain(invocation)
    check_terminal()
    settings, problems = invocation.lenient_settings()
    asyncio.run(_ensure(invocation.paths, settings))
    abilities = invocation.abilities(settings.console.glyphs)
    from a40console.tui.app import run_console

    return run_console(
        invocation.paths, settings, problems, mouse=invocation.mouse, abilities=abilities
    )


def check_terminal() -> None:
    """See that there is a terminal to draw on.

    Raises:
        UsageError: If there is none, or it cannot be drawn on.
    """
    streams = {"input": sys.stdin, "output": sys.stdout, "error": sys.stderr}
    # Textual draws on standard error.
    elsewhere = [name for name, stream in streams.items() if not stream.isatty()]
    if elsewhere:
        raise UsageError(
            "The console needs a terminal",
            evidence=f"Not on one: standard {', standard '.join(elsewhere)}",
            remedy="In sentences it needs none: a40console --plain. "
            "For scripts there are: a40console status, watch, ask. All of them: --help",
        )
    if reason := cannot_draw(os.environ):
        raise UsageError(
            "The console cannot draw on this terminal",
            evidence=reason,
            remedy="In sentences it can: a40console --plain. "
            "If it is a full terminal after all: TERM=xterm-256color a40console",
        )


async def _ensure(paths: Paths, settings: Settings) -> None:
    """A service, and on a machine without a GPU an engine: whoever opens us wants to see one.

    What the settings name or what ran before, the service starts by itself. With a GPU it refuses
    to guess, and the console offers the profiles.
    """
    async with await ensure_service(paths) as client:
        if paths.remote or settings.profile is not None or paths.desired.exists():
            return
        snapshot = await client.snapshot()
        forbidden = paths.forbidden or not isinstance(snapshot.service.forbidden, Missing)
        if snapshot.engine.state is EngineState.ABSENT and not forbidden:
            await client.start("engine.start")
