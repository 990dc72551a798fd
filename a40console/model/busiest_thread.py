"""The thread of an engine that works most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BusiestThread:
    """The engine's hottest thread."""

    name: str
    ratio: float
