"""The dialog of a change of speculation: says first whether it is live, or what a restart costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.errors import ConsoleError
from a40console.model.command import Command
from a40console.model.figures import Figure, Missing, Text, number
from a40console.model.turning import (
    LIVE_IN_WORDS,
    NEVER_MEASURED,
    last_start_s,
    needs_restart,
    restart_in_words,
)
from a40console.tui import dialogs
from a40console.tui import format as fmt

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

LOOKED_AT_STARTS = 100


async def confirmed_mode(app: ConsoleApp, command: Command) -> str | None:
    """The mode that the operator chose and confirmed; None where he thought better of it."""
    mode = await dialogs.choose_argument(app, command)
    if mode is None:
        return None
    lines = [dialogs.consequence("mode", mode), *await _what_it_takes(app, mode)]
    return mode if await dialogs.confirm(app, command, lambda: lines) else None


async def _what_it_takes(app: ConsoleApp, mode: str) -> list[str]:
    snapshot = app.reading.snapshot
    if not needs_restart(snapshot.speculation, mode):
        return [LIVE_IN_WORDS]
    profile = snapshot.engine.profile
    lines = [restart_in_words(await _last_start(app, profile))]
    if running := number(snapshot.requests.running):
        lines.append(f"{fmt.plural(running, 'request')} running now.")
    return lines


async def _last_start(app: ConsoleApp, profile: Text) -> Figure:
    if isinstance(profile, Missing):
        return NEVER_MEASURED
    client = await app.feed.client()
    try:
        return last_start_s(await client.starts(LOOKED_AT_STARTS), profile)
    except ConsoleError as error:
        return Missing(error.message)
