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
from a40console.paths import Paths


def open_console(invocation: Invocation) -> int:
    """Start the service if none runs, then the console; its exit code.

    Raises:
        UsageError: If there is no terminal to draw on.
    """
    streams = {"input": sys.stdin, "output": sys.stdout, "error": sys.stderr}
    # Textual draws on standard error.
    elsewhere = [name for name, stream in streams.items() if not stream.isatty()]
    if elsewhere:
        raise UsageError(
            "The console needs a terminal",
            evidence=f"Not on one: standard {', standard '.join(elsewhere)}",
            remedy="For scripts there are: a40console status, watch, ask. All of them: --help",
        )
    settings = invocation.settings()
    asyncio.run(_ensure(invocation.paths, settings))
    # Before Textual is imported: it reads its environment once.
    system = invocation.color_system(is_terminal=True)
    if system is None:
        os.environ["NO_COLOR"] = "1"
    elif invocation.color != "auto":
        os.environ["TEXTUAL_COLOR_SYSTEM"] = system
    from a40console.tui.app import run_console

    return run_console(invocation.paths, settings, mouse=invocation.mouse)


async def _ensure(paths: Paths, settings: Settings) -> None:
    """A service, and on a machine without a GPU an engine: whoever opens us wants to see one.

    What the settings name or what ran before, the service starts by itself. With a GPU it refuses
    to guess, and the console offers the profiles.
    """
    async with await ensure_service(paths) as client:
        if settings.profile is not None or paths.desired.exists():
            return
        snapshot = await client.snapshot()
        if snapshot.engine.state is EngineState.ABSENT:
            await client.start("engine.start")
