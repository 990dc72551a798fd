"""The sources of one engine: what each poll brings is kept here for the next view."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from a40console.model.engine import Endpoint
from a40console.model.figures import Missing
from a40console.model.request import EngineRow
from a40console.model.snapshot import Gpu, SourceStatus
from a40console.telemetry import llamacpp, vllm, vllm_plugin
from a40console.telemetry.aliases import FORWARDER
from a40console.telemetry.blocks import Source
from a40console.telemetry.depth_speeds import DepthSpeeds
from a40console.telemetry.evidence import Evidence
from a40console.telemetry.fetch import EngineHttp, SourceError
from a40console.telemetry.llamacpp import LlamaCppSource
from a40console.telemetry.polling import EventSink, Poller
from a40console.telemetry.progress import StandstillClock
from a40console.telemetry.reading import EngineReading
from a40console.telemetry.sim import SOURCE as SIMULATED_GPUS
from a40console.telemetry.sim import SimulatedGpus
from a40console.telemetry.timeline import Count, Timeline
from a40console.telemetry.vllm import Identity, MetricsSource
from a40console.telemetry.vllm_plugin import PluginSource
from a40console.telemetry.windows import CounterRing

HEALTH_PERIOD_S = 2.0
_KEPT_ENDED = 256
_ONE_RESTART_S = 10.0
"""Two sources see the same restart within this."""


@dataclass(slots=True)
class Health:
    """The last answer of `/health`."""

    status: int | None = None
    reason: str = "not asked yet"

    def shown(self) -> int | Missing:
        """The status, or why there is none."""
        return Missing(self.reason) if self.status is None else self.status


class Feed:
    """What both engines have in common: health, restarts, standstill."""

    prefix: str

    def __init__(
        self, http: EngineHttp, *, clock: Callable[[], float], period_s: float, on_event: EventSink
    ) -> None:
        self._http = http
        self._clock = clock
        self._period_s = period_s
        self._on_event = on_event
        self.health = Health()
        self.standstill = StandstillClock()
        self.ended: deque[EngineRow] = deque(maxlen=_KEPT_ENDED)
        self.timeline = Timeline()
        self.restarted_at_s: float | None = None
        self.shown_s: float | None = None
        """When the counters were read that the last view showed."""

        self.on_restart: Callable[[], None] = lambda: None

    @property
    def gpus(self) -> tuple[Gpu, ...] | Missing | None:
        """The cards that the engine itself tells of, a simulated one's; None: ask the driver."""
        return None

    def poller(
        self, name: str, read: Callable[[], Awaitable[None]], period_s: float | None = None
    ) -> Poller:
        """A poller of one of this engine's sources."""
        return Poller(
            f"{self.prefix}.{name}",
            read,
            period_s=period_s or self._period_s,
            clock=self._clock,
            on_event=self._on_event,
        )

    async def read_health(self) -> None:
        """Ask `/health`; any status is an answer."""
        try:
            answer = await vllm.read_health(self._http)
        except SourceError as error:
            self.health = Health(reason=error.reason)
            raise
        self.health = Health(answer.status)
        if answer.status != 200:
            raise SourceError(f"/health answers HTTP {answer.status}")

    def restarted(self, reading: EngineReading) -> None:
        """The engine began again: what is kept belongs to its former life."""
        self.timeline.clear()
        before, self.restarted_at_s = self.restarted_at_s, reading.at_s
        if before is not None and reading.at_s - before < _ONE_RESTART_S:
            return
        self._on_event(
            "counters.reset",
            "The engine's counters began again: it was restarted. Rates start anew.",
            "warn",
            {"source": reading.source},
        )
        self.on_restart()

    def forget(self) -> None:
        """Let go of what was read, as the engine is followed no more: a feed refers to itself."""
        self.ended.clear()
        self.timeline.clear()

    def showed(self, latest: EngineReading | None) -> None:
        """A view has shown these counters; those of another source may be a little older."""
        if latest is not None:
            self.shown_s = max(latest.at_s, self.shown_s or latest.at_s)

    def follow(self, reading: EngineReading) -> None:
        """Put a reading's rows on the timeline."""
        self.ended.extend(reading.ended)
        if reading.rows is not None:
            self.timeline.add(reading.at_s, _counts(reading.rows), _counts(reading.ended))


def _counts(rows: Sequence[EngineRow]) -> dict[str, Count]:
    return {row.engine_id: Count(row.generated_tokens, row.passes) for row in rows}


class VllmFeed(Feed):
    """vLLM and what shares its surface: metrics, and our plugin where it is loaded."""

    prefix = "vllm"
    source = vllm.SOURCE

    def __init__(
        self,
        http: EngineHttp,
        endpoint: Endpoint,
        *,
        clock: Callable[[], float],
        period_s: float,
        on_event: EventSink,
        speeds: Callable[[], DepthSpeeds],
    ) -> None:
        super().__init__(http, clock=clock, period_s=period_s, on_event=on_event)
        self._speeds = speeds
        self._metrics_source = MetricsSource(http, source=self.source)
        self._metrics_ring = CounterRing()
        self._plugin_ring = CounterRing()
        self._metrics = self.poller("metrics", self._read_metrics)
        self._plugin: Poller | None = None
        if endpoint.plugin_token is not None:
            self._plugin_source = PluginSource(http, token=endpoint.plugin_token)
            self._plugin = self.poller("plugin", self._read_plugin)
        health = self.poller("health", self.read_health, max(HEALTH_PERIOD_S, period_s))
        self.pollers = [self._metrics, *([self._plugin] if self._plugin else []), health]

    async def identity(self) -> Identity:
        """Version, served names, context length."""
        return await vllm.read_identity(self._http)

    def forget(self) -> None:
        """Let go of what both sources said."""
        super().forget()
        self._metrics_ring.clear()
        self._plugin_ring.clear()

    async def _read_metrics(self) -> None:
        reading = await self._metrics_source.read()
        if self._metrics_ring.add(reading):
            self.restarted(reading)
        if not self.plugin_usable:
            self.standstill.observe(reading)

    async def _read_plugin(self) -> None:
        reading = await self._plugin_source.read()
        if self._plugin_ring.add(reading):
            self.ended.clear()
            self._speeds().clear()
            self.restarted(reading)
        self._speeds().take(reading)
        self.follow(reading)
        self.standstill.observe(reading)

    @property
    def plugin_usable(self) -> bool:
        """Whether the plugin's last answer still counts."""
        return self._plugin is not None and self._plugin.usable

    @property
    def plugin_counts(self) -> bool:
        """Whether the plugin counts requests, or may yet turn out to."""
        return self._plugin is not None and (self._plugin.usable or self._plugin.undecided)

    def statuses(self) -> tuple[SourceStatus, ...]:
        """How fresh each source is; the plugin's absence is told too."""
        told = tuple(poller.status() for poller in self.pollers)
        if self._plugin is not None:
            return told
        reason = "the engine runs without our plugin"
        none = SourceStatus(
            name=vllm_plugin.SOURCE, state="absent", age_s=Missing(reason), reason=reason
        )
        return (*told, none)

    def evidence(self, now_s: float) -> Evidence:
        """The plugin's rows and totals while it answers; else the metrics alone."""
        metrics = Source(
            name=self.source, ring=self._metrics_ring, now_s=now_s, why_none=self._metrics.reason
        )
        latest = self._plugin_ring.latest if self.plugin_usable else None
        reading = self._metrics_ring.latest
        speculating = None if reading is None else reading.speculating
        if latest is None or self._plugin is None:
            return self._evidence(None, metrics, metrics, metrics, speculating)
        plugin = Source(
            name=vllm_plugin.SOURCE,
            ring=self._plugin_ring,
            now_s=now_s,
            why_none=self._plugin.reason,
        )
        counted = "generated_tokens" in latest.counters
        drafts = "drafts" in latest.counters
        return self._evidence(
            latest,
            plugin if counted else metrics,
            metrics,
            plugin if drafts else metrics,
            bool(speculating) or bool(latest.counters.get("drafts")) if drafts else speculating,
        )

    def _evidence(
        self,
        latest: EngineReading | None,
        counters: Source,
        metrics: Source,
        speculation: Source,
        speculating: bool | None,
    ) -> Evidence:
        return Evidence(
            engine="vLLM",
            rows=None if latest is None else latest.rows,
            rows_at_s=0.0 if latest is None else latest.at_s,
            ended=tuple(self.ended),
            timeline=self.timeline,
            by_order=False,
            counters=counters,
            metrics=metrics,
            metrics_usable=self._metrics.usable,
            speculation=speculation,
            speculating=speculating,
            paused=None if latest is None else latest.paused,
            live_depth=None if latest is None else latest.live_depth,
            speeds=self._speeds(),
            controls=None if latest is None else latest.controls,
        )


class SimFeed(VllmFeed):
    """The simulated engine: vLLM's surface, and the card that it pretends to have."""

    def __init__(
        self,
        http: EngineHttp,
        endpoint: Endpoint,
        *,
        clock: Callable[[], float],
        period_s: float,
        on_event: EventSink,
        speeds: Callable[[], DepthSpeeds],
    ) -> None:
        super().__init__(
            http, endpoint, clock=clock, period_s=period_s, on_event=on_event, speeds=speeds
        )
        self._cards = SimulatedGpus(http, clock)
        self.pollers.append(
            Poller(
                SIMULATED_GPUS,
                self._cards.read,
                period_s=period_s,
                clock=clock,
                on_event=on_event,
            )
        )

    @property
    def gpus(self) -> tuple[Gpu, ...] | Missing:
        """The simulated cards."""
        return self._cards.view()


class AttachedFeed(VllmFeed):
    """An endpoint somewhere else: what its forwarder counted, and nothing of its engine."""

    prefix = "forwarder"
    source = FORWARDER

    def statuses(self) -> tuple[SourceStatus, ...]:
        """How fresh each source is; nobody expects a plugin there."""
        return tuple(poller.status() for poller in self.pollers)


class LlamaFeed(Feed):
    """llama.cpp's server: metrics and slots as one source."""

    prefix = "llamacpp"
    plugin_counts = False

    def __init__(
        self,
        http: EngineHttp,
        *,
        clock: Callable[[], float],
        period_s: float,
        on_event: EventSink,
        kv_unified: bool | None,
    ) -> None:
        super().__init__(http, clock=clock, period_s=period_s, on_event=on_event)
        self._source = LlamaCppSource(http, kv_unified=kv_unified)
        self._ring = CounterRing()
        self._metrics = self.poller("metrics", self._read)
        health = self.poller("health", self.read_health, max(HEALTH_PERIOD_S, period_s))
        self.pollers = [self._metrics, health]

    async def identity(self) -> Identity:
        """Build, model names, context length of a slot."""
        return await llamacpp.read_identity(self._http)

    def forget(self) -> None:
        """Let go of what the source said."""
        super().forget()
        self._ring.clear()

    async def _read(self) -> None:
        reading = await self._source.read()
        if self._ring.add(reading):
            self.ended.clear()
            self.restarted(reading)
        self.follow(reading)
        self.standstill.observe(reading)

    def statuses(self) -> tuple[SourceStatus, ...]:
        """How fresh metrics, slots and health are."""
        metrics, health = (poller.status() for poller in self.pollers)
        slots = SourceStatus(
            name="llamacpp.slots", state=metrics.state, age_s=metrics.age_s, reason=metrics.reason
        )
        if (error := self._source.slots_error) is not None:
            slots = SourceStatus(
                name="llamacpp.slots",
                state="absent",
                age_s=Missing(error.reason),
                reason=error.reason,
            )
        return metrics, slots, health

    def evidence(self, now_s: float) -> Evidence:
        """Rows and counters of the last reading, while it counts."""
        source = Source(
            name=llamacpp.SOURCE, ring=self._ring, now_s=now_s, why_none=self._metrics.reason
        )
        latest = self._ring.latest
        usable = latest is not None and self._metrics.usable
        return Evidence(
            engine="llama.cpp",
            rows=latest.rows if latest is not None and usable else None,
            rows_at_s=latest.at_s if latest is not None else 0.0,
            ended=tuple(self.ended),
            timeline=self.timeline,
            by_order=True,
            counters=source,
            metrics=source,
            metrics_usable=usable,
            speculation=source,
            speculating=None if latest is None else latest.speculating,
            paused=None,
        )
