"""The dialog of a change of speculation: says first whether it is live, or what a restart costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.model.command import Command
from a40console.model.turning import told
from a40console.tui import dialogs
from a40console.tui.losses import at_stake, losses

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp


async def confirmed_mode(app: ConsoleApp, command: Command) -> str | None:
    """The mode that the operator chose and confirmed; None where he thought better of it.

    Raises:
        ConsoleError: If the service would not do it, or does not answer.
    """
    mode = await dialogs.choose_argument(app, command)
    if mode is None:
        return None
    way = await (await app.feed.client()).speculation_way(mode)
    said = [dialogs.consequence("mode", mode), *told(way)]

    def consequences() -> list[str]:
        if way.how == "live":
            return said
        snapshot = app.reading.snapshot
        return [*said, *at_stake(snapshot), *losses(command.id, snapshot)]

    return mode if await dialogs.confirm(app, command, consequences) else None
