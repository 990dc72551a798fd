"""A step of a command that a stop can end, and the error that the one who asked for it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from a40console.errors import RefusedError

T = TypeVar("T")

INTERRUPTED = "The start was interrupted by a stop"


class StartInterruptedError(RefusedError):
    """A stop came while an engine was starting, or on the way to it."""


class Interruptible:
    """Runs one step at a time as a task of its own."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None

    @property
    def busy(self) -> bool:
        """Whether a step is under way."""
        return self._task is not None

    async def run(self, step: Coroutine[Any, Any, T]) -> T:
        """The step's outcome.

        Raises:
            StartInterruptedError: If it was interrupted.
        """
        task: asyncio.Task[T] = asyncio.create_task(step)
        self._task = task
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled():
                task.cancel()
                raise
            raise StartInterruptedError(INTERRUPTED) from None
        finally:
            self._task = None

    def interrupt(self) -> None:
        """End the step, if there is one."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """End the step and wait for it."""
        if (task := self._task) is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
