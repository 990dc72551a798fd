"""What should call the operator back to the screen, once each: by bell, by notification."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.snapshot import Snapshot
from a40console.tui.abilities import Multiplexer
from a40console.tui.ink import clean
from a40console.tui.multiplex import through

Way = Literal["bell", "osc9", "both", "off"]

RING_EVERY_S = 30.0
"""What comes sooner after a ring waits for the next one."""

FORGET_AFTER_S = 300.0
"""A finding that was gone for so long rings again when it comes back."""

_LONGEST = 160
"""Characters of a notification; terminals cut longer ones, some in the middle of a sequence."""

_ENDED = frozenset({EngineState.FAILED, EngineState.ORPHANED})


class Alarms:
    """Watches snapshots for what is grave: findings of severity error, engines that end or hang.

    What is there already when the watch begins is on the screen, and rings nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_seen_s: dict[str, float] = {}
        self._restarts: int | None = None
        self._waiting: dict[str, str] = {}
        self._rang_s: float | None = None
        self.muted = False

    def observe(self, snapshot: Snapshot) -> str:
        """What to ring for now, in one line; empty for nothing."""
        now_s = self._clock()
        present = dict(_grave(snapshot))
        restarts = snapshot.engine.restarts
        first = self._restarts is None
        if self._restarts is not None and restarts > self._restarts:
            self._waiting["restart"] = "the engine ended by itself and was started again"
        self._restarts = restarts
        if not first:
            self._waiting.update(self._fresh(present, now_s))
        self._last_seen_s.update(dict.fromkeys(present, now_s))
        self._waiting = {
            key: text for key, text in self._waiting.items() if key in present or key == "restart"
        }
        return self._ring(now_s)

    def _fresh(self, present: Mapping[str, str], now_s: float) -> dict[str, str]:
        return {
            key: text
            for key, text in present.items()
            if now_s - self._last_seen_s.get(key, -FORGET_AFTER_S) >= FORGET_AFTER_S
        }

    def _ring(self, now_s: float) -> str:
        early = self._rang_s is not None and now_s - self._rang_s < RING_EVERY_S
        if not self._waiting or early:
            return ""
        text = "; ".join(self._waiting.values())
        self._waiting.clear()
        if self.muted:
            return ""
        self._rang_s = now_s
        return text


def _grave(snapshot: Snapshot) -> Iterable[tuple[str, str]]:
    engine = snapshot.engine
    if engine.state is EngineState.HUNG:
        yield "hung", "the engine hangs"
    if engine.state in _ENDED:
        cause = "" if isinstance(engine.exit, Missing) else f": {engine.exit.cause}"
        yield "ended", f"the engine ended{cause}"
    for finding in snapshot.findings:
        if finding.severity == "error":
            yield f"finding {finding.code}", finding.title


def sequence(text: str, way: Way, multiplexer: Multiplexer) -> str:
    """What to write to the terminal so that it calls the operator.

    The bell goes through every multiplexer; a notification (OSC 9) only where it is let through.
    """
    bell = "\a" if way in ("bell", "both") else ""
    if way not in ("osc9", "both"):
        return bell
    told = clean(f"a40console: {text}")[:_LONGEST]
    return bell + through(f"\x1b]9;{told}\a", multiplexer)
