"""Timed values gathered in equal spans of time, so that a second costs one value, not all."""

from __future__ import annotations

import math
from typing import Literal

Kind = Literal["mean", "highest"]


class Bins:
    """Values by span on a fixed grid of time: each keeps its place until the grid moves on."""

    __slots__ = ("_counts", "_first", "_highest", "_last", "_sums", "last_s", "width_s")

    def __init__(self, width_s: float) -> None:
        self.width_s = width_s
        self.last_s = -math.inf
        """The newest instant that was added."""

        self._sums: dict[int, float] = {}
        self._counts: dict[int, int] = {}
        self._highest: dict[int, float] = {}
        self._first: dict[int, tuple[float, bool]] = {}
        """By span the first instant that was added, and whether it has a value."""

        self._last: dict[int, tuple[float, bool]] = {}
        """By span the last instant that was added, and whether it has a value."""

    def add(self, at_s: float, value: float | None) -> None:
        """Add a value, later than those before; None tells that none is known of the instant."""
        self.last_s = max(self.last_s, at_s)
        index = math.floor(at_s / self.width_s)
        self._last[index] = instant = at_s, value is not None
        self._first.setdefault(index, instant)
        if value is None:
            return
        self._sums[index] = self._sums.get(index, 0.0) + value
        self._counts[index] = self._counts.get(index, 0) + 1
        self._highest[index] = max(self._highest.get(index, value), value)

    def values(self, end_s: float, number: int, kind: Kind = "mean") -> list[float | None]:
        """The `number` spans that end with the one of `end_s`; None where nothing was added."""
        last = math.floor(end_s / self.width_s)
        first = last - number + 1
        self._forget(first)
        if kind == "highest":
            return [self._highest.get(index) for index in range(first, last + 1)]
        counts, sums = self._counts, self._sums
        return [
            sums[index] / counts[index] if index in counts else None
            for index in range(first, last + 1)
        ]

    def bridged(
        self, end_s: float, number: int, reach_s: float, kind: Kind = "mean"
    ) -> list[float | None]:
        """The same, with the spans in which no instant lies on a straight line across them.

        Readings a second apart leave spans of less than a second empty; that is no gap in time.
        One is an instant whose value is not known, or a distance of more than `reach_s`.
        """
        filled = self.values(end_s, number, kind)
        first = math.floor(end_s / self.width_s) - number + 1
        before: int | None = None
        for here in range(number):
            if first + here not in self._first:
                continue
            if before is not None and self._joined(first + before, first + here, reach_s):
                low, high = filled[before] or 0.0, filled[here] or 0.0
                for between in range(before + 1, here):
                    filled[between] = low + (high - low) * (between - before) / (here - before)
            before = here
        return filled

    def _joined(self, left: int, right: int, reach_s: float) -> bool:
        """Whether what lies between two spans is known from both its ends."""
        (since_s, begins), (until_s, ends) = self._last[left], self._first[right]
        return begins and ends and until_s - since_s <= reach_s

    def _forget(self, first: int) -> None:
        """Drop what lies before the first span that is shown."""
        if len(self._first) > 64 and next(iter(self._first)) < first - 32:
            for index in [index for index in self._first if index < first]:
                for held in (self._counts, self._sums, self._highest, self._first, self._last):
                    held.pop(index, None)
