"""An answer on its way back: whole events, each read for the meter, some with our additions cut."""

from __future__ import annotations

from typing import Any, Protocol

from a40console.gateway.meter import Passage
from a40console.gateway.sse import EventSplitter

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}
"""The engines' words for the ends that we name otherwise."""


class AnswerReader(Protocol):
    """Understands one API's answers; nothing in an answer can make it fail."""

    passage: Passage
    complete: bool
    """The stream has said that it is at its end."""

    failed: bool
    """The engine has reported an error inside the stream."""

    def event(self, event: bytes) -> bytes:
        """Read one event; the bytes to pass on, empty for an event that the client never sees."""

    def ended(self) -> bool:
        """Whether a stream that the engine closes here in good order is whole."""

    def whole(self, body: bytes) -> None:
        """Read an answer that is not a stream."""


class EventStream:
    """Chunks of an event stream in, the same chunks out, as far as they are whole events.

    Only what an engine has ended is passed on, so that the client never sees a torn event when
    the engine dies; engines send whole events, so nothing waits in practice.
    """

    def __init__(self, reader: AnswerReader) -> None:
        self._reader = reader
        self._splitter = EventSplitter()

    def feed(self, chunk: bytes) -> bytes:
        """What to pass on for this chunk, possibly nothing."""
        events = self._splitter.feed(chunk)
        if len(events) == 1:
            return self._reader.event(events[0])
        return b"".join([self._reader.event(event) for event in events])

    def rest(self) -> bytes:
        """What came after the last whole event of a stream that ended by itself."""
        rest = self._splitter.rest()
        return self._reader.event(rest) if rest else b""


def finish_reason(reason: object) -> str | None:
    """An engine's reason in our words; None for anything but text."""
    return FINISH_REASONS.get(reason, reason) if isinstance(reason, str) else None


def tokens(block: Any, key: str) -> int | None:
    """A token count out of a usage block; None where it is absent or no count."""
    value = block.get(key) if isinstance(block, dict) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value


def text_length(value: object) -> int:
    """The characters of a text, 0 for anything else."""
    return len(value) if isinstance(value, str) else 0
