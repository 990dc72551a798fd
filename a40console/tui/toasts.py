"""Toasts: one for each action, which says what it is and, in the same place, how it went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from textual.notifications import Notification, Notify

if TYPE_CHECKING:
    from textual.app import App

Severity = Literal["information", "warning", "error"]

_SHOWN_S = {"information": 5.0, "warning": 15.0, "error": 15.0}


def toast(app: App[Any], title: str, message: str, severity: Severity) -> Notification:
    """Show a toast; text from elsewhere is never read as markup."""
    note = Notification(message, title, severity, _SHOWN_S[severity], markup=False)
    app.post_message(Notify(note))
    return note


class ActionToast:
    """The one toast of an action: what was said last takes the place of what was said before."""

    def __init__(self, app: App[Any], title: str) -> None:
        self._app = app
        self._title = title
        self._shown: Notification | None = None

    def say(self, message: str, severity: Severity = "information") -> None:
        """Say this instead of what is still shown."""
        self.clear()
        self._shown = toast(self._app, self._title, message, severity)

    def clear(self) -> None:
        """Take away what is still shown: Textual itself offers to take away all or none."""
        if self._shown is not None and self._shown in self._app._notifications:  # noqa: SLF001
            self._app._unnotify(self._shown)  # noqa: SLF001
        self._shown = None
