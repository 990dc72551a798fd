"""The digest after an absence: to be read and closed, and in no other key's way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Key
from textual.keys import format_key

from a40console.model.control import Digest
from a40console.tui.ink import Line
from a40console.tui.panels.digest import digest_text
from a40console.tui.screens.dialog import Dialog, Fitted

READ = "read"


class DigestDialog(Dialog[str]):
    """What happened meanwhile; answers `READ`, or the id of the command whose key was pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter,q,u", "close", "Close", show=False)]

    def __init__(self, title: str, digest: Digest, keys: Mapping[str, str]) -> None:
        super().__init__(title)
        self._digest = digest
        self._commands = {key: command_id for command_id, key in keys.items()}
        events = keys.get("view.events", "")
        every = ((format_key(events), "all events"),) if events else ()
        self.KEYS = (("↑ ↓", "scroll"), *every, ("escape", "close"))

    def compose_body(self) -> ComposeResult:
        """The text, scrolling."""
        with VerticalScroll(id="scroll"):
            yield Fitted(self._text, dom_id="text")

    def _text(self, width: int) -> list[Line]:
        return digest_text(self._digest, width)

    def action_close(self) -> None:
        """It has been read."""
        self.dismiss(READ)

    def on_key(self, event: Key) -> None:
        """A command's key closes this and does what it does elsewhere."""
        command_id = self._commands.get(event.key)
        if command_id is not None:
            event.stop()
            self.dismiss(command_id)
