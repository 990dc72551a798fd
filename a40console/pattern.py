"""An operator's regular expression: what it may cost is bounded, whatever it meets."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import regex

MOST_CHARS = 1_000
"""A pattern that is longer was not typed, and compiling it may itself take long."""

REMEDY = (
    "Repeat nothing that is itself repeated: a+ instead of (a+)+. Or look for plain text, "
    "without + and *."
)


class PatternError(Exception):
    """A text is no regular expression; its message says where."""


class SlowPatternError(Exception):
    """A pattern took longer than it may; its message says how long, and on what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What matching may cost, in seconds."""

    line_s: float
    """For one line, by the clock on the wall."""

    pass_s: float
    """For all lines of one pass, of the processor's time: a busy machine makes no pattern slow."""


class Pattern:
    """Searches lines, in any case, until it costs more than it may; then it is of no more use."""

    def __init__(
        self, text: str, allowance: Allowance, *, clock: Callable[[], float] = time.thread_time
    ) -> None:
        """Compile a pattern.

        Raises:
            PatternError: It is no regular expression, or too long.
        """
        self._allowance = allowance
        self._clock = clock
        self._spent_s = 0.0
        if len(text) > MOST_CHARS:
            raise PatternError(f"it has {len(text):,} characters; {MOST_CHARS:,} are the most")
        try:
            self._compiled = regex.compile(text, regex.IGNORECASE)
        except regex.error as error:
            raise PatternError(str(error)) from error
        except (RecursionError, MemoryError, OverflowError) as error:
            raise PatternError("it is nested too deeply") from error

    def begin_pass(self) -> None:
        """Allow as much as at first for the lines that come now."""
        self._spent_s = 0.0

    def matches(self, line: str) -> bool:
        """Whether a line matches.

        Raises:
            SlowPatternError: This line took too long, or all of them together did.
        """
        allowance = self._allowance
        if self._spent_s > allowance.pass_s:
            raise SlowPatternError(f"Its lines together took more than {allowance.pass_s:g} s.")
        began_s = self._clock()
        try:
            found = self._compiled.search(line, timeout=allowance.line_s) is not None
        except (TimeoutError, MemoryError, RecursionError) as error:
            raise SlowPatternError(
                f"A line of {len(line):,} characters took more than {allowance.line_s:g} s."
            ) from error
        self._spent_s += self._clock() - began_s
        return found
