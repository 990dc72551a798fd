"""Which part of the past is looked at, and the pages of the service's history that show it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor

from a40console.model.control import History, HistoryPoint
from a40console.model.figures import Figure, Missing

SPANS_S = (300.0, 900.0, 3600.0, 21_600.0, 86_400.0)
"""Spans that the time axis can cover: 5 min to 24 h."""

SPEED_SPAN_S = 900.0
"""The span it covers at first."""

PAGE_POINTS = 600
"""Points of a page: enough for the widest chart, fine enough that no cell of one stays empty."""

_PAGES = 8
_STEPS = 6
"""Steps back or forward that make one span."""

_CLOSE = 0.01
"""Share of the span that may be missing at its begin: less than a cell of the charts."""

_AFTER = 0.1
"""Share of the span that is shown after an instant that is looked at."""


@dataclass(frozen=True, slots=True)
class TimeView:
    """The part of time that charts, sparks and the events on their axis cover."""

    span_s: float = SPEED_SPAN_S
    end_s: float | None = None
    """Unix time of its right edge; None follows the present."""

    @property
    def live(self) -> bool:
        """Whether it ends now."""
        return self.end_s is None

    def window(self, now_s: float) -> tuple[float, float]:
        """Its begin and its end, as Unix times."""
        end_s = now_s if self.end_s is None else self.end_s
        return end_s - self.span_s, end_s

    def longer(self) -> TimeView:
        """The next longer span with the same end."""
        return replace(self, span_s=next((s for s in SPANS_S if s > self.span_s), SPANS_S[-1]))

    def shorter(self) -> TimeView:
        """The next shorter span with the same end."""
        return replace(
            self, span_s=next((s for s in reversed(SPANS_S) if s < self.span_s), SPANS_S[0])
        )

    def back(self, now_s: float, oldest_s: float | None = None) -> TimeView:
        """A step back, not beyond the oldest reading that is kept."""
        _, end_s = self.window(now_s)
        earlier_s = end_s - self.span_s / _STEPS
        if oldest_s is not None:
            earlier_s = min(end_s, max(earlier_s, oldest_s + self.span_s / _STEPS))
        return replace(self, end_s=earlier_s) if earlier_s < now_s else self

    def forward(self, now_s: float) -> TimeView:
        """A step forward; beyond now it follows the present again."""
        if self.end_s is None:
            return self
        later_s = self.end_s + self.span_s / _STEPS
        return replace(self, end_s=None if later_s >= now_s else later_s)

    def around(self, at_s: float, now_s: float) -> TimeView:
        """The view that ends shortly after an instant."""
        end_s = at_s + _AFTER * self.span_s
        return replace(self, end_s=None if end_s >= now_s else end_s)

    def now(self) -> TimeView:
        """The same span, following the present."""
        return replace(self, end_s=None)


LIVE = TimeView()
"""What is looked at at first: the last quarter of an hour."""


@dataclass(frozen=True, slots=True)
class Page:
    """One span of time on a fixed grid: what is asked of the service, and kept, at once."""

    span_s: float
    number: int
    """How many such spans lie between 1970 and it."""

    @property
    def since_s(self) -> float:
        """Unix time at which it begins."""
        return self.number * self.span_s

    @property
    def until_s(self) -> float:
        """Unix time at which it ends."""
        return (self.number + 1) * self.span_s


@dataclass(frozen=True, slots=True)
class _Fetched:
    until_s: float
    """How far the answer reaches: a page of the present is not whole."""

    step_s: float
    points: tuple[HistoryPoint, ...]


class Timeline:
    """Pages of history that were fetched, the least used of which are forgotten."""

    def __init__(self) -> None:
        self.version = 0
        """Changes with every page."""

        self.oldest_s: Figure = Missing("the service has not told its history yet")
        self.kept_s = SPANS_S[-1]
        """Seconds of the past that the service keeps before it forgets them."""

        self.trouble = ""
        """Why the last fetch failed, or why the disk keeps nothing; empty for neither."""

        self._pages: OrderedDict[Page, _Fetched] = OrderedDict()

    def needed(
        self, view: TimeView, now_s: float, known_from_s: float | None
    ) -> tuple[Page, float] | None:
        """The next page to fetch and where it should end; None where all that is shown is here.

        Args:
            view: What is shown.
            now_s: Unix time.
            known_from_s: Since when the console itself has seen every second.
        """
        since_s, until_s = view.window(now_s)
        if known_from_s is not None:
            until_s = min(until_s, known_from_s)
        if until_s - since_s < _CLOSE * view.span_s:
            return None
        for page in _pages_of(view.span_s, since_s, until_s):
            fetched = self._pages.get(page)
            wanted_s = min(page.until_s, until_s)
            if fetched is None or fetched.until_s < wanted_s:
                return page, min(page.until_s, now_s)
        return None

    def put(self, page: Page, until_s: float, history: History) -> None:
        """Keep a page that was fetched up to an instant."""
        self._pages[page] = _Fetched(until_s, history.step_s, history.points)
        self._pages.move_to_end(page)
        while len(self._pages) > _PAGES:
            self._pages.popitem(last=False)
        self.oldest_s = history.oldest_s
        self.kept_s = max((tier.span_s for tier in history.retention), default=self.kept_s)
        self.trouble = history.trouble or ""
        self.version += 1

    def points(self, view: TimeView, now_s: float) -> Iterator[HistoryPoint]:
        """The points that are here of what is shown, oldest first."""
        since_s, until_s = view.window(now_s)
        for page in _pages_of(view.span_s, since_s, until_s):
            fetched = self._pages.get(page)
            if fetched is not None:
                yield from (
                    point
                    for point in fetched.points
                    if since_s - fetched.step_s < point.at_s <= until_s
                )

    def step_s(self, view: TimeView, now_s: float) -> float:
        """The coarsest step of the pages that are shown."""
        pages = _pages_of(view.span_s, *view.window(now_s))
        return max((self._pages[page].step_s for page in pages if page in self._pages), default=1.0)


def _pages_of(span_s: float, since_s: float, until_s: float) -> list[Page]:
    first, end = floor(since_s / span_s), ceil(until_s / span_s)
    return [Page(span_s, number) for number in range(first, end)]
