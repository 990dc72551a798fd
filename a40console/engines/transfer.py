"""How far a transfer is, how fast it goes and when it will be through. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from a40console.model.figures import Estimated, Figure, Missing, combine, number

WINDOW_S = 8.0
"""Rates are over this long: a hub's bursts are smoothed, a stall shows within it."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A moment of a transfer."""

    done_bytes: int
    total_bytes: Figure
    """Missing where nobody says how much it is."""

    bytes_per_s: Figure
    eta_s: Figure


class TransferRate:
    """Turns readings of bytes that are here into a rate over the last seconds and an ETA."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._readings: deque[tuple[float, int]] = deque()

    def read(self, now_s: float, done_bytes: int, total_bytes: Figure) -> Transfer:
        """Take a reading.

        Args:
            now_s: Seconds on a clock that only goes forward.
            done_bytes: Bytes that are here; fewer than before is a new beginning.
            total_bytes: Bytes in all, as far as that is known.
        """
        if self._readings and done_bytes < self._readings[-1][1]:
            self._readings.clear()
        self._readings.append((now_s, done_bytes))
        while len(self._readings) > 2 and self._readings[1][0] <= now_s - self._window_s:
            self._readings.popleft()
        rate = self._rate()
        return Transfer(done_bytes, total_bytes, rate, _eta_s(rate, done_bytes, total_bytes))

    def _rate(self) -> Figure:
        (first_s, first), (last_s, last) = self._readings[0], self._readings[-1]
        if last_s <= first_s:
            return Missing("first reading")
        return (last - first) / (last_s - first_s)


def _eta_s(rate: Figure, done_bytes: int, total_bytes: Figure) -> Figure:
    """Nothing is left where it is all here; else the rest at the present rate, an estimate."""
    if isinstance(total_bytes, Missing):
        return total_bytes
    left = combine(lambda whole: max(0.0, whole - done_bytes), total_bytes)
    if left == 0:
        return left
    left_s = combine(
        lambda rest, speed: rest / speed if speed > 0 else None, left, rate, reason="nothing comes"
    )
    seconds = number(left_s)
    return left_s if seconds is None else Estimated(seconds)
