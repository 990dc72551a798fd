"""How the worker itself stands: whether it came back, lasts, and is supervised."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from a40console.operations.roles import Recorder
from a40console.service.supervisor import HEALTHY_AFTER_S

AGAIN_AND_AGAIN = 2
"""Ends in a row that make it a failing service, not one that came back."""


class Standing:
    """Tells each change once, however often the worker is started.

    Args:
        recorder: Takes the events.
        failures: How many workers before this one ended by themselves, in a row.
        clock: Monotonic clock.
        parent: The number of the process that brings this one back.
    """

    def __init__(
        self,
        recorder: Recorder,
        failures: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        parent: Callable[[], int] = os.getppid,
    ) -> None:
        self._record = recorder
        self._failures = failures
        self._clock = clock
        self._began_s = clock()
        self._parent = parent
        self._supervisor = parent()
        self.unsupervised = False
        """Whether nothing brings the worker back if it ends."""

    def begin(self) -> None:
        """The worker starts; the third of a row and later ones say nothing new."""
        if self._failures == 0:
            self._record("service.started", "the service starts", "info")
        elif self._failures < AGAIN_AND_AGAIN:
            self._record("service.started", "the service is back after its worker ended", "warn")
        elif self._failures == AGAIN_AND_AGAIN:
            self._record(
                "service.failing",
                "the service's worker ends again and again; it is started ever more seldom",
                "error",
                {"remedy": "read why in the service's log; engines keep running meanwhile"},
            )

    def look(self) -> None:
        """See what has changed."""
        if self._failures >= AGAIN_AND_AGAIN and self._lasted_s() > HEALTHY_AFTER_S:
            text = f"the service is back after its worker ended {self._failures} times in a row"
            self._failures = 0
            self._record("service.started", text, "warn")
        if not self.unsupervised and self._parent() != self._supervisor:
            self.unsupervised = True
            self._record(
                "service.unsupervised",
                "the service's supervisor is gone: nothing brings this worker back if it ends",
                "warn",
                {"remedy": "restart the service: a40console stop, then any command"},
            )

    def _lasted_s(self) -> float:
        return self._clock() - self._began_s
