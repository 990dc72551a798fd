"""Reads an engine's output piece by piece, and says of every line that it had to leave out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a40console.model.control import LogChunk
from a40console.model.log_line import Level, LevelReader, LogLine, plain

if TYPE_CHECKING:
    from a40console.service.client import ServiceClient

FIRST_BYTES = 262_144
CHUNK_BYTES = 524_288
SLICE_LINES = 200
"""Taken in at one go: a key that is pressed meanwhile waits for them, a few milliseconds."""

CONTEXT_LINES = 200
"""Shown before the first error, when the whole output was searched for it."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read and not taken yet."""

    texts: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines that follow on those before, and what is to be said before them."""

    lines: tuple[LogLine, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class FirstError:
    """Where the first error of an output stands."""

    lines: tuple[LogLine, ...]
    """Some before it, itself, and what follows in its piece."""

    index: int
    """Of the error among the lines."""

    before: int
    """Lines of the output before the first of these."""


class OutputReader:
    """One place in one output; `start` names whose, and is empty for the newest engine's."""

    def __init__(self, start: str = "") -> None:
        self.start = start
        self.path: str | None = None
        self.skipped = 0
        """Lines that were left out because they came faster than they can be shown."""

        self.whole = False
        """Whether everything from the first line on was read."""

        self._offset = -FIRST_BYTES
        self._partial = ""
        self._waiting_bytes = 0
        self._pending: deque[_Read] = deque()
        self._levels = LevelReader()

    @property
    def ready_seen(self) -> bool:
        """Whether a line has said that the engine serves."""
        return self._levels.ready_seen

    @property
    def tail(self) -> LogLine | None:
        """What is written of a line that has not ended yet."""
        text = plain(self._partial) if self._partial else ""
        return LogLine(text) if text.strip() else None

    async def read(self, client: ServiceClient, *, newest: bool) -> bool:
        """Read on; answers whether more is probably waiting already.

        Raises:
            ConsoleError: If the service cannot be asked.
        """
        limit = FIRST_BYTES if self._offset < 0 else CHUNK_BYTES
        chunk = await client.logs(self._offset, limit, start=self.start, newest=newest)
        self._put(chunk)
        return len(chunk.text) > FIRST_BYTES // 64

    def _put(self, chunk: LogChunk) -> None:
        """Make pieces of a chunk. What was read is taken with `piece`, sooner or later."""
        self._waiting_bytes = max(0, chunk.size_bytes - chunk.next_offset)
        if chunk.path != self.path:
            before, self.path = self.path, chunk.path
            if before is not None and chunk.path is not None:
                # The piece was read from where the other file had been read to.
                self._begin_anew()
                self._pending.append(_Read(note=f"another engine start: {chunk.path}"))
                return
        elif 0 <= chunk.next_offset < self._offset:
            self._partial = ""
            self._pending.append(_Read(note="the output began anew"))
        if self._offset < 0:
            self.whole = chunk.size_bytes <= FIRST_BYTES
        if chunk.skipped_lines:
            self.skipped += chunk.skipped_lines
            self.whole, self._partial = False, ""
            note = f"{chunk.skipped_lines:,} lines skipped: they came too fast"
            self._pending.append(_Read(note=note))
        self._offset = chunk.next_offset
        *lines, self._partial = (self._partial + chunk.text).split("\n")
        for begin in range(0, len(lines), SLICE_LINES):
            self._pending.append(_Read(texts=tuple(lines[begin : begin + SLICE_LINES])))

    @property
    def has_pieces(self) -> bool:
        """Whether something was read that has not been taken yet."""
        return bool(self._pending)

    @property
    def next_lines(self) -> int:
        """How many lines the next piece has."""
        return len(self._pending[0].texts) if self._pending else 0

    @property
    def waiting_bytes(self) -> int:
        """What was written and is not shown yet, in bytes."""
        held = sum(len(text) + 1 for read in self._pending for text in read.texts)
        return self._waiting_bytes + held

    def piece(self) -> Piece | None:
        """The next few lines; None when all that was read has been taken."""
        if not self._pending:
            return None
        read = self._pending.popleft()
        if read.note:
            self._levels = LevelReader()
        return Piece(tuple(map(self._levels.read, read.texts)), read.note)

    def _begin_anew(self) -> None:
        self._offset, self._partial = -FIRST_BYTES, ""

    async def find_first_error(self, client: ServiceClient) -> FirstError | None:
        """Search the output from its first byte, and go on reading from there if there is one.

        Raises:
            ConsoleError: If the service cannot be asked.
        """
        levels, offset, partial, passed = LevelReader(), 0, "", 0
        before: deque[LogLine] = deque(maxlen=CONTEXT_LINES)
        while True:
            chunk = await client.logs(offset, FIRST_BYTES, start=self.start)
            if not chunk.text or chunk.next_offset < offset:
                return None
            offset = chunk.next_offset
            *texts, partial = (partial + chunk.text).split("\n")
            lines = [levels.read(text) for text in texts]
            for index, line in enumerate(lines):
                if line.level is Level.ERROR:
                    self._levels, self._offset, self._partial = levels, offset, partial
                    self._pending.clear()
                    self._waiting_bytes = max(0, chunk.size_bytes - offset)
                    found = FirstError((*before, *lines), len(before) + index, passed - len(before))
                    self.whole = not found.before
                    return found
            before.extend(lines)
            passed += len(lines)
