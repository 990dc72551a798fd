"""The drill-ins of the sessions screen: a session in full, and one of its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import work

from a40console.errors import ConsoleError
from a40console.model.session import SessionDetail, SessionRequest
from a40console.model.snapshot import Session
from a40console.tui.ink import Line, Role, wrap
from a40console.tui.panels import session_text
from a40console.tui.panels.session_words import name_of
from a40console.tui.panels.slot_detail import request_detail
from a40console.tui.screens.dialog import Fitted, TextDialog

if TYPE_CHECKING:
    from a40console.tui.app import ConsoleApp

_ASK_EVERY_S = 1.0
_TURNS = 100


class FollowingDialog(TextDialog):
    """A text that is drawn again each second while it is open."""

    app: ConsoleApp

    def redraw(self) -> None:
        """Draw it again, and take another height where it has other lines."""
        text = self.query_one("#text", Fitted)
        rows = len(text.lines)
        text.redraw()
        if len(text.lines) != rows:
            self.on_resize()


class SessionDialog(FollowingDialog):
    """A session with everything known of it; a click on a turn opens the request."""

    def __init__(self, session: Session) -> None:
        super().__init__(f"Session {name_of(session.session)}", self._draw_session)
        self._session = session.session
        self._detail: SessionDetail | None = None
        self._trouble = ""

    def on_mount(self) -> None:
        """Follow it while it is open, unless the picture is paused."""
        self._ask()
        self.set_interval(_ASK_EVERY_S, self._ask_again, name="follow")

    def _ask_again(self) -> None:
        if self.app.drawn.paused_s is None:
            self._ask()

    @work(group="session", exclusive=True)
    async def _ask(self) -> None:
        try:
            client = await self.app.feed.client()
            self._detail = await client.session(self._session, turns=_TURNS)
            self._trouble = ""
        except ConsoleError as error:
            self._trouble = error.message
        self.redraw()

    def action_request(self, request_id: str) -> None:
        """Open one of its requests."""
        timeline = self._detail.timeline if self._detail else ()
        request = next((each for each in timeline if each.request_id == request_id), None)
        if request is not None:
            self.app.push_screen(RequestDialog(self._session, request))

    def _draw_session(self, width: int) -> list[Line]:
        trouble = wrap(f"✖ {self._trouble}", width, Role.BAD) if self._trouble else []
        if self._detail is None:
            return trouble or wrap("– it is fetched", width, Role.MUTED)
        found = self.app.drawn.snapshot.findings
        return [*trouble, *session_text.full(self._detail, found, width)]


class RequestDialog(FollowingDialog):
    """One request of a session: as the session knows it, and as this console saw it run."""

    def __init__(self, session: str, request: SessionRequest) -> None:
        super().__init__(f"Request {request.request_id}", self._draw_request)
        self._session = session
        self._request = request

    def on_mount(self) -> None:
        """Follow it while it runs."""
        self.set_interval(_ASK_EVERY_S, self._ask_again, name="follow")

    def _ask_again(self) -> None:
        if self._request.live and self.app.drawn.paused_s is None:
            self._ask()

    @work(group="session", exclusive=True)
    async def _ask(self) -> None:
        try:
            client = await self.app.feed.client()
            detail = await client.session(self._session, turns=_TURNS)
        except ConsoleError:
            return  # what is shown stays as it is; the verdict says that no service answers
        name = self._request.request_id
        newest = (each for each in detail.timeline if each.request_id == name)
        self._request = next(newest, self._request)
        self.redraw()

    def _draw_request(self, width: int) -> list[Line]:
        lines = session_text.request_text(self._request, width)
        reading = self.app.drawn
        if self._request.request_id not in reading.past.tracks:
            return lines
        return [*lines, (), *request_detail(reading, self._request.request_id, width)]
