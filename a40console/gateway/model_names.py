"""By which name the engine is asked, where it does not know the one that a client writes.

An OpenAI client goes on with the name of an engine before, or has one that no engine here ever
had: llama.cpp takes any name, vLLM answers 404 to all that it does not list. What serves is one
model, so any name means that one, as with the Messages API. A name that the engine lists is left
alone: an adapter, or a model of a router, is another one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from a40console.gateway.asking import ask_engine
from a40console.gateway.meter import Clock, Passage
from a40console.gateway.refusals import Refusal
from a40console.gateway.upstream import EngineSessions, Upstream

FRESH_S = 5.0
"""A name that was not listed so long ago may be by now: an adapter is loaded while vLLM runs."""

TOLD_NAMES = 64
_ASK_S = 5.0


class NamesOf(Protocol):
    """Knows what an engine calls its models."""

    async def instead(
        self, sessions: EngineSessions, upstream: Upstream, passage: Passage, asked: object
    ) -> str | None:
        """The name to write in place of the one that was asked for; None to leave it."""


class ModelNames:
    """Asks the engine for its list when a client writes a name that is not the served one.

    Args:
        on_renamed: Told of the first request of each name that another stands in for, per run of
            an engine, with that other.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        on_renamed: Callable[[Passage, str], object] = lambda passage, served: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._on_renamed = on_renamed
        self._clock = clock
        self._asking = asyncio.Lock()
        self._run_id: str | None = None
        self._listed: frozenset[str] = frozenset()
        self._listed_at_s: float | None = None
        self._told: set[str] = set()

    async def instead(
        self, sessions: EngineSessions, upstream: Upstream, passage: Passage, asked: object
    ) -> str | None:
        """The served name, where the engine lists that one and not the one that was asked for.

        Where the list cannot be had the name is left, and the engine says what it thinks of it.
        """
        served = upstream.served_name
        if not isinstance(asked, str) or asked == served:
            return None
        async with self._asking:
            listed = await self._names(sessions, upstream, asked)
            if asked in listed or served not in listed:
                return None
            if asked not in self._told and len(self._told) < TOLD_NAMES:
                self._told.add(asked)
                self._on_renamed(passage, served)
        return served

    async def _names(
        self, sessions: EngineSessions, upstream: Upstream, asked: str
    ) -> frozenset[str]:
        if self._run_id != upstream.run_id:
            self._told.clear()
            self._listed, self._listed_at_s = frozenset(), None
            self._run_id = upstream.run_id
        elif asked in self._listed or self._is_fresh():
            return self._listed
        if (listed := await _list(sessions, upstream)) is not None:
            self._listed, self._listed_at_s = listed, self._clock()
        return self._listed

    def _is_fresh(self) -> bool:
        at_s = self._listed_at_s
        return at_s is not None and self._clock() - at_s < FRESH_S


async def _list(sessions: EngineSessions, upstream: Upstream) -> frozenset[str] | None:
    """The names that the engine gives its models; None where it cannot say just now."""
    try:
        said = await ask_engine(sessions, upstream, "/v1/models", timeout_s=_ASK_S)
    except Refusal:
        return None
    if said.status >= 500:
        return None
    data = said.body().get("data")
    entries = data if isinstance(data, list) else []
    found = (entry.get("id") for entry in entries if isinstance(entry, dict))
    return frozenset(name for name in found if isinstance(name, str))
