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
    """For one line."""

    burst_s: float
    """For many lines at once."""

    share: float
    """Of the time that goes by: with it the burst fills again."""


class Pattern:
    """Searches lines, in any case, until it costs more than it may; then it is of no more use."""

    def __init__(
        self, text: str, allowance: Allowance, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """Compile a pattern.

        Raises:
            PatternError: It is no regular expression, or too long.
        """
        self.text = text
        self._allowance = allowance
        self._clock = clock
        self._left_s = allowance.burst_s
        self._seen_s = clock()
        if len(text) > MOST_CHARS:
            raise PatternError(f"it has {len(text):,} characters; {MOST_CHARS:,} are the most")
        try:
            self._compiled = regex.compile(text, regex.IGNORECASE)
        except regex.error as error:
            raise PatternError(str(error)) from error
        except (RecursionError, MemoryError, OverflowError) as error:
            raise PatternError("it is nested too deeply") from error

    def matches(self, line: str) -> bool:
        """Whether a line matches.

        Raises:
            SlowPatternError: This line took too long, or all of them together did.
        """
        began_s = self._clock()
        allowance = self._allowance
        refill_s = allowance.share * (began_s - self._seen_s)
        self._left_s = min(allowance.burst_s, self._left_s + refill_s)
        if self._left_s <= 0:
            raise SlowPatternError(f"Its lines together took more than {allowance.burst_s:g} s.")
        try:
            found = self._compiled.search(line, timeout=allowance.line_s) is not None
        except (TimeoutError, MemoryError, RecursionError) as error:
            raise SlowPatternError(
                f"A line of {len(line):,} characters took more than {allowance.line_s:g} s."
            ) from error
        self._seen_s = self._clock()
        self._left_s -= self._seen_s - began_s
        return found
