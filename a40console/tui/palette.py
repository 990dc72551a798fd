"""The command palette's entries: the table's commands, then what the console adds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from a40console.model.command import COMMANDS
from a40console.tui.availability import why_not

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp


def system_commands(app: ConsoleApp) -> Iterable[SystemCommand]:
    """Every command of the table with its key and, where it cannot run, the reason."""
    reading = app.reading
    for command in COMMANDS:
        key = app.keys.hint(command.id)
        reason = why_not(command, reading)
        notes = [f"key {key}"] if key else []
        notes += [f"not now: {reason}"] if reason else []
        text = f"{command.help} ({'; '.join(notes)})" if notes else command.help
        yield SystemCommand(command.title, text, partial(app.action_command, command.id))
    yield SystemCommand("Theme", "Change the colours.", app.action_change_theme)
