"""Who holds the gate closed: only the one who closed it last opens it.

Beneath them an operator may have paused admission: then it stays closed when they open it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from a40console.operations.roles import Admission


class Gatekeeper:
    """Closes and opens the gateway's gate for operations that may overlap."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._newest = 0
        self._held = False
        self._paused: str | None = None

    @property
    def closed(self) -> str | None:
        """Why the gate is closed; None while it is open."""
        return self._admission.closed

    @property
    def paused(self) -> str | None:
        """Why an operator has paused admission; None while nobody has."""
        return self._paused

    def pause(self, why: str) -> None:
        """Hold what comes until `resume`, whatever else closes and opens the gate meanwhile."""
        self._paused = why
        if not self._held:
            self._admission.close(why, engine_expected=False)

    def resume(self) -> None:
        """Admit again, as soon as nobody else holds the gate."""
        self._paused = None
        if not self._held:
            self._admission.open()

    def close(self, why: str) -> int:
        """Hold what comes from now on; the number to open it with."""
        self._newest += 1
        self._held = True
        self._admission.close(why)
        return self._newest

    def open(self, number: int) -> None:
        """Let what is held go on, unless somebody closed the gate anew since."""
        if number != self._newest:
            return
        self._held = False
        if self._paused is None:
            self._admission.open()
        else:
            self._admission.close(self._paused, engine_expected=False)

    @contextmanager
    def held(self, why: str) -> Iterator[None]:
        """The gate is closed inside the block, and open after it, however it ends."""
        number = self.close(why)
        try:
            yield
        finally:
            self.open(number)

    async def drained(self, timeout_s: float) -> int:
        """Wait until no request is under way; how many still are after `timeout_s`."""
        return await self._admission.drained(timeout_s)
