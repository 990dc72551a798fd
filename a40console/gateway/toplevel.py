"""Finds the members of the JSON object that a request's body is, while it arrives in pieces.

A body may hold megabytes of images and history. Parsing it as a whole would stop every stream
for as long as that takes and hold it three times over; here each piece is passed over once, by
compiled patterns, and only the places of the top-level members are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

_SPACE = re.compile(rb"[ \t\n\r]*")
_IN_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_IN_NESTED = re.compile(rb'(?:[^"{}\[\]]+|"[^"\\]*(?:\\.[^"\\]*)*")*', re.DOTALL)
"""Everything up to the next bracket, whole strings included."""

_MEMBER = re.compile(
    rb'[ \t\n\r]*"([^"\\]*)"[ \t\n\r]*:[ \t\n\r]*("[^"\\]*"|[^"{}\[\],:\s]+)[ \t\n\r]*([,}])'
)
"""A whole member whose value is a number, a word or a plain text: most of them are."""

_IN_SCALAR = re.compile(rb'[^,{}\[\]":\s]*')
_KEY_LIMIT_BYTES = 256
_DEPTH_LIMIT = 2_000
_CLOSERS = {ord("{"): ord("}"), ord("["): ord("]")}
_QUOTE, _BACKSLASH, _COLON, _COMMA, _OPEN, _CLOSE = b'"\\:,{}'


@dataclass(frozen=True, slots=True)
class Members:
    """The places of an object's top-level values, in bytes from the body's start."""

    spans: dict[str, tuple[int, int]]
    """Of a repeated key the last, as JSON parsers take it."""

    close: int
    """Where the object's closing brace stands."""


class MemberScanner:
    """Reads a body piece by piece; strict about the top level, lenient below it.

    What it does not understand has no members: such a body passes untouched, for the engine to
    refuse in its own words.
    """

    def __init__(self) -> None:
        self._step: Callable[[bytes, int], int] = self._start
        self._offset = 0
        self._escaped = False
        self._key = bytearray()
        self._value_start = 0
        self._closers = bytearray()
        self._spans: dict[str, tuple[int, int]] = {}
        self._close: int | None = None

    def feed(self, piece: bytes) -> None:
        """Pass over the next piece of the body."""
        at = 0
        while at < len(piece):
            at = self._step(piece, at)
        self._offset += len(piece)

    def finish(self) -> Members | None:
        """The members, or None if the body is not one complete JSON object."""
        if self._close is None or self._step != self._trailing:
            return None
        return Members(self._spans, self._close)

    def _start(self, piece: bytes, at: int) -> int:
        return self._expect(piece, at, {_OPEN: self._first_key})

    def _first_key(self, piece: bytes, at: int) -> int:
        end = self._plain_members(piece, at)
        if end > at:
            return end
        return self._expect(piece, at, {_QUOTE: self._in_key, _CLOSE: self._closed})

    def _next_key(self, piece: bytes, at: int) -> int:
        end = self._plain_members(piece, at)
        if end > at:
            return end
        return self._expect(piece, at, {_QUOTE: self._in_key})

    def _plain_members(self, piece: bytes, at: int) -> int:
        """Past the members that stand here whole and plain; where there are none, no further."""
        while match := _MEMBER.match(piece, at):
            at = match.end()
            start, end = match.span(2)
            if not self._place(match[1], self._offset + start, self._offset + end):
                return self._give_up(piece)
            if match[3] == b"}":
                self._close = self._offset + at - 1
                self._step = self._trailing
                break
            self._step = self._next_key
        return at

    def _before_colon(self, piece: bytes, at: int) -> int:
        return self._expect(piece, at, {_COLON: self._before_value})

    def _after_value(self, piece: bytes, at: int) -> int:
        return self._expect(piece, at, {_COMMA: self._next_key, _CLOSE: self._closed})

    def _trailing(self, piece: bytes, at: int) -> int:
        return self._expect(piece, at, {})

    def _in_key(self, piece: bytes, at: int) -> int:
        end, ended = self._through_string(piece, at)
        if len(self._key) <= _KEY_LIMIT_BYTES:
            self._key += piece[at:end]
        if not ended:
            return end
        self._step = self._before_colon
        return end + 1

    def _before_value(self, piece: bytes, at: int) -> int:
        at = _skip(piece, at)
        if at == len(piece):
            return at
        self._value_start = self._offset + at
        first = piece[at]
        if first == _QUOTE:
            self._step = self._in_text
            return at + 1
        if first in _CLOSERS:
            self._step = self._in_nested
            return at
        self._step = self._in_scalar
        return at

    def _in_text(self, piece: bytes, at: int) -> int:
        end, ended = self._through_string(piece, at)
        if not ended:
            return end
        self._keep(end + 1)
        return end + 1

    def _in_scalar(self, piece: bytes, at: int) -> int:
        match = _IN_SCALAR.match(piece, at)
        end = match.end() if match else at
        if end < len(piece):
            if self._offset + end == self._value_start:
                return self._give_up(piece)
            self._keep(end)
        return end

    def _in_nested(self, piece: bytes, at: int) -> int:
        while at < len(piece):
            match = _IN_NESTED.match(piece, at)
            at = match.end() if match else at
            if at == len(piece):
                break
            sign = piece[at]
            at += 1
            if sign == _QUOTE:
                self._step = self._in_nested_string
                break
            if sign in _CLOSERS:
                self._closers.append(_CLOSERS[sign])
                if len(self._closers) > _DEPTH_LIMIT:
                    return self._give_up(piece)
            elif self._closers.pop() != sign:
                return self._give_up(piece)
            elif not self._closers:
                self._keep(at)
                break
        return at

    def _in_nested_string(self, piece: bytes, at: int) -> int:
        end, ended = self._through_string(piece, at)
        if not ended:
            return end
        self._step = self._in_nested
        return end + 1

    def _through_string(self, piece: bytes, at: int) -> tuple[int, bool]:
        """Where the string's closing quote stands in this piece, or its end and False."""
        if self._escaped:
            self._escaped = False
            at += 1
        match = _IN_STRING.match(piece, at)
        at = match.end() if match else at
        if at >= len(piece):
            return len(piece), False
        if piece[at] == _BACKSLASH:
            self._escaped = True
            return len(piece), False
        return at, True

    def _keep(self, end: int) -> None:
        """A value has ended before this place of the piece."""
        key, self._key = bytes(self._key), bytearray()
        placed = self._place(key, self._value_start, self._offset + end)
        self._step = self._after_value if placed else self._give_up

    def _place(self, key: bytes, start: int, end: int) -> bool:
        """Keep the place of a value; False if its key is no text."""
        if len(key) > _KEY_LIMIT_BYTES:
            return True
        try:
            name = json.loads(b'"' + key + b'"') if b"\\" in key else key.decode()
        except ValueError:
            return False
        self._spans[name] = (start, end)
        return True

    def _expect(self, piece: bytes, at: int, steps: dict[int, Callable[[bytes, int], int]]) -> int:
        """Past white space, go on by the sign that comes; any other ends the reading."""
        at = _skip(piece, at)
        if at == len(piece):
            return at
        step = steps.get(piece[at])
        if step is None:
            return self._give_up(piece)
        if step == self._closed:
            self._close = self._offset + at
            step = self._trailing
        self._step = step
        return at + 1

    def _closed(self, piece: bytes, at: int) -> int:
        """Stands for the closing brace among the signs that may come; never a step itself."""
        return self._give_up(piece)

    def _give_up(self, piece: bytes, at: int = 0) -> int:
        self._step = self._give_up
        return len(piece)


def _skip(piece: bytes, at: int) -> int:
    match = _SPACE.match(piece, at)
    return match.end() if match else at
