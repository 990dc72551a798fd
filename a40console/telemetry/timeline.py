"""Tokens of every request over time, on the instants at which the engine's counter was read.

Rows and counter are sampled together and interpolated alike at the window's edge, so the rows add
up to the counter over any window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from a40console.telemetry.windows import RATE_WINDOW_S


@dataclass(frozen=True, slots=True)
class Count:
    """What a request had emitted at one instant."""

    tokens: float
    passes: float | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """What one request emitted in the window, and how long of it it decoded."""

    tokens: float
    window_s: float
    decode_tokens: float
    decode_s: float
    decode_passes: float | None

    @property
    def window_rate(self) -> float:
        """Tokens a second over the whole window: shares add up to the engine's rate."""
        return self.tokens / self.window_s

    @property
    def decode_rate(self) -> float | None:
        """Tokens a second while it decoded; None before that can be told."""
        return self.decode_tokens / self.decode_s if self.decode_s >= _SHORTEST_DECODE_S else None


_NOTHING = Count(0.0, 0.0)
_FIRST = Count(1.0, 1.0)
_SHORTEST_DECODE_S = 0.2


class Timeline:
    """Samples of all requests over the last seconds, ended ones until they left the window."""

    def __init__(self, *, horizon_s: float = 2 * RATE_WINDOW_S) -> None:
        self._times: deque[float] = deque()
        self._counts: deque[Mapping[str, Count]] = deque()
        self._ended: dict[str, tuple[Count, float]] = {}
        self._horizon_s = horizon_s

    def clear(self) -> None:
        """Forget everything: the engine began again."""
        self._times.clear()
        self._counts.clear()
        self._ended.clear()

    def add(self, at_s: float, live: Mapping[str, Count], ended: Mapping[str, Count]) -> None:
        """Take the counts of one instant.

        Args:
            at_s: When, on the monotonic clock.
            live: Requests that run or wait.
            ended: Final counts of requests that ended since the previous instant. A request that
                vanished without one keeps its last count.
        """
        if self._counts:
            for key, count in self._counts[-1].items():
                if key not in live:
                    self._ended.setdefault(key, (count, at_s))
        for key, count in ended.items():
            self._ended[key] = (count, at_s)
        for key in live.keys() & self._ended.keys():
            del self._ended[key]
        oldest_s = at_s - self._horizon_s
        self._ended = {key: kept for key, kept in self._ended.items() if kept[1] >= oldest_s}
        self._times.append(at_s)
        self._counts.append({**{key: kept[0] for key, kept in self._ended.items()}, **live})
        while len(self._times) > 2 and self._times[1] < oldest_s:
            self._times.popleft()
            self._counts.popleft()

    @property
    def end_s(self) -> float | None:
        """The newest instant."""
        return self._times[-1] if self._times else None

    def span_s(self, window_s: float = RATE_WINDOW_S) -> float:
        """How much of the window is covered."""
        return min(window_s, self._times[-1] - self._times[0]) if self._times else 0.0

    def total(self, window_s: float = RATE_WINDOW_S) -> float:
        """Tokens of all requests in the window."""
        if self.span_s(window_s) <= 0:
            return 0.0
        start_s = self._times[-1] - self.span_s(window_s)
        return sum(
            count.tokens - self._at(key, start_s).tokens for key, count in self._counts[-1].items()
        )

    def share(
        self, key: str, *, first_token_at_s: float | None, window_s: float = RATE_WINDOW_S
    ) -> Share | None:
        """What a request did in the window; None before two instants are known.

        Args:
            key: The request.
            first_token_at_s: When its decoding began; None where only the samples tell.
            window_s: The window's length.
        """
        span_s = self.span_s(window_s)
        if span_s <= 0 or key not in self._counts[-1]:
            return None
        end_s = self._times[-1]
        from_s, before = self._decode_start(key, end_s - span_s, first_token_at_s)
        last = self._counts[-1][key]
        passes = None
        if last.passes is not None and before.passes is not None:
            passes = last.passes - before.passes
        return Share(
            tokens=last.tokens - self._at(key, end_s - span_s).tokens,
            window_s=span_s,
            decode_tokens=max(0.0, last.tokens - before.tokens),
            decode_s=max(0.0, end_s - from_s),
            decode_passes=passes,
        )

    def _decode_start(
        self, key: str, start_s: float, first_token_at_s: float | None
    ) -> tuple[float, Count]:
        """From when on it decoded within the window, and what it had emitted by then.

        The first token ends the prefill: it came without decoding time and does not count.
        """
        if first_token_at_s is not None and first_token_at_s > start_s:
            return first_token_at_s, _FIRST
        if first_token_at_s is None:
            began_s = self._first_seen_decoding_s(key)
            if began_s > max(start_s, self._times[0]):
                return began_s, self._at(key, began_s)
        return start_s, self._at(key, start_s)

    def _first_seen_decoding_s(self, key: str) -> float:
        for at_s, counts in zip(self._times, self._counts, strict=True):
            if counts.get(key, _NOTHING).tokens > 0:
                return at_s
        return self._times[-1]

    def _at(self, key: str, at_s: float) -> Count:
        """What a request had emitted at an instant, interpolated between two samples."""
        after = min(max(1, bisect_left(self._times, at_s)), len(self._times) - 1)
        before_s, after_s = self._times[after - 1], self._times[after]
        share = min(1.0, max(0.0, (at_s - before_s) / (after_s - before_s)))
        first = self._counts[after - 1].get(key, _NOTHING)
        second = self._counts[after].get(key, _NOTHING)
        passes = None
        if first.passes is not None and second.passes is not None:
            passes = first.passes + share * (second.passes - first.passes)
        return Count(first.tokens + share * (second.tokens - first.tokens), passes)
