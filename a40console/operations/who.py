"""Who asks for what is being done: set where a command comes in, read where it is written down."""

from __future__ import annotations

from contextvars import ContextVar

_ASKING: ContextVar[str] = ContextVar("asking", default="")


def ask_as(who: str) -> None:
    """What is begun from here on is asked for by `who`."""
    _ASKING.set(who)


def asking() -> str:
    """Who asks: `alice@laptop, pid 4711`; empty where the service itself does."""
    return _ASKING.get()
