"""Reads an engine's output while it is written, capped and begun anew by its keeper."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import BinaryIO

from a40console.model.control import LogChunk
from a40console.model.log_line import ESCAPE

CHUNK_BYTES = 256 * 1024
SIGNATURE_BYTES = 4096
"""How much of what was read last is remembered, to find the place again after a rotation."""

COUNTED_BYTES = 1024 * 1024
LONGEST_LINE_BYTES = 64 * 1024
"""A line without an end is handed on in pieces of this length."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def strip_escapes(text: str) -> str:
    """A text without terminal escapes and control characters, so that it draws nothing itself."""
    return _CONTROL.sub("", ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


def before(path: Path) -> Path:
    """Where the keeper keeps the end of what stood in the file before it began anew."""
    return path.with_name(path.name + ".1")


class LogReader:
    """The complete lines of a growing file, each once, across its rotations.

    A rotation copies the file's end away and empties it in place. Lines that the copy no longer
    holds are lost.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._signature = b""
        self._pending = b""

    def read_lines(self) -> list[str]:
        """Lines completed since the last call; a carriage return ends one, as a progress bar's.

        At most 256 KiB a call; call again while lines come. No file yet is no line.
        """
        try:
            with self._path.open("rb") as file:
                if self._has_begun_anew(file.seek(0, 2), file.fileno()):
                    self._pending += self._rest_of_copy()
                    self._offset, self._signature = 0, b""
                file.seek(self._offset)
                data = file.read(CHUNK_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        self._signature = (self._signature + data)[-SIGNATURE_BYTES:]
        return self._complete(data)

    def _has_begun_anew(self, size: int, fd: int) -> bool:
        if size < self._offset:
            return True
        seen = self._signature
        return bool(seen) and os.pread(fd, len(seen), self._offset - len(seen)) != seen

    def _rest_of_copy(self) -> bytes:
        """What the copy holds behind the place where we stopped."""
        try:
            copy = before(self._path).read_bytes()
        except OSError:
            copy = b""
        for length in (SIGNATURE_BYTES, 1024, 256):  # the copy may begin within the signature
            seen = self._signature[-length:]
            if seen and (place := copy.rfind(seen)) >= 0:
                return copy[place + len(seen) :]
        self._pending = b""
        return copy

    def _complete(self, data: bytes) -> list[str]:
        text = self._pending + data
        held = text[-1:] if text.endswith(b"\r") else b""  # its newline may be still to come
        *lines, rest = _LINE_END.split(text.removesuffix(held))
        self._pending = rest + held
        if len(self._pending) > LONGEST_LINE_BYTES:
            lines.append(self._pending)
            self._pending = b""
        return [line.decode("utf-8", errors="replace") for line in lines]


def read_chunk(
    path: Path, offset: int, *, limit_bytes: int = CHUNK_BYTES, newest: bool = False
) -> LogChunk:
    """A piece of the output from a byte on, cut behind a whole line where it is full.

    A negative offset counts from the end and begins with a whole line. After a rotation the piece
    begins at 0, and `next_offset` is smaller than what was asked. No file is an empty piece.

    Args:
        path: The file.
        offset: Where to begin.
        limit_bytes: The longest piece.
        newest: Where more is waiting than fits, take the end of it, and count what was left out.
    """
    skipped: int | None = None
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            start = _start(size, offset)
            if newest and offset >= 0 and size - start > limit_bytes:
                skipped = _count_lines(file, start, size - limit_bytes)
                start, offset = size - limit_bytes, -limit_bytes
            file.seek(start)
            data = file.read(limit_bytes)
    except OSError:
        return LogChunk(path=str(path), text="", next_offset=0)
    if offset < 0 < start:
        cut = data.find(b"\n") + 1
        start, data = start + cut, data[cut:]
        full = len(data) + cut == limit_bytes
        if skipped is not None:
            skipped += 1  # the line that was begun before
    else:
        full = len(data) == limit_bytes
    if full and (end := data.rfind(b"\n") + 1):
        data = data[:end]
    # A character whose last bytes are not there yet waits for the next piece.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data)
    waiting = len(decoder.getstate()[0])
    return LogChunk(
        path=str(path),
        text=text,
        next_offset=start + len(data) - waiting,
        size_bytes=size,
        skipped_lines=skipped or 0,
    )


def _start(size: int, offset: int) -> int:
    if offset < 0:
        return max(0, size + offset)
    return offset if offset <= size else 0


def _count_lines(file: BinaryIO, start: int, end: int) -> int:
    """Line ends between two places."""
    file.seek(start)
    count, left = 0, end - start
    while left > 0 and (data := file.read(min(left, COUNTED_BYTES))):
        count += data.count(b"\n")
        left -= len(data)
    return count


def last_lines(path: Path, count: int = 400) -> list[str]:
    """The last lines without escapes, from before a rotation as well; none where no file is."""
    data = b""
    for source in (path, before(path)):
        data = _end_of(source) + data
        if data.count(b"\n") > count:
            break
    lines = (line.decode("utf-8", errors="replace") for line in _LINE_END.split(data))
    return [stripped for line in lines if (stripped := strip_escapes(line).rstrip())][-count:]


def _end_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - CHUNK_BYTES))
            return file.read(CHUNK_BYTES)
    except OSError:
        return b""
