"""Which session's text is to be captured, or no more: asked before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from a40console.model.command import Command
from a40console.model.snapshot import Session
from a40console.tui.format import known
from a40console.tui.panels.session_list import sessions_of
from a40console.tui.panels.session_words import CAPTURE, name_of
from a40console.tui.screens.dialog import Choice, ConfirmDialog, PickDialog

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_WRITTEN = (
    "What its client sends from its next request on, and every answer, is written in full to files "
    "that only you can read, below the state folder."
)
_MARKED = "A mark on every screen says so until it is switched off, or the service ends."


async def choose_capture(app: ConsoleApp, command: Command) -> str | None:
    """`ID on` or `ID off`; None where the operator thought better of it, or there is no session."""
    session = await _chosen(app, command)
    if session is None:
        return None
    if session.capturing:
        return f"{session.session} off"
    question = f"Capture the text of session {name_of(session.session)}?"
    dialog = ConfirmDialog(command.title, question, lambda: (_WRITTEN, _MARKED))
    yes = await app.push_screen_wait(dialog)
    return f"{session.session} on" if yes else None


async def _chosen(app: ConsoleApp, command: Command) -> Session | None:
    """The session under the cursor of the sessions screen; elsewhere one out of a list."""
    from a40console.tui.screens.sessions import SessionsScreen

    front, listed = app.screen_stack[0], sessions_of(app.reading.snapshot)
    if not listed:
        app.say(command.title, "Not now: no session is known.", "warning")
        return None
    if isinstance(front, SessionsScreen):
        shown = front.chosen
        name = shown.session if shown else ""
    else:
        choices = [_choice(session) for session in listed]
        name = await app.push_screen_wait(PickDialog(command.title, choices)) or ""
    return next((session for session in listed if session.session == name), None)


def _choice(session: Session) -> Choice:
    mark = f"{CAPTURE} " if session.capturing else ""
    end = ", is captured: choose it to end that" if session.capturing else ""
    return Choice(
        value=session.session,
        title=f"{mark}{name_of(session.session)}",
        detail=f"{known(session.client, 'unnamed client')}, {session.turns} turns{end}",
    )
