"""How long the engine's counters have stood still while requests were open."""

from __future__ import annotations

from dataclasses import dataclass

from a40console.model.figures import Figure, Missing
from a40console.telemetry.reading import CounterName, EngineReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a verdict on a hung engine needs: counters and health, each on its own."""

    generation_flat_s: Figure
    """Seconds that the generated tokens stood still while requests ran or waited."""

    steps_flat_s: Figure
    """The same of engine steps, which move during a long prefill too."""

    health_status: int | Missing
    """HTTP status of `/health`; it is known to be 200 while nothing moves."""


class StandstillClock:
    """Measures standstill from readings; idle time does not count."""

    def __init__(self) -> None:
        self._moved: dict[CounterName, tuple[float, float]] = {}
        self._work = False
        self._latest: EngineReading | None = None

    def observe(self, reading: EngineReading) -> None:
        """Take a reading of the source that is trusted now."""
        open_requests = reading.gauges.get("running", 0) + reading.gauges.get("waiting", 0)
        began = not self._work or self._source_changed(reading)
        self._work = open_requests > 0
        for name in ("generated_tokens", "passes"):
            value = reading.counters.get(name)
            if value is None:
                self._moved.pop(name, None)
            elif began or not self._work or self._moved.get(name, (None, 0.0))[0] != value:
                self._moved[name] = (value, reading.at_s)
        self._latest = reading

    def _source_changed(self, reading: EngineReading) -> bool:
        return self._latest is not None and self._latest.source != reading.source

    def flat_s(self, name: CounterName) -> Figure:
        """Seconds that a counter has stood still with requests open."""
        if self._latest is None:
            return Missing("not read yet")
        if not self._work:
            return Missing("no request is open")
        moved = self._moved.get(name)
        return Missing("not counted") if moved is None else self._latest.at_s - moved[1]
