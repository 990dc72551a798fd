"""The client's environment, ready to paste: secrets are covered until they are asked for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from a40console.tui.ink import Line, Role, Span, line, wrap
from a40console.tui.screens.dialog import Dialog, Fitted

_SECRET = ("TOKEN", "KEY", "SECRET", "PASSWORD")
_COVER = "••••••••"


class EnvironmentDialog(Dialog[None]):
    """Shell lines that point a client at the gateway."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "reveal", "Show or cover the token", show=False),
        Binding("c", "copy", "Copy", show=False),
        Binding("enter,q", "close", "Close", show=False),
    ]
    KEYS = (("c", "copy all"), ("r", "show or cover the token"), ("escape", "close"))

    def __init__(self, title: str, variables: Mapping[str, str]) -> None:
        super().__init__(title)
        self._variables = variables
        self._bare = False

    def compose_body(self) -> ComposeResult:
        """One export line a variable."""
        with VerticalScroll(id="scroll"):
            yield Fitted(self._text, dom_id="text")

    def _text(self, width: int) -> list[Line]:
        lines = wrap("Paste this into the shell that starts the client:", width, Role.MUTED)
        lines.append(())
        for name, value in self._variables.items():
            covered = is_secret(name) and not self._bare
            lines.append(
                line(
                    Span("export ", Role.MUTED),
                    Span(f"{name}=", Role.LABEL),
                    _COVER if covered else shlex.quote(value),
                )
            )
        return lines

    def action_reveal(self) -> None:
        """Show the secrets, or cover them again."""
        self._bare = not self._bare
        self.query_one("#text", Fitted).redraw()

    def action_copy(self) -> None:
        """Copy the lines, secrets included; a notice says how they were copied."""
        self.app.copy_to_clipboard(
            "".join(f"export {k}={shlex.quote(v)}\n" for k, v in self._variables.items())
        )


def is_secret(name: str) -> bool:
    """Whether a variable's value is covered until asked for."""
    return any(word in name for word in _SECRET)
