"""The running profile's edited file: its changes, what takes a restart, asked, applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.model.command import Command
from a40console.model.profile_change import ProfileChange, ProfileDiff
from a40console.tui.ink import Line, Role, line, wrap
from a40console.tui.losses import APPLY_BY_RESTART, at_stake, losses
from a40console.tui.screens.dialog import ConfirmDialog, Consequences

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_HEADS = {"restart": "Takes a restart:", "live": "Taken over while it runs:"}


class ApplyDialog(ConfirmDialog):
    """Each setting that the file has otherwise, and the question."""

    def __init__(self, title: str, found: ProfileDiff, lost: Consequences) -> None:
        super().__init__(title, _question(found), lost)
        self._found = found

    def _text(self, width: int) -> list[Line]:
        lines = wrap(f"{self._found.profile}, by {self._found.origin}", width, Role.MUTED)
        for effect, head in _HEADS.items():
            of_it = [change for change in self._found.changes if change.effect == effect]
            if of_it:
                lines += [line(""), *wrap(head, width, Role.STRONG)]
            for change in of_it:
                lines += changed(change, width)
        return [*lines, line(""), *super()._text(width)]


def changed(change: ProfileChange, width: int) -> list[Line]:
    """One setting, and why it takes what it takes."""
    return wrap(change.change, width, indent=2) + wrap(change.why, width, Role.MUTED, indent=4)


async def apply_edited(app: ConsoleApp, command: Command) -> None:
    """Show what the file says otherwise; apply it where the operator agrees."""
    from a40console.tui.actions import carry_out

    client = await app.feed.client()
    found = await client.changes()
    if not found.changes:
        text = f"{found.profile} runs as its file says."
        app.notify(text, title=command.title, markup=False)
        return

    def lost() -> list[str]:
        now = app.reading.snapshot
        return [*at_stake(now), *losses(command.id, now)] if found.needs_restart else []

    if not await app.push_screen_wait(ApplyDialog(command.title, found, lost)):
        return
    keys = ", ".join(change.key for change in found.changes)
    await carry_out(app, command, {"changes": found.id}, named=keys)


def _question(found: ProfileDiff) -> str:
    if found.needs_restart:
        return APPLY_BY_RESTART
    return "Let it be in force? Nothing restarts."
