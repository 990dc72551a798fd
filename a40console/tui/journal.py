"""The journal as the events screen holds it: newest first, as far back as somebody scrolled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a40console.model.event import Event, Severity, gravity

if TYPE_CHECKING:
    from a40console.service.client import ServiceClient

PAGE = 200
_NEWER_LIMIT = 1000
_SEARCH_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which entries of the journal are listed."""

    severity: Severity = "info"
    """The least grave that is listed."""

    text: str = ""
    """What its kind, text or evidence must hold, whatever the case."""

    def keeps(self, event: Event) -> bool:
        """Whether the entry is listed."""
        if gravity(event.severity) < gravity(self.severity):
            return False
        needle = self.text.casefold()
        return not needle or any(needle in part.casefold() for part in _words(event))

    @property
    def narrows(self) -> bool:
        """Whether anything may be left out."""
        return self != Filter()


def _words(event: Event) -> Iterable[str]:
    yield event.kind
    yield event.text
    for name, value in event.data.items():
        yield f"{name} {value}"


class JournalPages:
    """Entries that pass the filter, fetched a page at a time.

    The service keeps about 40,000 entries: who scrolls through all of them holds about 25 MB.
    """

    def __init__(self) -> None:
        self.filter = Filter()
        self.entries: list[Event] = []
        """Newest first."""

        self.whole = False
        """Whether the journal's begin was reached."""

        self.read = 0
        """Entries that were looked at, kept or not."""

        self._newest = 0
        self._oldest: int | None = None

    def begin_again(self, filter_: Filter) -> None:
        """Forget what is held, and keep what passes this filter from now on."""
        self.filter = filter_
        self.entries = []
        self.whole = False
        self.read = 0
        self._newest = 0
        self._oldest = None

    async def catch_up(self, client: ServiceClient, last_id: int) -> bool:
        """Fetch what was written since; answers whether anything was."""
        if last_id < self._newest:
            self.begin_again(self.filter)  # another journal: the service's home was wiped
        if last_id == self._newest or self._oldest is None:
            return False
        newer = await client.events(self._newest, _NEWER_LIMIT, severity=self.filter.severity)
        if len(newer) == _NEWER_LIMIT:
            self.begin_again(self.filter)  # so much was missed that there may be a gap
            return True
        self._newest = max(last_id, *(event.id for event in newer), self._newest)
        self.read += len(newer)
        self.entries[:0] = [event for event in reversed(newer) if self.filter.keeps(event)]
        return bool(newer)

    async def go_back(self, client: ServiceClient) -> bool:
        """Fetch the page before what is held; answers whether there may be more."""
        if self.whole:
            return False
        filter_, before = self.filter, self._oldest
        limit = _SEARCH_PAGE if filter_.text else PAGE
        page = await client.events(0, limit, before=before, severity=filter_.severity)
        if filter_ != self.filter or before != self._oldest:
            return True  # asked for something else meanwhile
        self.read += len(page)
        if page:
            self._newest = max(self._newest, page[-1].id)
            self._oldest = page[0].id
        elif self._oldest is None:
            self._oldest = self._newest + 1
        self.entries += [event for event in reversed(page) if filter_.keeps(event)]
        self.whole = len(page) < limit
        return not self.whole
