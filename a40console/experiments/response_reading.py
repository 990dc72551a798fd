"""What the bytes of a response mean: a stream of events, a whole body, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from a40console.experiments.answer import Answer, error_text
from a40console.experiments.anthropic_answer import read_count, read_event, read_whole
from a40console.experiments.connection import ExchangeError
from a40console.experiments.openai_answer import read_chunk, read_done

LONGEST_REFUSAL_BYTES = 64 * 1024
LARGEST_BYTES = 128 * 1024 * 1024
"""Of a body: a server that sends more answers nothing that was asked."""

_LONGEST_SHOWN = 120
_NOT_AS_EXPECTED = (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError)
"""What reading JSON of another shape ends in."""


class ResponseReading:
    """Reads one response into an `Answer`, piece by piece."""

    def __init__(self, path: str, *, streamed: bool) -> None:
        self.answer = Answer()
        self._streamed = streamed
        self._anthropic = "/messages" in path
        self._counts = path.endswith("/count_tokens")
        self._events = StreamEvents()
        self._body: list[bytes] = []
        self._received_bytes = 0
        self._is_stream = False
        self._elsewhere = ""

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Status and headers, before any piece."""
        said = headers.get("content-type", "").partition(";")[0].strip().lower()
        self._is_stream = status == 200 and said == "text/event-stream"
        self._elsewhere = headers.get("location", "")

    def piece(self, at_s: float, data: bytes) -> None:
        """A piece of the body.

        Raises:
            ExchangeError: If it has become larger than any answer is.
        """
        self._received_bytes += len(data)
        if self._received_bytes > LARGEST_BYTES:
            raise ExchangeError(f"the answer is larger than {LARGEST_BYTES // 1024**2} MiB")
        if self._is_stream:
            for name, carried in self._events.feed(data):
                self._event(at_s, name, carried)
        else:
            self._body.append(data)

    def end(self, status: int, at_s: float) -> None:
        """The body is whole; what is missing from the answer now is an error."""
        answer = self.answer
        if status != 200:
            answer.fail(f"HTTP {status}: {self._refusal()}")
        elif self._is_stream:
            for name, carried in self._events.rest():
                self._event(at_s, name, carried)
            if not answer.ended:
                answer.fail("the stream stopped without the answer's end")
        elif self._streamed:
            answer.fail("the server answered as a whole where a stream was asked for")
        else:
            self._whole(at_s)

    def _event(self, at_s: float, name: str, carried: bytes) -> None:
        if carried == b"[DONE]":
            read_done(self.answer)
            return
        try:
            event = json.loads(carried)
            if name == "error" and "error" not in event:
                event = {"type": "error", "error": event}
            if self._anthropic:
                read_event(self.answer, at_s, event)
            else:
                read_chunk(self.answer, at_s, event)
        except _NOT_AS_EXPECTED:
            self.answer.fail(f"an event that nobody understands: {_shown(carried)}")

    def _whole(self, at_s: float) -> None:
        body = b"".join(self._body)
        try:
            said = json.loads(body)
            if self._counts:
                read_count(self.answer, said)
            elif self._anthropic:
                read_whole(self.answer, said)
            else:
                read_chunk(self.answer, at_s, said)
        except _NOT_AS_EXPECTED:
            self.answer.fail(f"an answer that nobody understands: {_shown(body)}")
            return
        if not self.answer.ended:
            self.answer.fail(f"an answer without an end: {_shown(body)}")

    def _refusal(self) -> str:
        if self._elsewhere:
            return f"it is at {self._elsewhere}"
        body = b"".join(self._body)[:LONGEST_REFUSAL_BYTES]
        try:
            said: Any = json.loads(body)
        except (ValueError, RecursionError):
            return _shown(body) or "no reason given"
        return error_text(said) or "no reason given"


class StreamEvents:
    """Takes pieces of a stream and gives back what whole events carry."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of a line whose end has not come
        self._data: list[bytes] = []
        self._name = b""

    def feed(self, piece: bytes) -> list[tuple[str, bytes]]:
        """Name and data of each event that this piece completes; comments carry nothing."""
        if b"\n" not in piece:
            self._pieces.append(piece)
            return []
        lines = b"".join((*self._pieces, piece)).split(b"\n")
        self._pieces = [lines.pop()]
        events = []
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if not line:
                if self._data:
                    events.append((self._name.decode("utf-8", "replace"), b"\n".join(self._data)))
                    self._data = []
                self._name = b""
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
        return events

    def rest(self) -> list[tuple[str, bytes]]:
        """The last event, where the stream ended without the empty line after it."""
        return self.feed(b"\n\n")


def _shown(body: bytes) -> str:
    return " ".join(body.decode("utf-8", "replace").split())[:_LONGEST_SHOWN]
