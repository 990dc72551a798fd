"""The part of the control API that looks back: history, events, digest, starts, spending."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from a40console.errors import UsageError
from a40console.model.control import Digest
from a40console.model.event import SEVERITIES, Severity
from a40console.model.figures import Estimated, number
from a40console.model.instants import unix_s
from a40console.operations.past_starts import KEPT_STARTS, PastStarts
from a40console.service.chronicle import Chronicle
from a40console.service.cost import Terms
from a40console.service.digest import Records, Window, digest
from a40console.service.history import MOST_POINTS, Question
from a40console.service.journal import Journal, Pages, Wanted
from a40console.service.query import as_json, count, real_number, whole_number
from a40console.service.read_marks import ReadMarks
from a40console.service.spending import spending_report, usd_of

DEFAULT_POINTS = 900
MOST_EVENTS = 5000
DAY_S = 86_400.0
LAST_INSTANT_S = 253_402_214_400.0
"""The last day that a date can name: 9999-12-31."""

Endpoint = Callable[[Request], Awaitable[Response]]


class PastRoutes:
    """Answers what was.

    Args:
        journal: What happened.
        chronicle: Speeds, tokens and dollars.
        starts: The engine starts.
        marks: Up to where the operator has read.
        terms: What is paid now.
        wall: Unix time.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        chronicle: Chronicle,
        starts: PastStarts,
        marks: ReadMarks,
        terms: Callable[[], Terms],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._chronicle = chronicle
        self._starts = starts
        self._marks = marks
        self._terms = terms
        self._wall = wall

    def reads(self) -> Mapping[str, Endpoint]:
        """Path to what answers a GET."""
        return {
            "/v1/history": self._history,
            "/v1/events": self._events,
            "/v1/digest": self._digest,
            "/v1/starts": self._list_starts,
            "/v1/spending": self._spending,
            "/v1/read-mark": self._read_mark,
        }

    def posts(self) -> Mapping[str, Endpoint]:
        """Path to what answers a POST."""
        return {"/v1/read-mark": self._set_mark}

    async def _history(self, request: Request) -> Response:
        until = real_number(request, "until", 0.0) if "until" in request.query_params else None
        question = Question(
            since_s=real_number(request, "since", 0.0),
            until_s=until,
            points=min(count(request, "points", DEFAULT_POINTS), MOST_POINTS),
            step_s=real_number(request, "step", 0.0),
        )
        return await asyncio.to_thread(as_json, await self._chronicle.history(question))

    async def _events(self, request: Request) -> Response:
        before = whole_number(request, "before", 0) if "before" in request.query_params else None
        wanted = Wanted(
            since=whole_number(request, "since", 0),
            before=before,
            severity=_severity(request),
            kind=request.query_params.get("kind", ""),
            since_s=self._instant(real_number(request, "since_s", 0.0)),
            limit=min(count(request, "limit", 200), MOST_EVENTS),
        )
        pages = self._journal.pages()
        return await asyncio.to_thread(lambda: as_json(pages.find(wanted)))

    async def _digest(self, request: Request) -> Response:
        pages, now_s = self._journal.pages(), self._wall()
        if "since_event" in request.query_params:
            since = whole_number(request, "since_event", 0)
            window = await asyncio.to_thread(_since_event, pages, since, now_s)
            if "since" in request.query_params:
                since_s = self._instant(real_number(request, "since", 0.0))
                unread_s = await asyncio.to_thread(_first_after_s, pages, since)
                window = replace(window, since_s=min(since_s, unread_s))
        else:
            since_s = self._instant(real_number(request, "since", -DAY_S))
            window = await asyncio.to_thread(_since_instant, pages, since_s, now_s)
        return as_json(await self._look_back(window, pages))

    async def _look_back(self, window: Window, pages: Pages) -> Digest:
        book = self._chronicle.book
        span, terms = book.span(window.since_s, window.until_s), self._terms()
        question = Question(
            since_s=window.since_s, until_s=window.until_s, points=MOST_POINTS, step_s=0.0
        )
        wanted = Wanted(since=window.since_event, limit=MOST_EVENTS)
        known = span.tally if span.tally.observed_s else None
        usd = usd_of(known, terms, window.since_s, window.until_s)
        by_rent = terms.rented(window.since_s, window.until_s) is not None
        if not (span.dollars_exact or by_rent) and (value := number(usd)) is not None:
            usd = Estimated(value)
        events = await asyncio.to_thread(pages.find, wanted)
        records = Records(
            events=events,
            starts=self._starts.list(KEPT_STARTS),
            counted_since_s=span.begin_s,
            tally=span.tally,
            usd=usd,
            history=await self._chronicle.history(question),
        )
        oldest_s = book.oldest_s
        reaches = oldest_s is not None and oldest_s <= window.since_s and self._chronicle.complete
        whole = window.complete and reaches and len(events) < MOST_EVENTS
        return digest(replace(window, complete=whole), records)

    async def _list_starts(self, request: Request) -> Response:
        return as_json(self._starts.list(count(request, "limit", 20)))

    async def _spending(self, request: Request) -> Response:
        since_s = self._instant(real_number(request, "since", -DAY_S))
        book, terms = self._chronicle.book, self._terms()
        return as_json(spending_report(book, terms, since_s=since_s, now_s=self._wall()))

    async def _read_mark(self, request: Request) -> Response:
        return as_json(self._marks.mark)

    async def _set_mark(self, request: Request) -> Response:
        try:
            event_id = (await request.json())["event"]
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise UsageError('A read mark is a JSON object: {"event": ID}') from error
        if type(event_id) is not int or event_id < 0:
            raise UsageError("event must be the id of an event")
        return as_json(self._marks.set(event_id))

    def _instant(self, at_s: float) -> float:
        """A Unix time, of 1970 to 9999; a negative one counts back from now."""
        return min(max(0.0, at_s if at_s >= 0 else self._wall() + at_s), LAST_INSTANT_S)


def _severity(request: Request) -> Severity:
    asked = request.query_params.get("severity", "info")
    for severity in SEVERITIES:
        if severity == asked:
            return severity
    raise UsageError(f"severity must be one of {', '.join(SEVERITIES)}")


def _since_event(pages: Pages, event_id: int, now_s: float) -> Window:
    """From an event on, or from the oldest that is kept."""
    last = pages.find(Wanted(since=max(0, event_id - 1), before=event_id + 1, limit=1))
    after = last or pages.first_after(event_id)
    return Window(
        since_s=(unix_s(after[0].at) or 0.0) if after else now_s,
        until_s=now_s,
        since_event=event_id,
        until_event=max(event_id, pages.newest_id),
        complete=bool(last) or not after or after[0].id == event_id + 1,
    )


def _first_after_s(pages: Pages, event_id: int) -> float:
    """When the first event after that one happened: the time told begins no later than it."""
    after = pages.first_after(event_id)
    return (unix_s(after[0].at) or math.inf) if after else math.inf


def _since_instant(pages: Pages, since_s: float, now_s: float) -> Window:
    inside = pages.find(Wanted(since_s=since_s, limit=MOST_EVENTS))
    first_id = inside[0].id if inside else pages.newest_id + 1
    oldest = pages.first_after(0)
    return Window(
        since_s=since_s,
        until_s=now_s,
        since_event=first_id - 1,
        until_event=pages.newest_id,
        complete=bool(oldest) and (unix_s(oldest[0].at) or 0.0) <= since_s,
    )
