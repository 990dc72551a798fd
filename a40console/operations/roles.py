"""What the operator asks of its collaborators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from a40console.engines.process import EngineProcess
from a40console.model.event import Severity
from a40console.model.profile import Profile
from a40console.operations.status import EngineStatus


class Recorder(Protocol):
    """Writes an event into the journal."""

    def __call__(
        self,
        kind: str,
        text: str,
        severity: Severity = "info",
        data: dict[str, str] | None = None,
    ) -> object:
        """Record what happened, now."""


Publish = Callable[[EngineStatus], None]

Tell = Callable[[str], None]
"""Takes how far something is, in words."""


class Admission(Protocol):
    """The gateway's gate: while it is closed, requests are held in place of being refused."""

    @property
    def closed(self) -> str | None:
        """Why it is closed, in words for the client; None while it is open."""

    def close(self, why: str, *, engine_expected: bool = True) -> None:
        """Hold what comes from now on; `why` goes on from "while", and replaces the one before.

        `engine_expected` where an engine comes in place of the one that is lost.
        """

    def open(self) -> None:
        """Let what is held go on: to the engine that serves, or to a clear refusal."""

    async def drained(self, timeout_s: float) -> int:
        """Wait until no request is under way, at most `timeout_s`; how many still are."""


class Starter(Protocol):
    """Brings one engine up, publishing its phases."""

    async def check(self, profile: Profile) -> None:
        """See that it can be started here, before what serves is given up for it.

        Raises:
            RefusedError: If it cannot.
        """

    async def launch(
        self, profile: Profile, status: EngineStatus, publish: Publish
    ) -> tuple[EngineStatus, EngineProcess]:
        """Fetch what it needs and start its process.

        Raises:
            ConsoleError: If it cannot be started; nothing of it runs then.
        """

    async def await_ready(
        self, status: EngineStatus, process: EngineProcess, publish: Publish
    ) -> EngineStatus:
        """Wait until it serves.

        Raises:
            ConsoleError: If it ends, or does not serve in time; it is left as it is then.
        """

    async def free_port(self, status: EngineStatus, publish: Publish) -> bool:
        """Wait for an engine's port after a start that failed; whether another is worth it."""
