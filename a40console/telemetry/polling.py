"""One task a source: a period, a time limit, a back-off, and how fresh the source is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from math import ceil
from typing import Literal

from a40console.model.event import Severity
from a40console.model.figures import Figure, Missing
from a40console.model.snapshot import SourceStatus
from a40console.telemetry.fetch import SourceError

EventSink = Callable[[str, str, Severity, dict[str, str]], object]
"""Takes kind, text, severity and evidence."""

LONGEST_BACK_OFF_S = 5.0
"""An engine that comes back is seen within this."""

_BEFORE_A_VIEW_S = 0.15
_LARGEST_SHIFT = 0.5
"""Share of the period by which a reading may come earlier to be fresh for a view."""

_log = logging.getLogger(__name__)


class Poller:
    """Reads one source again and again; `run` ends only when it is cancelled."""

    def __init__(
        self,
        name: str,
        read: Callable[[], Awaitable[None]],
        *,
        period_s: float,
        clock: Callable[[], float],
        on_event: EventSink,
    ) -> None:
        self.name = name
        self._read = read
        self._period_s = period_s
        self._clock = clock
        self._on_event = on_event
        self._stale_after_s = max(3.0, 3 * period_s)
        self._read_at_s: float | None = None
        self._error: SourceError | None = None
        self._failures = 0
        self._reported = False
        self.viewed_at_s: float | None = None
        """When its readings were last looked at: the next one is timed to be fresh then."""

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            started_s = self._clock()
            await self.poll()
            await asyncio.sleep(max(0.0, self._due_s(started_s) - self._clock()))

    def _due_s(self, started_s: float) -> float:
        """When to read next: a period later, later after failures, and shortly before a view."""
        back_off_s = self._period_s * (1 << min(self._failures, 8))
        due_s = started_s + min(back_off_s, max(self._period_s, LONGEST_BACK_OFF_S))
        if self.viewed_at_s is None or self._failures:
            return due_s
        earliest_s = due_s - _LARGEST_SHIFT * self._period_s
        first_s = self.viewed_at_s - _BEFORE_A_VIEW_S
        return first_s + ceil((earliest_s - first_s) / self._period_s) * self._period_s

    async def poll(self) -> None:
        """Read once and note how it went."""
        try:
            await self._read()
        except SourceError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 -- one source's fault must not end the service
            _log.exception("source %s", self.name)
            self._failed(SourceError(f"could not be read: {type(error).__name__}: {error}"))
        else:
            self._succeeded()

    def _succeeded(self) -> None:
        self._read_at_s, self._error, self._failures = self._clock(), None, 0
        if self._reported:
            self._reported = False
            self._on_event("source.restored", f"{self.name} is read again", "info", {})

    def _failed(self, error: SourceError) -> None:
        self._error = error
        self._failures += 1
        # A source that never answered is no news: engines take minutes to start.
        if self._read_at_s is not None and not self._reported and not self.usable:
            self._reported = True
            self._on_event(
                "source.failed", f"{self.name}: {error.reason}", "warn", {"reason": error.reason}
            )

    @property
    def usable(self) -> bool:
        """Whether its last reading still counts."""
        return self._state in ("ok", "stale") and self._age_s <= self._stale_after_s

    @property
    def undecided(self) -> bool:
        """Whether nothing tells yet that it will not answer."""
        return self._read_at_s is None and (self._error is None or self._error.passing)

    @property
    def reason(self) -> str:
        """Why there is no reading, for figures that need one."""
        return "not read yet" if self._error is None else self._error.reason

    @property
    def _age_s(self) -> float:
        return float("inf") if self._read_at_s is None else self._clock() - self._read_at_s

    @property
    def _state(self) -> Literal["ok", "stale", "failed", "absent"]:
        error = self._error
        if error is None:
            if self._read_at_s is None:
                return "absent"
            return "ok" if self._age_s <= self._stale_after_s else "stale"
        if error.absent:
            return "absent"
        return "stale" if error.passing and self._age_s <= self._stale_after_s else "failed"

    def status(self) -> SourceStatus:
        """How fresh the source is, and what is wrong with it."""
        state = self._state
        age: Figure = (
            Missing("never read") if self._read_at_s is None else round(max(0.0, self._age_s), 3)
        )
        reason = None if state == "ok" else self._error.reason if self._error else None
        if reason is None and state != "ok":
            reason = "not read yet" if self._read_at_s is None else "no answer for a while"
        return SourceStatus(name=self.name, state=state, age_s=age, reason=reason)
