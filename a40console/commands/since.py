"""How far back: `2h`, `90m`, `1d12h`, an instant, or the id of an event."""

from __future__ import annotations

import re
from datetime import datetime

from a40console.errors import UsageError

LONGEST_S = 36_500 * 86_400
"""A hundred years."""

_ID_DIGITS = 18
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_SHOWN_CHARS = 60
_REMEDY = "Write 90s, 15m, 2h, 1d, or an instant such as 2026-11-29T10:00:00Z."
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")


def since_seconds(text: str) -> float:
    """A time span as a negative number of seconds, an ISO 8601 instant as Unix time.

    Raises:
        UsageError: If it is neither, or lies too far back.
    """
    word = text.strip().lower()
    if _SPAN.fullmatch(word):
        span_s = sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(word))
        if span_s > LONGEST_S:
            raise _too_far(text)
        return -span_s
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(
            f"{_shortened(text)} is no time span and no instant", remedy=_REMEDY
        ) from error
    try:
        at_s = moment.timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise _too_far(text) from error
    if at_s < 0:
        raise _too_far(text)
    return at_s


def event_id(text: str) -> int | None:
    """The id of an event, if the text is one.

    Raises:
        UsageError: If it has more digits than any id.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    if len(text) > _ID_DIGITS:
        raise UsageError(f"{_shortened(text)} is no id of an event", remedy=_REMEDY)
    return int(text)


def _too_far(text: str) -> UsageError:
    return UsageError(f"{_shortened(text)} lies too far back or ahead", remedy=_REMEDY)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")
