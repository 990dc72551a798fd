"""The processes of the engine, looked for seldom: that reads every process of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

MEMBERS_PERIOD_S = 1.9
"""Less than two ticks, so that no other tick is missed."""


class EngineMembers:
    """Remembers which processes belong to the engine.

    Args:
        read_leader: The engine's first process; None while there is none.
        look: Finds them all.
        clock: Monotonic clock.
    """

    def __init__(
        self,
        read_leader: Callable[[], int | None],
        look: Callable[[], list[int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_leader = read_leader
        self._look = look
        self._clock = clock
        self._pids: list[int] = []
        self._of: int | None = None
        self._until_s = 0.0

    def pids(self) -> list[int]:
        """The engine's processes, at most 1.9 s old."""
        leader, now_s = self._read_leader(), self._clock()
        if leader != self._of or now_s >= self._until_s:
            self._of, self._pids = leader, self._look()
            self._until_s = now_s + MEMBERS_PERIOD_S
        return self._pids
