"""Who asks for what is being done: set where a command comes in, read where it is written down."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class _Asked:
    """One thing that was asked for; what is begun for it shares it."""

    who: str = ""
    is_told: bool = False


_ASKED: ContextVar[_Asked | None] = ContextVar("asked", default=None)


def ask_as(who: str) -> None:
    """What is begun from here on is asked for by `who`, anew."""
    _ASKED.set(_Asked(who))


def asking() -> str:
    """Who asks: `alice@laptop, pid 4711`; empty where the service itself does."""
    asked = _ASKED.get()
    return "" if asked is None else asked.who


def note_told(who: str) -> None:
    """An event says who asked: of what is being done here if that is its asker."""
    asked = _ASKED.get()
    if asked is not None and who and who == asked.who:
        asked.is_told = True


def is_told() -> bool:
    """Whether an event has said who asked for what is being done here."""
    asked = _ASKED.get()
    return asked is not None and asked.is_told
