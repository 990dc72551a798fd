"""A note: one line of the operator's for the journal."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Input

from a40console.model.event import NOTE_LIMIT
from a40console.tui.ink import Line, Role, clean, wrap
from a40console.tui.screens.dialog import Dialog, Fitted

_SAID = "It stands among the events, with the time, and on the overview's time axis."


class NoteDialog(Dialog[str]):
    """Asks for one line; an empty one is none."""

    BINDINGS: ClassVar[list[BindingType]] = []
    KEYS = (("enter", "record"), ("escape", "cancel"))

    def __init__(
        self, title: str, said: str = _SAID, placeholder: str = "what to remember"
    ) -> None:
        super().__init__(title)
        self._said = said
        self._placeholder = placeholder

    def compose_body(self) -> ComposeResult:
        """What becomes of it, and the line."""
        with VerticalScroll(id="scroll", can_focus=False):
            yield Fitted(self._text, dom_id="text")
        yield Input(id="note", compact=True, max_length=NOTE_LIMIT, placeholder=self._placeholder)

    def on_mount(self) -> None:
        """The line has the focus."""
        self.query_one("#note").focus()

    def _text(self, width: int) -> list[Line]:
        return wrap(self._said, width, Role.MUTED)

    @on(Input.Submitted, "#note")
    def _take(self, event: Input.Submitted) -> None:
        self.dismiss(clean(event.value).strip() or None)
