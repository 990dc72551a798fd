"""The clients' sessions: who they are, and turn by turn where their time and tokens go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import ScreenResume, ScreenSuspend
from textual.geometry import Size

from a40console.errors import ConsoleError
from a40console.model.session import SessionDetail, SessionRequest
from a40console.model.snapshot import Session
from a40console.tui import format as fmt
from a40console.tui.ink import Line, Role, Span, clean, line
from a40console.tui.panels import session_blocks as blocks
from a40console.tui.panels import session_list, session_text, session_timeline
from a40console.tui.panels.frame import heading
from a40console.tui.panels.session_words import CAPTURE, name_of
from a40console.tui.reading import Reading
from a40console.tui.screens.monitor import MonitorScreen
from a40console.tui.screens.session import RequestDialog, SessionDialog
from a40console.tui.widgets.lines import Panel
from a40console.tui.widgets.row_list import RowList

_ASK_EVERY_S = 1.0
_TURNS = 100
_MOST_ROWS = {"-tiny": 0, "-short": 4, "-normal-height": 8, "-tall": 12}
"""Sessions that are listed at once, by the height of the screen; without a body, all."""


class SessionsScreen(MonitorScreen):
    """Asks for the chosen session while it is in front, and not while the picture is paused."""

    CSS_PATH = ["monitor.tcss", "sessions.tcss"]
    VIEW = "view.sessions"
    AUTO_FOCUS = "#list"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open what is under the cursor", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._detail: SessionDetail | None = None
        self._trouble = ""
        self._wanted = asyncio.Event()
        self._listed: RowList[Session] = RowList(
            lambda reading: session_list.sessions_of(reading.snapshot),
            key=lambda session: session.session,
            draw=lambda session, width, here, focused: session_list.row(
                session, width, here=here, focused=focused
            ),
            head=lambda reading, width: [session_list.header(width)],
            none=session_list.nothing,
            say=session_list.notes,
            dom_id="list",
        )
        self._turns: RowList[SessionRequest] = RowList(
            lambda reading: self._timeline(),
            key=lambda request: request.request_id,
            draw=self._turn,
            head=self._turns_head,
            none=self._no_turns,
            say=session_timeline.notes,
            dom_id="turns",
        )

    def compose_body(self) -> ComposeResult:
        """The sessions; of the chosen one a summary, its turns, and what else is known."""
        yield self._listed
        yield Panel(self._heading, dom_id="heading")
        yield Panel(self._summary, dom_id="summary")
        with Container(id="body"):
            yield self._turns
            yield Panel(self._blocks, dom_id="blocks")

    @property
    def chosen(self) -> Session | None:
        """The session under the cursor."""
        return self._listed.chosen

    @on(ScreenResume)
    def _begin(self) -> None:
        self._follow()

    @on(ScreenSuspend)
    def _pause(self) -> None:
        self.workers.cancel_group(self, "session")

    @work(group="session", exclusive=True)
    async def _follow(self) -> None:
        while True:
            chosen = self.chosen
            if chosen is not None and not (self._is_shown(chosen) and self._is_paused):
                await self._ask(chosen)
            self._wanted.clear()
            try:
                async with asyncio.timeout(_ASK_EVERY_S):
                    await self._wanted.wait()
            except TimeoutError:
                continue

    async def _ask(self, chosen: Session) -> None:
        try:
            client = await self.app.feed.client()
            detail = await client.session(chosen.session, turns=_TURNS)
            self._trouble = ""
        except ConsoleError as error:
            self._trouble = error.message
        else:
            if not self._is_shown(chosen):
                self._turns.begin_anew()
            self._detail = detail
        self._draw_chosen()

    def _is_shown(self, session: Session) -> bool:
        return self._detail is not None and self._detail.session == session.session

    @property
    def _is_paused(self) -> bool:
        return self.app.drawn.paused_s is not None

    def show(self, reading: Reading) -> None:
        """Share the rows between the list and what is below, and draw."""
        listed = session_list.sessions_of(reading.snapshot)
        self.set_class(not listed, "-none")
        if listed:
            rows = 1 + min(len(listed), self._most_rows())
            self._listed.styles.height = rows if self._most_rows() else "1fr"
        else:
            self._listed.styles.height = None
        super().show(reading)
        if self.chosen is not None and not self._is_shown(self.chosen):
            self._wanted.set()

    def on_resize(self) -> None:
        """Share the rows anew once the screen knows how high it is."""
        self.call_after_refresh(lambda: self.show(self.app.drawn))

    def _most_rows(self) -> int:
        return next((most for name, most in _MOST_ROWS.items() if self.has_class(name)), 4)

    @on(RowList.CursorMoved)
    def _choose_other(self) -> None:
        self._wanted.set()
        self._draw_chosen()

    @on(RowList.Chosen)
    def _clicked(self, event: RowList.Chosen) -> None:
        self.action_open()

    def action_open(self) -> None:
        """The session in full, or the request where the cursor of the turns has the focus."""
        chosen, request = self.chosen, self._turns.chosen
        if self.focused is self._turns and request is not None and self._shown is not None:
            self.app.push_screen(RequestDialog(self._shown.session, request))
        elif chosen is not None:
            self.app.push_screen(SessionDialog(chosen))

    def _draw_chosen(self) -> None:
        for name in ("#heading", "#summary", "#turns", "#blocks"):
            for panel in self.query(name).results(Panel):
                panel.show(self.app.drawn)

    @property
    def _shown(self) -> SessionDetail | None:
        """The chosen session in full; None until it was fetched."""
        chosen = self.chosen
        return self._detail if chosen is not None and self._is_shown(chosen) else None

    def _timeline(self) -> Sequence[SessionRequest]:
        return () if self._shown is None else tuple(reversed(self._shown.timeline))

    def _turn(self, request: SessionRequest, width: int, here: bool, focused: bool) -> Line:
        scale_s = session_timeline.scale_of(self._timeline())
        return session_timeline.row(request, width, scale_s, here=here, focused=focused)

    def _turns_head(self, reading: Reading, width: int) -> Sequence[Line]:
        if self._shown is None:
            return []
        return [session_timeline.title(self._shown, width), session_timeline.header(width)]

    def _no_turns(self, reading: Reading, width: int) -> Sequence[Line]:
        if self._trouble:
            return [line(Span(f"  ✖ {clean(self._trouble)}", Role.BAD))]
        said = "nothing of it is kept" if self._shown else "it is fetched"
        return [line(Span(f"  – {said}", Role.MUTED))]

    def _heading(self, reading: Reading, size: Size) -> list[Line]:
        chosen = self.chosen
        if chosen is None:
            return []
        name = f"Session {name_of(chosen.session)}"
        if chosen.capturing:
            name = f"{CAPTURE} CAPTURE {name}"
        tail = f"since {fmt.clock(chosen.started_at)}, {fmt.plural(chosen.turns, 'turn')} in "
        tail += fmt.plural(chosen.requests, "request")
        place, count = self._listed.place
        tail += f", {place} of {count}" if count > 1 else ""
        return [heading(name, tail, size.width, Role.BAD if chosen.capturing else Role.TITLE)]

    def _summary(self, reading: Reading, size: Size) -> list[Line]:
        detail = self._shown
        return [] if detail is None else [session_text.summary(detail, size.width)]

    def _blocks(self, reading: Reading, size: Size) -> list[Line]:
        detail = self._shown
        if detail is None or size.height < 1:
            return []
        found = reading.snapshot.findings
        if size.height <= 6:
            return blocks.brief(detail, found, size.width)[: size.height]
        return session_text.overview(detail, found, size)
