"""A slow read beside the event loop: what it found last is there at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Aside(Generic[T]):
    """Reads in a thread of its own whenever what it would read has changed; one read at a time.

    Args:
        nothing: What is known before the first read has ended.
    """

    def __init__(self, nothing: T) -> None:
        self._nothing = nothing
        self._of: Hashable = None
        self._asked: Hashable = None
        self._known = nothing
        self._reading: threading.Thread | None = None
        self._found: tuple[Hashable, T] | None = None

    def look(self, of: Hashable, state: Hashable, read: Callable[[], T]) -> T:
        """The last that was found, while a newer read is under way too.

        Args:
            of: What is read of; another one begins with nothing known.
            state: Changes when it must be read again.
            read: Reads it; an error finds nothing.
        """
        if of != self._of:
            self._of, self._asked, self._known = of, None, self._nothing
        self._take()
        if self._reading is None and (of, state) != self._asked:
            self._asked = (of, state)
            self._reading = threading.Thread(
                target=self._read, args=(of, read), name="a read aside", daemon=True
            )
            self._reading.start()
        return self._known

    def forget(self) -> None:
        """Nothing is looked at any more."""
        self._of = self._asked = None
        self._known = self._nothing

    def settle(self, timeout_s: float = 10.0) -> None:
        """Wait for the read that is under way, if any."""
        if self._reading is not None:
            self._reading.join(timeout_s)

    def _take(self) -> None:
        """What a read that has ended found, if it is still of the same."""
        if self._reading is None or self._reading.is_alive():
            return
        found, self._reading, self._found = self._found, None, None
        if found is not None and found[0] == self._of:
            self._known = found[1]

    def _read(self, of: Hashable, read: Callable[[], T]) -> None:
        try:
            self._found = (of, read())
        except Exception:
            log.exception("what stands beside the snapshot could not be read")
            self._found = (of, self._nothing)
