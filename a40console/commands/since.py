"""How far back: `2h`, `90m`, `1d12h`, an instant, or the id of an event."""

from __future__ import annotations

import re
from datetime import datetime

from a40console.errors import UsageError

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def since_seconds(text: str) -> float:
    """A time span as a negative number of seconds, an ISO 8601 instant as Unix time.

    Raises:
        UsageError: If it is neither.
    """
    word = text.strip().lower()
    if _SPAN.fullmatch(word):
        return -sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(word))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(
            f"{text!r} is no time span and no instant",
            remedy="Write 90s, 15m, 2h, 1d, or an instant such as 2026-11-29T10:00:00Z.",
        ) from error
    return moment.timestamp()


def event_id(text: str) -> int | None:
    """The id of an event, if the text is one."""
    return int(text) if text.isascii() and text.isdigit() else None
