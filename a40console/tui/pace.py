"""How often the screen is drawn: as often as readings come, or as the link takes it. Pure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

SLOW_S = 0.3
"""A frame that takes longer than this to arrive is followed by a rest as long, for keys."""

LONGEST_REST_S = 1.5
"""A link that stood still is not slow for ever."""

SILENT_S = 10.0
"""After so long an answer will not come any more: the terminal stalled, or has none to give."""

FIRST_ANSWER_S = 2.5
"""So long the second frame waits for the terminal's first answer, the next ones twice as long each.

The first frame is a whole screen, 40 KB, for which a link of 5 KB/s takes 8 s.
"""

MUTE_S = 3.0
"""A terminal that has not answered the greeting by then is taken for one that does not answer.

Nothing lies before the greeting, so any usable link brings its answer sooner, however slow. Should
one come later all the same, frames wait for answers from then on.
"""

UNHEARD_S = 12.0
"""The same for a terminal that was not greeted: the first answer may lie behind a whole screen."""

_FORGET = 1.02
"""The shortest trip grows with every answer, so that a route that changed is noticed."""

_HELD_DRAWS = 3
"""So many late draws in a row are a slow link, and so many in time are not one any more."""


class Pace:
    """Spaces the frames by how long each takes to reach the terminal.

    Each frame ends in a question that the terminal answers once it has taken in what came before
    it (a cursor position report). Whatever lies between, a queue of ours, the kernel, SSH, no
    frame follows another that is still on its way: what the operator sees is at most one old.

    The same question goes ahead of the first frame, as a greeting. It tells a terminal that never
    answers, as some recorders do, from a link on which the first screen takes long.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_s: float | None = None
        self._greeted_s: float | None = None
        self._speaks = False
        self._answers = 0
        self._wait_s = FIRST_ANSWER_S
        self._waits_until_s = math.inf
        self._shortest_s = math.inf
        self._next_s = -math.inf
        self._drawn_s: float | None = None
        self._between_s = 0.0
        self._held = False
        self._late = 0
        self._in_time = 0
        self.slow = False
        """Whether the link takes less than comes."""

    @property
    def every_s(self) -> float | None:
        """Seconds between frames while the link is slow; None while it keeps up."""
        return self._between_s if self.slow else None

    def may_draw(self, *, jammed: bool = False) -> bool:
        """Whether there is room for a frame; none where the driver's own queue is jammed."""
        room = not jammed and self._has_room()
        self._held = self._held or not room
        return room

    def _has_room(self) -> bool:
        now_s = self._clock()
        if self._asked_s is None:
            return now_s >= self._next_s
        if not self._speaks:
            return self._is_mute(now_s) or now_s >= self._waits_until_s
        if now_s - self._asked_s <= SILENT_S:
            return False
        self._asked_s = None
        return True

    def _is_mute(self, now_s: float) -> bool:
        if self._greeted_s is not None:
            return now_s - self._greeted_s > MUTE_S
        return self._asked_s is not None and now_s - self._asked_s > UNHEARD_S

    def greeted(self) -> None:
        """The question has been written before the first frame, which does not wait for it."""
        self._greeted_s = self._clock()

    def drawn(self, interval_s: float) -> None:
        """A frame is being drawn; readings come every `interval_s`."""
        now_s = self._clock()
        if self._drawn_s is not None and self._answers:
            self._judge(now_s - self._drawn_s, interval_s)
        if not self._answers and self._asked_s is not None:
            self._waits_until_s = now_s + self._wait_s
            self._wait_s *= 2
        self._drawn_s, self._held = now_s, False

    def _judge(self, between_s: float, interval_s: float) -> None:
        late = self._held and between_s > 1.5 * max(interval_s, SLOW_S)
        self._late = self._late + 1 if late else 0
        self._in_time = 0 if late else self._in_time + 1
        self._between_s = between_s if not self.slow else (self._between_s + between_s) / 2
        if self._late >= _HELD_DRAWS:
            self.slow = True
        elif self._in_time >= _HELD_DRAWS:
            self.slow = False

    @property
    def asks(self) -> bool:
        """Whether a frame should end in a question: one at a time, until one finds no answer."""
        return self._asked_s is None

    def asked(self) -> None:
        """The question has been written after the frame."""
        self._asked_s = self._clock()
        if not self._answers:
            self._waits_until_s = self._asked_s + self._wait_s
            self._wait_s *= 2

    def answered(self) -> None:
        """The terminal has taken in everything up to the question."""
        self._speaks = True
        if self._greeted_s is not None:
            self._greeted_s = None
            return
        if self._asked_s is None:
            return
        now_s = self._clock()
        trip_s = now_s - self._asked_s
        self._asked_s = None
        self._answers += 1
        self._shortest_s = min(self._shortest_s * _FORGET, trip_s)
        transfer_s = trip_s - self._shortest_s
        rest_s = min(transfer_s, LONGEST_REST_S) if transfer_s > SLOW_S else 0.0
        self._next_s = now_s + rest_s
