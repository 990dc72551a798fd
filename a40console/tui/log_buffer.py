"""The lines of output that the console holds: bounded, filtered, searched. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from a40console.model.engine_log import LogMeaning
from a40console.model.log_line import Level, LogLine
from a40console.pattern import Allowance, Pattern, PatternError, SlowPatternError

MAX_LINES = 10_000
MAX_CHARS = 4_000_000
"""Whichever comes first; the oldest lines give way."""

MOST_BLOCK_LINES = 400
"""A traceback is read back no further."""

ALLOWANCE = Allowance(line_s=0.05, pass_s=0.2)
"""What a filter may cost: keys wait while it is matched.

Over all lines that are held a pattern without faults was measured to take 0.02 to 0.08 s.
"""

OWN = "── "
"""How a line of our own begins, such as a rotation of the file."""


class LogBuffer:
    """Lines by number: the first that was ever taken in is 0, and numbers stay when lines go."""

    def __init__(self, *, max_lines: int = MAX_LINES, max_chars: int = MAX_CHARS) -> None:
        self._max_lines = max_lines
        self._max_chars = max_chars
        self._lines: list[LogLine] = []
        self._chars = 0
        self._first = 0
        self._shown: list[int] | None = None
        self._minimum = Level.DEBUG
        self._filter = ""
        self._pattern: Pattern | None = None
        self._too_slow = ""
        self.widest = 0
        """Characters of the longest line that was taken in."""

        self.meanings: dict[int, LogMeaning | None] = {}
        """What the service knows of the lines it was asked about; None where nothing."""

    def __len__(self) -> int:
        """How many lines pass level and filter."""
        return len(self._lines) if self._shown is None else len(self._shown)

    @property
    def count(self) -> int:
        """How many lines are held."""
        return len(self._lines)

    @property
    def first(self) -> int:
        """The number of the oldest line that is held."""
        return self._first

    @property
    def end(self) -> int:
        """The number that the next line gets."""
        return self._first + len(self._lines)

    @property
    def minimum(self) -> Level:
        """The lowest level that is shown."""
        return self._minimum

    @property
    def filter(self) -> str:
        """What every line that is shown holds; empty for all."""
        return self._filter

    @property
    def texts(self) -> Sequence[str]:
        """Every line that is held, oldest first."""
        return [line.text for line in self._lines]

    @property
    def room(self) -> int:
        """How many lines can come before the oldest has to go."""
        return 0 if self._chars > 0.9 * self._max_chars else self._max_lines - len(self._lines)

    def take(self, lines: Iterable[LogLine]) -> int:
        """Append lines; answers how many that were shown had to go."""
        self._begin_pass()
        for line in lines:
            if self._shown is not None and self._passes_in_time(line):
                self._shown.append(self.end)
            self._lines.append(line)
            self._chars += len(line.text)
            self.widest = max(self.widest, len(line.text))
        return self._drop()

    def note(self, text: str) -> int:
        """Append a line of our own; answers as `take`."""
        return self.take([LogLine(f"{OWN}{text} ──", Level.ERROR)])

    def clear(self) -> None:
        """Forget every line; level and filter stay."""
        self._first, self._chars, self.widest = self.end, 0, 0
        self._lines.clear()
        self.meanings.clear()
        if self._shown is not None:
            self._shown.clear()

    def narrow(self, minimum: Level, needle: str) -> None:
        """Show only lines of a level or above that hold a text, or match it as `/pattern/`.

        A pattern that costs too much, now or at a later line, is dropped.
        """
        if needle != self._filter:
            self._filter, self._pattern = needle, _pattern(needle)
        self._minimum = minimum
        try:
            self._show_passing()
        except SlowPatternError as error:
            self._drop_filter(str(error))

    def dropped_filter(self) -> str:
        """A filter that was dropped since this was asked last, and what it cost; else empty."""
        dropped, self._too_slow = self._too_slow, ""
        return dropped

    def number_at(self, row: int) -> int:
        """The number of the line in a row of those that are shown."""
        return self._first + row if self._shown is None else self._shown[row]

    def line_at(self, row: int) -> LogLine:
        """The line in a row of those that are shown."""
        return self._lines[self.number_at(row) - self._first]

    def row_of(self, number: int) -> int:
        """The row of a line, or of the next one below it that is shown."""
        row = number - self._first if self._shown is None else bisect_left(self._shown, number)
        return max(0, min(row, len(self) - 1))

    def find(self, row: int, step: int, test: Callable[[LogLine], bool]) -> int | None:
        """The next row below (1) or above (-1) whose line passes a test, round the end."""
        for offset in range(1, len(self) + 1):
            there = (row + step * offset) % len(self)
            if test(self.line_at(there)):
                return there
        return None

    def matches(self, needle: str) -> int:
        """How many of the lines that are shown hold a text, whatever its case."""
        wanted = needle.casefold()
        return sum(wanted in self.line_at(row).text.casefold() for row in range(len(self)))

    def errors(self) -> int:
        """How many errors are held; a traceback is one."""
        return sum(is_error(line) for line in self._lines)

    def head_of(self, number: int) -> int:
        """The line with which the block of a line begins."""
        lowest = max(self._first, number - MOST_BLOCK_LINES)
        while number > lowest and self._lines[number - self._first].continues:
            number -= 1
        return number

    def block(self, number: int) -> list[str]:
        """A line with those that go on from it: a traceback as a whole."""
        begin = self.head_of(number) - self._first
        end = begin + 1
        while end < len(self._lines) and self._lines[end].continues:
            end += 1
        return [line.text for line in self._lines[begin:end]]

    def between(self, one: int, other: int) -> list[str]:
        """The lines from one to another that are shown."""
        low, high = sorted((one, other))
        rows = range(self.row_of(low), self.row_of(high) + 1)
        return [self.line_at(row).text for row in rows]

    def unexplained(self, limit: int, *, settled: bool) -> list[int]:
        """The newest warnings and errors about which nobody was asked yet, oldest first.

        Args:
            limit: How many at the most.
            settled: Whether nothing more is coming, so that the last block is complete.
        """
        found: list[int] = []
        end = self.end if settled else self._last_head()
        for number in range(end - 1, self._first - 1, -1):
            line = self._lines[number - self._first]
            if line.level >= Level.WARN and not line.continues and not is_own(line):
                if number in self.meanings:
                    break
                found.append(number)
                if len(found) == limit:
                    break
        return found[::-1]

    def _last_head(self) -> int:
        return self.head_of(self.end - 1) if self._lines else self.end

    def _show_passing(self) -> None:
        if self._minimum is Level.DEBUG and not self._filter:
            self._shown = None
            return
        self._begin_pass()
        numbered = enumerate(self._lines, self._first)
        self._shown = [number for number, line in numbered if self._passes(line)]

    def _drop_filter(self, why: str) -> None:
        """Go on without the filter: every line of the level is shown."""
        self._too_slow = f"{self._filter} {why}"
        self._filter, self._pattern = "", None
        self._show_passing()

    def _passes_in_time(self, line: LogLine) -> bool:
        """Whether a line is to be numbered among those that are shown; drops a slow filter."""
        try:
            return self._passes(line)
        except SlowPatternError as error:
            self._drop_filter(str(error))
        return self._shown is not None and self._passes(line)

    def _passes(self, line: LogLine) -> bool:
        return line.level >= self._minimum and (self._holds(line.text) or is_own(line))

    def _holds(self, text: str) -> bool:
        if self._pattern is not None:
            return self._pattern.matches(text)
        return self._filter.casefold() in text.casefold()

    def _begin_pass(self) -> None:
        if self._pattern is not None:
            self._pattern.begin_pass()

    def _drop(self) -> int:
        over = max(0, len(self._lines) - self._max_lines)
        self._chars -= sum(len(line.text) for line in self._lines[:over])
        while self._chars > self._max_chars:
            self._chars -= len(self._lines[over].text)
            over += 1
        if not over:
            return 0
        del self._lines[:over]
        self._first += over
        for number in [known for known in self.meanings if known < self._first]:
            del self.meanings[number]
        if self._shown is None:
            return over
        gone = bisect_left(self._shown, self._first)
        del self._shown[:gone]
        return gone


def is_own(line: LogLine) -> bool:
    """Whether a line is ours, not the engine's."""
    return line.text.startswith(OWN)


def is_error(line: LogLine) -> bool:
    """Whether an error begins with this line."""
    return line.level is Level.ERROR and not line.continues and not is_own(line)


def _pattern(needle: str) -> Pattern | None:
    """The pattern of `/pattern/`; None for a plain text."""
    if len(needle) > 2 and needle[0] == needle[-1] == "/":
        with suppress(PatternError):
            return Pattern(needle[1:-1], ALLOWANCE)
    return None
