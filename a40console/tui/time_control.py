"""Time on the screen: which part of it is looked at, and whether the picture stands still."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from a40console.errors import ConsoleError
from a40console.model.figures import number
from a40console.model.instants import iso_utc
from a40console.tui import format as fmt
from a40console.tui.availability import NAMES
from a40console.tui.format import unix_seconds
from a40console.tui.panels.moments import day_of, when_s
from a40console.tui.reading import Reading
from a40console.tui.timeline import LIVE, PAGE_POINTS, Page

if TYPE_CHECKING:
    from a40console.service.client import ServiceClient
    from a40console.tui.app import ConsoleApp

_RETRY_S = 5.0
_EVENTS = 200
_EVENT_PAGES = 10
_FULL = 0.02
"""Share of what the history may keep that may lack where it is full."""


class TimeControl:
    """Holds the view and the frozen picture, and fetches the history that they need."""

    def __init__(self, app: ConsoleApp, clock: Callable[[], float]) -> None:
        self._app = app
        self._clock = clock
        self.view = LIVE
        self._frozen: Reading | None = None
        self._frozen_at_s = 0.0
        self.fetching = False
        """Whether history is under way."""

        self._retry_at_s = 0.0
        self._events_whole = False
        """Whether the journal's begin was reached."""

    def perform(self, command_id: str) -> bool:
        """Do a command that concerns time; answers whether it is one."""
        now_s = self._app.past.now_s
        match command_id:
            case "view.pause":
                self._pause_or_resume()
            case "time.back" if now_s:
                self._go_back(now_s)
            case "time.forward":
                self.view = self.view.forward(now_s)
            case "time.now":
                self.view = self.view.now()
            case "time.shorter":
                self.view = self.view.shorter()
            case "time.longer":
                self.view = self.view.longer()
            case _:
                return command_id == "time.back"
        self._app.show_reading()
        return True

    def _go_back(self, now_s: float) -> None:
        timeline = self._app.past.timeline
        oldest_s = number(timeline.oldest_s)
        earlier = self.view.back(now_s, oldest_s)
        if earlier == self.view and oldest_s is not None:
            self._app.say("Back in time", _at_the_begin(oldest_s, timeline.kept_s, now_s))
        self.view = earlier

    def look_at(self, at_s: float) -> None:
        """Let the view end shortly after an instant."""
        self.view = self.view.around(at_s, self._app.past.now_s)

    def _pause_or_resume(self) -> None:
        if self._frozen is not None:
            self._frozen = None
            return
        reading = self._app.reading
        self._frozen = replace(reading, past=reading.past.frozen())
        self._frozen_at_s = self._clock()

    @property
    def paused(self) -> bool:
        """Whether the picture stands still."""
        return self._frozen is not None

    def drawn(self, live: Reading) -> Reading:
        """What the screen shows: the reading, or the one at which the picture was frozen."""
        frozen = self._frozen
        if frozen is None:
            return live
        return replace(
            frozen,
            view=live.view,
            unread=live.unread,
            paused_s=self._clock() - self._frozen_at_s,
            meanwhile=_meanwhile(frozen, live),
        )

    def fetch(self) -> None:
        """Begin to fetch what is looked at and not here, unless that is under way."""
        if self.fetching or self._app.reading.link.state != "live" or self._needed() is None:
            return
        if self._clock() < self._retry_at_s:
            return
        self.fetching = True
        self._app.run_worker(self._fetch(), group="history", exit_on_error=False)

    def _needed(self) -> tuple[Page, float] | None:
        past = self._app.past
        if not past.speed:
            return None
        return past.timeline.needed(self.view, past.now_s, past.known_from_s)

    async def _fetch(self) -> None:
        timeline = self._app.past.timeline
        try:
            client = await self._app.feed.client()
            while (needed := self._needed()) is not None:
                page, until_s = needed
                history = await client.history(
                    page.since_s - 0.001, until_s=until_s, points=PAGE_POINTS
                )
                timeline.put(page, until_s, history)
                await self._fetch_events(client, page.since_s)
                self._app.show_reading()
        except ConsoleError as error:
            timeline.trouble = error.trouble.message
            self._retry_at_s = self._clock() + _RETRY_S
            self._app.show_reading()
        finally:
            self.fetching = False

    async def _fetch_events(self, client: ServiceClient, since_s: float) -> None:
        """Read the journal back to an instant, a bounded number of pages at a time."""
        past = self._app.past
        for _ in range(_EVENT_PAGES):
            oldest = past.oldest_event
            if self._events_whole or oldest is None or _before(oldest.at, since_s):
                return
            page = await client.events(0, _EVENTS, before=oldest.id)
            past.mark(page)
            self._events_whole = len(page) < _EVENTS


def _at_the_begin(oldest_s: float, kept_s: float, now_s: float) -> str:
    """Why there is no going back further: it was not recorded, or is not kept any more."""
    kept = f"{kept_s / 3600:.0f} h"
    if now_s - oldest_s >= (1 - _FULL) * kept_s:
        return f"Nothing older is kept: the history reaches {kept} back."
    begin = when_s(oldest_s, day_of(iso_utc(now_s)))
    ago = fmt.duration(now_s - oldest_s)
    return (
        f"The history begins at {begin}, {ago} ago: nothing was recorded before. It keeps {kept}."
    )


def _before(at: str, since_s: float) -> bool:
    at_s = unix_seconds(at)
    return at_s is not None and at_s < since_s


def _meanwhile(frozen: Reading, live: Reading) -> str:
    """What the operator must know although the picture stands still."""
    if live.link.state != "live":
        return "no service answers"
    state = live.snapshot.engine.state
    return NAMES[state] if state is not frozen.snapshot.engine.state else ""
