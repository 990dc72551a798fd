"""The engine's answer as the client's, for either route: read for the meter, guarded, passed on."""

from __future__ import annotations

import json
from typing import Any, Protocol

from a40console.gateway.anthropic.guard import Guard
from a40console.gateway.anthropic.stream import MessagesReader
from a40console.gateway.meter import Passage
from a40console.gateway.openai import OpenAIReader
from a40console.gateway.refusals import ENDED_BY_OPERATOR
from a40console.gateway.sse import EventSplitter, data_of, read_event
from a40console.gateway.translation import ChatToMessages

_BROKEN_OFF = "The engine ended this answer before it was complete."
_ENDS = frozenset({"message_delta", "message_stop", "error"})


class Answer(Protocol):
    """One answer on its way to a client of the Messages API."""

    guard: Guard

    def feed(self, chunk: bytes) -> bytes:
        """What goes out for what came of a stream, cut anywhere."""

    def end(self, message: str, *, broken: bool) -> bytes:
        """What goes out when no more comes; `message` is for an answer that is cut short."""

    def whole(self, body: bytes) -> dict[str, Any] | None:
        """The message in a body that is not a stream; None where there is none in it."""


class NativeAnswer:
    """Of an engine that has the Messages API itself.

    vLLM gives no reason to stop exactly where it did not come to an end, as when its operator
    ends a request: with `null_is_broken_off` that is an error, as it is by the other route.
    """

    def __init__(
        self, reader: MessagesReader, guard: Guard, *, null_is_broken_off: bool = False
    ) -> None:
        self.guard = guard
        self._reader = reader
        self._null_is_broken_off = null_is_broken_off
        self._splitter = EventSplitter()

    def feed(self, chunk: bytes) -> bytes:
        """Event by event; what is whole passes at once, a torn event waits for its rest."""
        events = self._splitter.feed(chunk)
        if len(events) == 1:
            return self._event(events[0])
        return b"".join([self._event(event) for event in events])

    def end(self, message: str, *, broken: bool) -> bytes:
        """The end, with an error where the engine did not come to one."""
        rest = self._splitter.rest()
        last = self._event(rest) if rest and not broken else b""
        return last + _end(self.guard, self._reader.passage, message)

    def whole(self, body: bytes) -> dict[str, Any] | None:
        """The message as the engine wrote it."""
        message = _object(body)
        if message is None:
            return None
        self._reader.whole(message)
        if self._null_is_broken_off and "content" in message and not message.get("stop_reason"):
            return {"type": "error", "error": {"type": "api_error", "message": _BROKEN_OFF}}
        return message

    def _event(self, event: bytes) -> bytes:
        data, sound = read_event(event)
        if data is None:
            self.guard.dropped += b"data: {" in event
            return b""
        self._reader.read(data)
        if (cut := _cut(self.guard, self._reader.passage, data)) is not None:
            return cut
        if self._null_is_broken_off and _stops_without_reason(data):
            return self.guard.end(_BROKEN_OFF)
        return self.guard.take(data, event if sound else None)


class TranslatedAnswer:
    """Of an engine that only knows chat completions."""

    def __init__(self, reader: OpenAIReader, guard: Guard, chat: ChatToMessages) -> None:
        self.guard = guard
        self._reader = reader
        self._chat = chat
        self._splitter = EventSplitter()

    def feed(self, chunk: bytes) -> bytes:
        """Chunk by chunk, as the events that say the same."""
        return b"".join([self._event(event) for event in self._splitter.feed(chunk)])

    def end(self, message: str, *, broken: bool) -> bytes:
        """The end; a stream without `[DONE]` is whole where its last chunk said why it stopped."""
        rest = self._splitter.rest()
        last = self._event(rest) if rest and not broken else b""
        if self._chat.finished:
            last += self._ended()
        return last + _end(self.guard, self._reader.passage, message)

    def whole(self, body: bytes) -> dict[str, Any] | None:
        """The message that says what the chat completion says."""
        answer = _object(body)
        if answer is None or not isinstance(answer.get("choices"), list):
            return None
        self._reader.whole(body)
        return self._chat.whole(answer)

    def _event(self, event: bytes) -> bytes:
        if b"[DONE]" in event and event.strip() == b"data: [DONE]":
            return self._ended()
        data = data_of(event)
        if data is None:
            self.guard.dropped += b"data: {" in event
            return b""
        self._reader.read(data)
        return self._told(self._chat.feed(data))

    def _ended(self) -> bytes:
        return self._told(self._chat.end())

    def _told(self, events: list[dict[str, Any]]) -> bytes:
        guard, passage, out = self.guard, self._reader.passage, b""
        for event in events:
            cut = _cut(guard, passage, event)
            out += guard.take(event) if cut is None else cut
        return out


def _cut(guard: Guard, passage: Passage, event: dict[str, Any]) -> bytes | None:
    """What goes out in place of the end of an answer that the operator ended: it is not whole.

    Engines give such an answer an end like any other. None where it is no end, or a true one.
    """
    if not passage.is_stopped or event.get("type") not in _ENDS:
        return None
    return _end(guard, passage, ENDED_BY_OPERATOR)


def _end(guard: Guard, passage: Passage, message: str) -> bytes:
    if guard.ended or not passage.is_stopped:
        return guard.end(message)
    return guard.fail("api_error" if guard.begun else "overloaded_error", ENDED_BY_OPERATOR)


def _stops_without_reason(data: dict[str, Any]) -> bool:
    if data.get("type") != "message_delta":
        return False
    delta = data.get("delta")
    return isinstance(delta, dict) and "stop_reason" in delta and delta["stop_reason"] is None


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
