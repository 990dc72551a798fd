"""Errors for the operator: what happened, the evidence, what to do, and the exit code."""

from __future__ import annotations

from enum import IntEnum

from a40console.model.control import Trouble


class Exit(IntEnum):
    """Exit codes that scripts rely on."""

    DONE = 0
    BUG = 1
    USAGE = 2
    NO_SERVICE = 3
    NOT_SERVING = 4
    REFUSED = 5
    CHECK_FAILED = 6
    TIMED_OUT = 7


class ConsoleError(Exception):
    """Anything that an operator should read rather than a traceback."""

    exit_code = Exit.BUG

    def __init__(
        self, message: str, *, evidence: str = "", remedy: str = "", exit_code: Exit | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.evidence = evidence
        self.remedy = remedy
        if exit_code is not None:
            self.exit_code = exit_code

    @property
    def trouble(self) -> Trouble:
        """The error as it crosses the control API."""
        return Trouble(
            message=self.message,
            evidence=self.evidence,
            remedy=self.remedy,
            exit_code=int(self.exit_code),
        )

    @classmethod
    def from_trouble(cls, trouble: Trouble) -> ConsoleError:
        """The error that crossed the control API; an exit code we do not know is a bug's."""
        known = {int(code) for code in Exit}
        return ConsoleError(
            trouble.message,
            evidence=trouble.evidence,
            remedy=trouble.remedy,
            exit_code=Exit(trouble.exit_code) if trouble.exit_code in known else Exit.BUG,
        )


class UsageError(ConsoleError):
    """The operator asked for something that does not exist."""

    exit_code = Exit.USAGE


class NoServiceError(ConsoleError):
    """No service answers on the control socket."""

    exit_code = Exit.NO_SERVICE


class NotServingError(ConsoleError):
    """The engine does not serve."""

    exit_code = Exit.NOT_SERVING


class RefusedError(ConsoleError):
    """The request cannot be done as things are; the message says why."""

    exit_code = Exit.REFUSED


class CheckFailedError(ConsoleError):
    """A check came out wrong."""

    exit_code = Exit.CHECK_FAILED


class TimedOutError(ConsoleError):
    """It did not happen in time."""

    exit_code = Exit.TIMED_OUT
