"""What the engine under test counts, by the names that an arm's end uses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Self

from a40console.model.engine import Endpoint
from a40console.model.figures import Figure, Missing, number
from a40console.telemetry.aliases import read_samples
from a40console.telemetry.exposition import Samples
from a40console.telemetry.fetch import EngineHttp, SourceError
from a40console.telemetry.reading import CounterName, EngineReading
from a40console.telemetry.vllm import METRICS_TIMEOUT_S, samples_of

SETTLE_S = 3.0
"""Engines count a request some moments after its last token went out."""

SETTLE_STEP_S = 0.15
_FINISHED = "vllm:request_success_total"
_NAMES: Mapping[str, tuple[CounterName, ...]] = {
    "prompt_tokens": ("prompt_tokens", "queried_tokens"),
    "cached_tokens": ("cached_prompt_tokens", "hit_tokens"),
    "generated_tokens": ("generated_tokens",),
    "passes": ("passes",),
    "drafts": ("drafts",),
    "drafted_tokens": ("draft_tokens",),
    "accepted_tokens": ("accepted_tokens",),
    "preemptions": ("preemptions",),
}


class RunCounters:
    """Reads an engine's counters; what it does not count is missing with the reason."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._http = EngineHttp(endpoint, clock=time.monotonic)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connection back."""
        await self._http.aclose()

    async def read(self) -> dict[str, Figure]:
        """The counters now."""
        try:
            answer = await self._http.get("/metrics", timeout_s=METRICS_TIMEOUT_S)
            samples = samples_of(self._http.require(answer, "metrics"))
        except SourceError as error:
            why = Missing(error.reason)
            return dict.fromkeys((*_NAMES, "requests"), why)
        reading = read_samples(samples, source="engine.metrics", at_s=answer.at_s)
        return _figures(reading) | {"requests": _requests(samples, reading)}

    async def settled(self) -> dict[str, Figure]:
        """The counters once two looks agree: what has just ended is in them."""
        before = await self.read()
        until_s = time.monotonic() + SETTLE_S
        while time.monotonic() < until_s:
            await asyncio.sleep(SETTLE_STEP_S)
            now = await self.read()
            if now == before:
                break
            before = now
        return before


def _figures(reading: EngineReading) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    for name, candidates in _NAMES.items():
        known = [reading.counters[each] for each in candidates if each in reading.counters]
        plain = name.replace("_", " ")
        figures[name] = known[0] if known else Missing(f"the engine does not count {plain}")
    for position, count in enumerate(reading.accepted_per_position or (), start=1):
        figures[f"accepted_tokens_at_{position}"] = (
            count if count == count else Missing("its count is no number")  # noqa: PLR0124
        )
    return figures


def _requests(samples: Samples, reading: EngineReading) -> Figure:
    """How many were answered to their end; an aborted one is none of them."""
    ended = samples.get(_FINISHED)
    if ended:
        return sum(each.value for each in ended if each.labels.get("finished_reason") != "abort")
    begun = reading.counters.get("first_tokens")
    return Missing("the engine does not count requests") if begun is None else begun


def none_running(counters: Mapping[str, Figure]) -> bool:
    """Whether nothing at all could be read: no engine answers there."""
    return all(number(figure) is None for figure in counters.values())
