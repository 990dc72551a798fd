"""Follows one engine: polls its sources, and joins them with the gateway's rows into a view."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import httpx

from a40console.model.engine import Endpoint, EngineKind, is_simulated
from a40console.model.figures import Missing
from a40console.model.request import GatewayRow
from a40console.telemetry.depth_speeds import DepthSpeeds
from a40console.telemetry.feeds import AttachedFeed, LlamaFeed, SimFeed, VllmFeed
from a40console.telemetry.fetch import EngineHttp, SourceError
from a40console.telemetry.joining import Joiner
from a40console.telemetry.latency import FirstTokens
from a40console.telemetry.polling import EventSink
from a40console.telemetry.sim import SERVER as SIMULATED_SERVER
from a40console.telemetry.view import EngineView
from a40console.telemetry.viewing import build_view
from a40console.telemetry.vllm import HEALTH_TIMEOUT_S, Identity

__all__ = ["EngineSampler", "EventSink"]

IDENTITY_RETRY_S = 2.0
_UNKNOWN = Missing("not asked yet")


class EngineSampler:
    """Telemetry of one engine.

    Args:
        kind: What the engine is; a foreign one is found out from its answers.
        endpoint: Where it answers.
        period_s: Seconds between polls.
        on_event: Takes events: `counters.reset`, `source.failed`, `source.restored`.
        clock: Monotonic clock, the same as the gateway's.
        transport: Replaces the connection to the endpoint.
        kv_unified: Whether llama.cpp's slots share one cache; it does not tell by itself.
    """

    def __init__(
        self,
        *,
        kind: EngineKind,
        endpoint: Endpoint,
        period_s: float = 1.0,
        on_event: EventSink,
        clock: Callable[[], float] = time.monotonic,
        transport: httpx.AsyncBaseTransport | None = None,
        kv_unified: bool | None = None,
    ) -> None:
        self._kind = kind
        self._endpoint = endpoint
        self._period_s = period_s
        self._on_event = on_event
        self._clock = clock
        self._kv_unified = kv_unified
        self.speeds = DepthSpeeds()
        """What was measured at which depth; of an engine followed before, its former ones."""

        self._http = EngineHttp(endpoint, clock=clock, transport=transport)
        self._joiner = Joiner()
        self._first_tokens = FirstTokens(since_s=clock())
        self._identity = Identity(_UNKNOWN, (), _UNKNOWN)
        self._identify_again = asyncio.Event()
        self._feed = self._make_feed(kind)

    async def run(self) -> None:
        """Read all sources until cancelled; what fails becomes a status, never an error."""
        try:
            if self._kind == "foreign":
                self._kind = await self._find_out()
                self._feed = self._make_feed(self._kind)
            async with asyncio.TaskGroup() as tasks:
                for poller in self._feed.pollers:
                    tasks.create_task(poller.run(), name=poller.name)
                tasks.create_task(self._identify(), name="engine identity")
        finally:
            self._feed.forget()
            self._joiner.clear()
            await self._http.aclose()

    async def aclose(self) -> None:
        """Give the connection back, where `run` was never called."""
        await self._http.aclose()

    async def poll(self) -> None:
        """Read every source once, for a caller whose clock only it moves; `run` does it by time."""
        for poller in self._feed.pollers:
            await poller.poll()
        self._identity = await self._feed.identity()

    def view(self, live: Sequence[GatewayRow], finished: Sequence[GatewayRow]) -> EngineView:
        """The engine now, joined with the gateway's rows; reads nothing.

        Args:
            live: The gateway's requests under way.
            finished: Its last ended requests, in any order.
        """
        now_s = self._clock()
        for poller in self._feed.pollers:
            poller.viewed_at_s = now_s
        self._first_tokens.observe((*finished, *live))
        evidence = self._feed.evidence(now_s)
        joined = self._joiner.join(evidence, live, finished, now_s=now_s)
        view = build_view(
            evidence=evidence,
            joined=joined,
            identity=self._identity,
            feed=self._feed,
            first_tokens=self._first_tokens,
            kind=self._kind,
            now_s=now_s,
        )
        self._feed.showed(evidence.counters.latest)
        return view

    def _make_feed(self, kind: EngineKind) -> VllmFeed | LlamaFeed:
        feed: VllmFeed | LlamaFeed
        if kind == "llamacpp":
            feed = LlamaFeed(
                self._http,
                clock=self._clock,
                period_s=self._period_s,
                on_event=self._on_event,
                kv_unified=self._kv_unified,
            )
        else:
            feeds = {"sim": SimFeed, "attached": AttachedFeed}
            feed = feeds.get(kind, VllmFeed)(
                self._http,
                self._endpoint,
                clock=self._clock,
                period_s=self._period_s,
                on_event=self._on_event,
                speeds=lambda: self.speeds,
            )
        feed.on_restart = self._restarted
        return feed

    def _restarted(self) -> None:
        self._joiner.clear()
        self._first_tokens.begin_again(self._clock())
        self._identify_again.set()

    async def _find_out(self) -> EngineKind:
        """What a foreign engine is, from the server it says it is; waits until it answers."""
        while True:
            try:
                answer = await self._http.get("/v1/models", timeout_s=HEALTH_TIMEOUT_S)
            except SourceError:
                await asyncio.sleep(IDENTITY_RETRY_S)
            else:
                return await self._named(answer.server)

    async def _named(self, server: str) -> EngineKind:
        """The kind that a `Server` header tells, or the version where a proxy has replaced it."""
        if "llama.cpp" in server:
            return "llamacpp"
        if SIMULATED_SERVER in server:
            return "sim"
        try:
            identity = await self._feed.identity()
        except SourceError:
            return "vllm"
        return "sim" if is_simulated(identity.version) else "vllm"

    async def _identify(self) -> None:
        """Ask who answers, once for each life of the engine."""
        while True:
            self._identify_again.clear()
            try:
                self._identity = await self._feed.identity()
            except SourceError as error:
                why = Missing(error.reason)
                self._identity = Identity(why, (), why)
                await asyncio.sleep(IDENTITY_RETRY_S)
            else:
                await self._identify_again.wait()
