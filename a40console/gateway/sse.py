"""Server-sent events as bytes: whole events out of chunks that are cut anywhere."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
"""Two line ends in a row, whatever their kind: the end of an event."""

_COMMENTS = re.compile(rb"(?::[^\r\n]*(?:\r\n|\n|\r))+")

_DATA = re.compile(rb"(?:\A|(?<=[\r\n]))data: ?([^\r\n]*)")
_FIELD = re.compile(rb"(?:\A|(?<=[\r\n]))(data|event)(?:: ?([^\r\n]*)|(?=[\r\n]|\Z))")
_LONGEST_END = 4
EVENT_LIMIT_BYTES = 4 * 1024 * 1024
"""What is held back of an event whose end does not come."""


class EventSplitter:
    """Cuts a byte stream into events; joined again they are the same bytes.

    A chunk that is exactly one event, as engines send them, comes back as the same object.
    """

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that this chunk completes, terminators included.

        Comment lines pass at once, even without the empty line that should follow them.
        """
        first = chunk.find(b"\n\n")
        if first >= 0 and first == len(chunk) - 2 and not self._tail and b"\r" not in chunk:
            return [chunk]
        searched = max(0, len(self._tail) - _LONGEST_END)
        buffer = self._tail + chunk
        events: list[bytes] = []
        start = 0
        for end in _END.finditer(buffer, searched):
            events.append(buffer[start : end.end()])
            start = end.end()
        self._tail = buffer[start:]
        if _COMMENTS.fullmatch(self._tail) or len(self._tail) > EVENT_LIMIT_BYTES:
            events.append(self.rest())
        return events

    def rest(self) -> bytes:
        """What is held back of an event that has not ended; it is given up."""
        tail, self._tail = self._tail, b""
        return tail


def data_span(event: bytes) -> tuple[int, int] | None:
    """Where the value of the event's one data line stands; None without one or with several."""
    match = _DATA.search(event)
    if match is None or _DATA.search(event, match.end()):
        return None
    return match.span(1)


def data_of(event: bytes) -> dict[str, Any] | None:
    """The JSON object that an event carries; None where it carries none."""
    return read_event(event)[0]


def read_event(event: bytes) -> tuple[dict[str, Any] | None, bool]:
    """The JSON object that an event carries, and whether every client reads the same in it.

    Several data lines are one text, bytes that are no UTF-8 become replacement characters, and
    an object that does not say its type has the event's.
    """
    span = data_span(event)
    text = event[span[0] : span[1]] if span is not None else b"\n".join(_fields(event, b"data"))
    value, sound = _object(text)
    if value is not None and "type" not in value:
        names, sound = _fields(event, b"event"), False
        if names:
            value["type"] = names[-1].decode("utf-8", "replace")
    return value, sound and span is not None


def _fields(event: bytes, name: bytes) -> list[bytes]:
    """The values of an event's lines of this name."""
    if name not in event:
        return []
    return [match[2] or b"" for match in _FIELD.finditer(event) if match[1] == name]


def _object(text: bytes) -> tuple[dict[str, Any] | None, bool]:
    """The object, and whether it is written in UTF-8."""
    try:
        said, sound = text.decode(), True
    except UnicodeDecodeError:
        said, sound = text.decode("utf-8", "replace"), False
    try:
        value = _READ(said)
    except (ValueError, RecursionError):
        return None, False
    return (value, sound) if isinstance(value, dict) else (None, False)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_READ = json.JSONDecoder(parse_constant=_no_number).decode
