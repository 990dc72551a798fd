"""Instants as the operator reads them: the time of day, and the day where it is another."""

from __future__ import annotations

import re
from datetime import datetime

from a40console.model.instants import iso_utc, unix_s
from a40console.tui.format import clock
from a40console.tui.ink import clean

_INSTANT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")

WIDEST = 12
"""Cells of the longest: `28 Nov 14:07`."""


def day_of(at: str) -> str:
    """The local day of an ISO 8601 instant, for `when`; empty where it is none."""
    at_s = unix_s(at)
    return "" if at_s is None else datetime.fromtimestamp(at_s).astimezone().strftime("%d %b")


def when(at: str, today: str) -> str:
    """The local time of day; of another day than today, the day and the minute."""
    day, time_of_day = day_of(at), clean(clock(at))[:WIDEST]
    return time_of_day if day in {"", today} else f"{day} {time_of_day[:5]}"


def when_s(at_s: float, today: str) -> str:
    """The local time of day of a Unix time, as `when` writes it."""
    return when(iso_utc(at_s), today)


def in_local_time(text: str) -> str:
    """The text with its UTC instants as the local time of day, as every screen shows them."""
    return _INSTANT.sub(lambda found: clock(found[0]), text)


def second_of(at: str) -> str:
    """The local day and time of an ISO 8601 instant: `11-29 14:07:31`; the text where it is none.

    Of lists that are searched and sorted: every row has the same form.
    """
    at_s = unix_s(at)
    if at_s is None:
        return clean(at)
    return datetime.fromtimestamp(at_s).astimezone().strftime("%m-%d %H:%M:%S")
