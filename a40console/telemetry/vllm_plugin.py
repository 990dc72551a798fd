"""Client of our plugin inside vLLM: every request as a row, with the totals of the same instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from a40console.model.instants import iso_utc
from a40console.model.request import EngineRow, Phase
from a40console.telemetry.fetch import EngineHttp, SourceError
from a40console.telemetry.reading import CounterName, EngineReading, GaugeName, LiveDepth

SOURCE = "vllm.plugin"
PATH = "/a40console/v1/state"
FORMAT_VERSION = 1
TIMEOUT_S = 5.0

_TOTALS: Mapping[str, CounterName] = {
    "generated_tokens": "generated_tokens",
    "prompt_tokens": "prompt_tokens",
    "cached_tokens": "cached_prompt_tokens",
    "computed_prompt_tokens": "computed_prompt_tokens",
    "started": "started",
    "aborted": "aborted",
    "steps": "passes",
    "prefill_only_steps": "prefill_passes",
    "preemptions": "preemptions",
    "drafts": "drafts",
    "draft_tokens": "draft_tokens",
    "accepted_tokens": "accepted_tokens",
}
_SCHEDULER: Mapping[str, GaugeName] = {
    "running": "running",
    "waiting": "waiting",
    "kv_cache_usage_ratio": "kv_usage_ratio",
}
_PHASES: Mapping[str, Phase] = {"queued": "queued", "prefill": "prefill", "decode": "decode"}


@dataclass(frozen=True, slots=True)
class _Clocks:
    """The engine's clocks against ours, at one answer."""

    at_s: float
    """The answer's instant on our monotonic clock."""

    unix_s: float
    """The same instant on the engine's wall clock."""

    def monotonic_s(self, unix_s: float | None) -> float | None:
        """An instant of the engine's wall clock on our monotonic clock."""
        return None if unix_s is None else self.at_s - (self.unix_s - unix_s)


class PluginSource:
    """Reads the plugin's state; keeps where the list of finished requests goes on."""

    def __init__(self, http: EngineHttp, *, token: str) -> None:
        self._http = http
        self._token = token
        self._boot: str | None = None
        self._since = 0
        self._shift_s = 0.0
        self._ended_passes = 0.0
        self._sequence_passes = 0.0

    async def read(self) -> EngineReading:
        """One answer.

        Raises:
            SourceError: When the plugin does not answer, is disabled, or is not understood.
        """
        state, middle_s, trip_s = await self._ask()
        if state.get("boot") != self._boot:
            if self._boot is not None and self._since:
                self._since = 0
                state, middle_s, trip_s = await self._ask()
            self._begin(state, middle_s, trip_s)
        try:
            reading = self._decode(state)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            kind = type(error).__name__
            raise SourceError(f"the plugin's answer is not understood ({kind}: {error})") from error
        self._since = int(state["sequence"])
        return reading

    async def _ask(self) -> tuple[dict[str, Any], float, float]:
        answer = await self._http.get(
            PATH, timeout_s=TIMEOUT_S, token=self._token, params={"since": str(self._since)}
        )
        if answer.status in (401, 403):
            raise SourceError(f"the plugin refuses our token (HTTP {answer.status})")
        if answer.status == 404:
            raise SourceError("the plugin is not loaded in this engine (HTTP 404)")
        state = self._http.require(answer, "plugin").json_object()
        if state.get("version") != FORMAT_VERSION:
            raise SourceError(
                f"the plugin speaks version {state.get('version')}, this console {FORMAT_VERSION}: "
                "restart the engine"
            )
        if disabled := state.get("disabled"):
            raise SourceError(f"the plugin disabled itself: {disabled}")
        return state, answer.at_s, answer.round_trip_s

    def _begin(self, state: dict[str, Any], middle_s: float, trip_s: float) -> None:
        self._boot = str(state.get("boot"))
        self._ended_passes = self._sequence_passes = 0.0
        apart_s = middle_s - float(state.get("at_monotonic_s", middle_s))
        # One machine has one monotonic clock: then the plugin's own instant is exact.
        self._shift_s = 0.0 if abs(apart_s) <= trip_s else apart_s

    def _decode(self, state: dict[str, Any]) -> EngineReading:
        at_s = float(state["at_monotonic_s"]) + self._shift_s
        clocks = _Clocks(at_s, float(state["at_unix_s"]))
        totals, scheduler = state["totals"], state.get("scheduler") or {}
        rows = tuple(_row(row, clocks) for row in state["running"])
        ended = tuple(_ended_row(row, clocks) for row in state["finished"])
        counters = {
            name: float(totals[key]) for key, name in _TOTALS.items() if totals.get(key) is not None
        }
        counters["sequence_passes"] = self._count_passes(rows, ended)
        gauges = {
            name: float(scheduler[key])
            for key, name in _SCHEDULER.items()
            if scheduler.get(key) is not None
        }
        return EngineReading(
            source=SOURCE,
            at_s=at_s,
            counters=counters,
            gauges=gauges,
            unreadable=frozenset(_TOTALS.values()) - counters.keys(),
            accepted_per_position=_numbers(totals.get("accepted_per_position")),
            drafted_per_position=_numbers(totals.get("drafted_per_position")),
            rows=rows,
            ended=ended,
            paused=state.get("paused"),
            live_depth=_live_depth(state.get("speculation")),
            controls=_controls(state.get("controls")),
            boot=self._boot,
        )

    def _count_passes(self, rows: tuple[EngineRow, ...], ended: tuple[EngineRow, ...]) -> float:
        """Passes by sequence since we watch; it never falls, even if finished rows were lost."""
        self._ended_passes += sum(row.passes or 0 for row in ended)
        running = sum(row.passes or 0 for row in rows)
        self._sequence_passes = max(self._sequence_passes, self._ended_passes + running)
        return self._sequence_passes


def _live_depth(told: Any) -> LiveDepth | None:
    """What the worker said of its depth; None where it cannot tell, or the plugin is older."""
    if not told or told.get("depth") is None:
        return None
    return LiveDepth(
        tokens=int(told["depth"]),
        deepest=int(told["deepest"]),
        method=str(told["method"]),
        changeable=told.get("why_not") is None,
    )


def _controls(told: Any) -> dict[str, str] | None:
    """What the plugin cannot do, with its reasons; None where it is older than its controls."""
    if not isinstance(told, Mapping):
        return None
    return {str(name): str(reason) for name, reason in told.items() if reason is not None}


def _numbers(values: Any) -> tuple[float, ...] | None:
    return tuple(float(value) for value in values) if values else None


def _row(row: dict[str, Any], clocks: _Clocks) -> EngineRow:
    arrived_s = clocks.monotonic_s(row.get("arrival_unix_s"))
    ttft_s = row.get("first_token_s")
    first_s = None if ttft_s is None or arrived_s is None else arrived_s + ttft_s
    external = row.get("external_id")
    return EngineRow(
        engine_id=str(row["id"]),
        external_id=None if external is None else str(external),
        slot=None,
        phase=_phase(row),
        prompt_tokens=row.get("prompt_tokens"),
        cached_tokens=row.get("cached_tokens"),
        generated_tokens=int(row["generated_tokens"]),
        passes=row.get("passes"),
        max_tokens=row.get("max_tokens"),
        ttft_s=ttft_s,
        arrived_at_s=arrived_s,
        first_token_at_s=first_s,
        last_token_at_s=clocks.monotonic_s(row.get("last_token_unix_s")),
        queued_s=row.get("queued_s"),
        prefill_s=row.get("prefill_s"),
    )


def _phase(row: dict[str, Any]) -> Phase:
    """The phase; where the plugin cannot tell, what its tokens say."""
    unknown: Phase = "decode" if row["generated_tokens"] else "prefill"
    return _PHASES.get(row["phase"] or "", unknown)


def _ended_row(row: dict[str, Any], clocks: _Clocks) -> EngineRow:
    live = _row({**row, "phase": "decode"}, clocks)
    ended_unix_s = float(row["ended_unix_s"])
    return replace(
        live,
        finish_reason=row.get("finish_reason"),
        ended_at_s=clocks.monotonic_s(ended_unix_s),
        ended_at=iso_utc(ended_unix_s),
    )
