"""Speeds of the stored points: each the tokens of its own interval, so that sums are the counters.

What screens show live is the mean of the last 5 s; stored second by second it would count a burst
five times. A source that falls silent leaves a gap: what the engine generated in it is in the
counters alone, since nobody knows in which of its seconds.
"""

from __future__ import annotations

from dataclasses import replace

from a40console.model.control import HistoryPoint
from a40console.model.figures import Missing
from a40console.model.history import SILENT
from a40console.model.snapshot import Throughput


class PointSpeeds:
    """Holds points back until their counters are read, or their source is known to be silent."""

    def __init__(self) -> None:
        self._waiting: list[HistoryPoint] = []

    def settle(self, point: HistoryPoint, speeds: Throughput | None) -> list[HistoryPoint]:
        """The points that are now complete, oldest first.

        Args:
            point: The newest, with the speeds that a screen shows.
            speeds: Those since the point before; None where no engine is read.
        """
        if speeds is None or isinstance(point.generation_tokens_per_s, Missing):
            return [*self._unread(), point]
        self._waiting.append(point)
        if speeds.window_s > 0:
            settled = [_with(waiting, speeds) for waiting in self._waiting]
            self._waiting.clear()
            return settled
        return []

    def _unread(self) -> list[HistoryPoint]:
        unread = [_silent(waiting) for waiting in self._waiting]
        self._waiting.clear()
        return unread


def _with(point: HistoryPoint, speeds: Throughput) -> HistoryPoint:
    generation = speeds.generation_tokens_per_s
    return replace(
        point,
        generation_tokens_per_s=generation,
        generation_peak_tokens_per_s=generation,
        prefill_tokens_per_s=speeds.prefill_tokens_per_s,
        passes_per_s=speeds.passes_per_s,
        known_ratio=0.0 if isinstance(generation, Missing) else 1.0,
    )


def _silent(point: HistoryPoint) -> HistoryPoint:
    return replace(
        point,
        generation_tokens_per_s=SILENT,
        generation_peak_tokens_per_s=SILENT,
        prefill_tokens_per_s=SILENT,
        passes_per_s=SILENT,
        known_ratio=0.0,
    )
