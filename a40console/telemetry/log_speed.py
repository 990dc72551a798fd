"""The throughput that vLLM writes into its log, beside what its counters moved by meanwhile.

With several API servers each logs what passed through it alone, so a line may state a share. The
counters are believed; that the two differ is worth a word. Formats: vLLM's `loggers.py` and its
Rust front end's `log_stats.rs`.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from a40console.telemetry.windows import value_at

CHUNK_BYTES = 65536
"""Read of a log at most at once; a faster one is followed from its end."""

KEPT_S = 60.0
SPOKEN_S = 30.0
"""vLLM logs every 10 s while it works; an older line says nothing of now."""

SHORTEST_S = 5.0
LONGEST_S = 30.0
"""Spans between two lines of one server that are compared."""

DIFFERS_RATIO = 0.3
DIFFERS_TOKENS_PER_S = 5.0
"""More than both is a difference: the lines carry no time finer than a second."""

LINES_FOR_A_VERDICT = 2

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LINE = re.compile(
    r"^\((?P<speaker>\S+) pid=(?P<pid>\d+)\).*Avg generation (?:throughput|tput): "
    r"(?P<rate>[0-9.]+) tok(?:en)?s/s",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A logged rate and the counters' over the same seconds."""

    logged_tokens_per_s: float
    counted_tokens_per_s: float
    over_s: float
    speakers: int
    """Processes that logged a rate lately."""


class LogSpeed:
    """Follows the log and the counter, and tells where they disagree."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._offset = 0
        self._rest = ""
        self._clear()

    def _clear(self) -> None:
        self._counts: deque[tuple[float, float]] = deque()
        self._spoke_at_s: dict[str, float] = {}
        self._differ = 0
        self._last: tuple[float, Compared] | None = None

    def observe(self, path: Path | None, generated_tokens: float | None, now_s: float) -> None:
        """Take the counter's value now and the lines that were written since the last call."""
        if path != self._path:
            self._path, self._offset, self._rest = path, _size(path), ""
            self._clear()
        if generated_tokens is None:
            return
        if self._counts and generated_tokens < self._counts[-1][1]:
            self._clear()  # the engine began again
        self._counts.append((now_s, generated_tokens))
        while self._counts[0][0] < now_s - KEPT_S:
            self._counts.popleft()
        for speaker, rate in self._new_lines():
            self._compare(speaker, rate, now_s)

    def disagreement(self, now_s: float) -> Compared | None:
        """The newest comparison where the last ones all differed; None where they agree."""
        if self._last is None or now_s - self._last[0] > SPOKEN_S:
            return None
        return self._last[1] if self._differ >= LINES_FOR_A_VERDICT else None

    def _compare(self, speaker: str, rate: float, now_s: float) -> None:
        before_s = self._spoke_at_s.get(speaker)
        self._spoke_at_s[speaker] = now_s
        if before_s is None or not SHORTEST_S <= now_s - before_s <= LONGEST_S:
            return
        if self._counts[0][0] > before_s:
            return
        points = tuple(self._counts)
        over_s = now_s - before_s
        counted = (points[-1][1] - value_at(points, before_s)) / over_s
        speakers = sum(now_s - at_s <= SPOKEN_S for at_s in self._spoke_at_s.values())
        self._last = (now_s, Compared(rate, counted, over_s, speakers))
        gap = abs(rate - counted)
        far = gap > DIFFERS_TOKENS_PER_S and gap > DIFFERS_RATIO * max(rate, counted)
        self._differ = self._differ + 1 if far else 0

    def _new_lines(self) -> list[tuple[str, float]]:
        """Who logged which rate since the last call; a line that is not whole yet waits."""
        size = _size(self._path)
        if self._path is None or size == self._offset:
            return []
        if size < self._offset or size - self._offset > CHUNK_BYTES:
            self._offset, self._rest = max(0, size - CHUNK_BYTES), ""
        try:
            with self._path.open("rb") as log:
                log.seek(self._offset)
                data = log.read(CHUNK_BYTES)
        except OSError:
            return []
        self._offset += len(data)
        text = self._rest + data.decode(errors="replace")
        whole, _, self._rest = text.rpartition("\n")
        self._rest = self._rest[-CHUNK_BYTES:]
        return [
            (f"{found['speaker']} {found['pid']}", float(found["rate"]))
            for found in _LINE.finditer(_ANSI.sub("", whole))
        ]


def _size(path: Path | None) -> int:
    try:
        return path.stat().st_size if path is not None else 0
    except OSError:
        return 0
