"""llama.cpp's server: `/props` first, then `/metrics` and `/slots`, as one consistent reading.

`/slots` is read only while requests run: it wakes a sleeping server and restarts the idle timer of
one that would fall asleep. The server's token counter moves when a request ends, so the live
counter is that one plus what the running slots have decoded. Its two `*_seconds` gauges are means
between two scrapes of whoever scrapes, and are never read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from a40console.model.figures import Figure, Missing, Text
from a40console.model.instants import iso_utc
from a40console.model.request import EngineRow
from a40console.telemetry.aliases import MEAN_BUSY_SLOTS, read_samples
from a40console.telemetry.exposition import Samples
from a40console.telemetry.fetch import Answer, EngineHttp, SourceError
from a40console.telemetry.reading import CounterName, EngineReading, GaugeName, Setting
from a40console.telemetry.vllm import (
    HEALTH_TIMEOUT_S,
    METRICS_TIMEOUT_S,
    Identity,
    read_models,
    samples_of,
)

SOURCE = "llamacpp.metrics"
_TRIES = 4
_COARSEST_SUM = 4e6
"""Above this the printed mean of busy slots, six digits, is off by more than 20 passes."""


@dataclass(frozen=True, slots=True)
class EngineSlot:
    """One slot of the server."""

    number: int
    task: int | None
    processing: bool
    context_tokens: int
    """Capacity of the slot."""

    held_tokens: int
    """Tokens in its cache, the generated ones included; an idle slot keeps them."""

    processed_tokens: int
    cached_tokens: int
    decoded_tokens: int
    max_tokens: int | None
    speculative: bool

    @property
    def engine_id(self) -> str:
        """Slot and task: a task id alone says nothing to an operator."""
        return f"{self.number}/{self.task}"


def decode_slots(answer: Answer) -> tuple[EngineSlot, ...]:
    """The slots of a `/slots` answer.

    Raises:
        SourceError: When the body is not a list of slots.
    """
    try:
        return tuple(_slot(slot) for slot in json.loads(answer.text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(f"/slots is not understood: {error}") from error


def _slot(slot: dict[str, Any]) -> EngineSlot:
    params = slot.get("params") or {}
    token = slot.get("next_token") or {}
    if isinstance(token, list):  # documented as an object, sent as a list of one
        token = token[0] if token else {}
    limit = params.get("max_tokens", params.get("n_predict"))
    return EngineSlot(
        number=int(slot["id"]),
        task=slot.get("id_task"),
        processing=bool(slot["is_processing"]),
        context_tokens=int(slot["n_ctx"]),
        held_tokens=int(slot.get("n_prompt_tokens", 0)),
        processed_tokens=int(slot.get("n_prompt_tokens_processed", 0)),
        cached_tokens=int(slot.get("n_prompt_tokens_cache", 0)),
        decoded_tokens=int(token.get("n_decoded", 0)),
        max_tokens=limit if isinstance(limit, int) and limit >= 0 else None,
        speculative=bool(slot.get("speculative", False)),
    )


class LlamaCppSource:
    """Reads the server; follows its tasks from one reading to the next."""

    def __init__(
        self,
        http: EngineHttp,
        *,
        kv_unified: bool | None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._http = http
        self._wall = wall
        self._kv_unified = kv_unified
        self._slots: tuple[EngineSlot, ...] = ()
        self._slots_error: SourceError | None = None
        self._rows: tuple[EngineRow, ...] = ()
        self._predicted: float | None = None
        self._unseen = 0

    async def read(self) -> EngineReading:
        """One consistent reading.

        Raises:
            SourceError: When the metrics cannot be read.
        """
        asleep = await self._asleep()
        reading, busy_mean = await self._metrics()
        if not asleep and self._slots_wanted(reading):
            reading, busy_mean = await self._with_slots(reading, busy_mean)
        return self._complete(reading, busy_mean, asleep=asleep)

    @property
    def slots_error(self) -> SourceError | None:
        """Why slots could not be read the last time they were wanted."""
        return self._slots_error

    async def _asleep(self) -> bool:
        answer = await self._http.get("/props", timeout_s=HEALTH_TIMEOUT_S)
        props = self._http.require(answer, "props").json_object()
        if props.get("role") == "router":
            raise SourceError("this is a router of several models: attach to one of its models")
        return bool(props.get("is_sleeping", False))

    async def _metrics(self) -> tuple[EngineReading, float | None]:
        answer = await self._http.get("/metrics", timeout_s=METRICS_TIMEOUT_S)
        if answer.status == 501:
            raise SourceError("metrics are off: start llama-server with --metrics", absent=True)
        samples = samples_of(self._http.require(answer, "metrics"))
        reading = read_samples(samples, source=SOURCE, at_s=answer.at_s)
        return replace(reading, boot=answer.process_start), _mean_busy(samples)

    def _slots_wanted(self, reading: EngineReading) -> bool:
        busy = reading.gauges.get("running", 0) + reading.gauges.get("waiting", 0) > 0
        moved = reading.counters.get("generated_tokens") != self._predicted
        return busy or moved or bool(self._rows)

    async def _with_slots(
        self, reading: EngineReading, busy_mean: float | None
    ) -> tuple[EngineReading, float | None]:
        """Slots between two scrapes with the same counter: no request ended in between."""
        for _ in range(_TRIES):
            answer = await self._http.get("/slots", timeout_s=METRICS_TIMEOUT_S)
            if answer.status in (404, 501):
                self._slots_error = SourceError(
                    "slots are off: start llama-server without --no-slots", absent=True
                )
                return reading, busy_mean
            slots = decode_slots(self._http.require(answer, "slots"))
            self._slots_error = None
            after, busy_mean = await self._metrics()
            steady = after.counters.get("generated_tokens") == reading.counters.get(
                "generated_tokens"
            )
            reading = replace(after, at_s=answer.at_s)
            if steady:
                self._slots = slots
                return reading, busy_mean
        raise SourceError("requests end too fast for one consistent reading", passing=True)

    def _complete(
        self, reading: EngineReading, busy_mean: float | None, *, asleep: bool
    ) -> EngineReading:
        counters = dict(reading.counters)
        gauges = {**reading.gauges, "awake": 0.0 if asleep else 1.0}
        predicted = counters.pop("generated_tokens", None)
        if self._slots_error is not None or predicted is None:
            return replace(reading, counters=counters, gauges=gauges)
        processing = () if asleep else tuple(slot for slot in self._slots if slot.processing)
        decoded = sum(slot.decoded_tokens for slot in processing)
        counters["generated_tokens"] = predicted + decoded
        estimated: frozenset[CounterName] = frozenset()
        speculating = any(slot.speculative for slot in self._slots) if self._slots else None
        if speculating is False:
            counters["sequence_passes"] = counters["generated_tokens"]
        elif busy_mean is not None and busy_mean * counters.get("passes", 0.0) < _COARSEST_SUM:
            counters["sequence_passes"] = round(busy_mean * counters.get("passes", 0.0))
            estimated = frozenset({"sequence_passes"})  # the mean has few digits
        rows = self._follow(processing, reading.at_s)
        ended = self._ended(rows, predicted, reading.at_s)
        self._rows, self._predicted = rows, predicted
        return replace(
            reading,
            counters=counters,
            estimated=estimated,
            gauges=gauges | _kv_pool(self._slots, unified=self._kv_unified, asleep=asleep),
            settings=_settings(self._slots),
            rows=rows,
            ended=ended,
            speculating=speculating,
        )

    def _follow(self, processing: Sequence[EngineSlot], at_s: float) -> tuple[EngineRow, ...]:
        known = {row.engine_id: row for row in self._rows}
        return tuple(_row(slot, known.get(slot.engine_id), at_s) for slot in processing)

    def _ended(
        self, rows: Sequence[EngineRow], predicted: float, at_s: float
    ) -> tuple[EngineRow, ...]:
        """Tasks that are gone, with final counts that add up to the server's counter."""
        if self._predicted is None or predicted < self._predicted:
            return ()
        live = {row.engine_id for row in rows}
        gone = [row for row in self._rows if row.engine_id not in live]
        unseen = predicted - self._predicted - sum(row.generated_tokens for row in gone)
        if not gone:
            if unseen <= 0:
                return ()
            self._unseen += 1
            gone = [_unseen_row(self._unseen, at_s)]
        ended_at = iso_utc(self._wall())
        share, rest = divmod(max(0, int(unseen)), len(gone))
        return tuple(
            replace(
                row,
                generated_tokens=row.generated_tokens + share + (1 if index < rest else 0),
                ended_at_s=at_s,
                ended_at=None if row.slot is None else ended_at,
            )
            for index, row in enumerate(gone)
        )


def _mean_busy(samples: Samples) -> float | None:
    series = samples.get(MEAN_BUSY_SLOTS)
    return series[0].value if series else None


def _row(slot: EngineSlot, before: EngineRow | None, at_s: float) -> EngineRow:
    decoding = slot.decoded_tokens > 0
    return EngineRow(
        engine_id=slot.engine_id,
        external_id=None,
        slot=slot.number,
        phase="decode" if decoding else "prefill",
        # Until the prompt is read the server tells only how far it has got.
        prompt_tokens=slot.processed_tokens + slot.cached_tokens if decoding else None,
        cached_tokens=slot.cached_tokens,
        generated_tokens=slot.decoded_tokens,
        passes=None,
        max_tokens=slot.max_tokens,
        ttft_s=None,
        arrived_at_s=at_s if before is None else before.arrived_at_s,
        first_token_at_s=None,
        last_token_at_s=at_s if decoding else None,
    )


def _unseen_row(number: int, at_s: float) -> EngineRow:
    """Requests that came and went between two readings: only their tokens are known."""
    return EngineRow(
        engine_id=f"unseen/{number}",
        external_id=None,
        slot=None,
        phase="decode",
        prompt_tokens=None,
        cached_tokens=None,
        generated_tokens=0,
        passes=None,
        max_tokens=None,
        ttft_s=None,
        arrived_at_s=at_s,
        first_token_at_s=None,
        last_token_at_s=at_s,
    )


def _kv_pool(
    slots: Sequence[EngineSlot], *, unified: bool | None, asleep: bool
) -> dict[GaugeName, float]:
    if not slots:
        return {}
    idle = [slot for slot in slots if not slot.processing]
    pool: dict[GaugeName, float] = {"max_running": len(slots), "idle_slots": len(idle)}
    if asleep:  # the cache is unloaded with the weights
        pool |= {"kv_held_tokens": 0.0, "kv_reusable_tokens": 0.0, "idle_slots": len(slots)}
    else:
        pool["kv_held_tokens"] = sum(slot.held_tokens for slot in slots if slot.processing)
        pool["kv_reusable_tokens"] = sum(slot.held_tokens for slot in idle)
    if unified is not None:
        whole = slots[0].context_tokens
        pool["kv_capacity_tokens"] = whole if unified else sum(s.context_tokens for s in slots)
    return pool


def _settings(slots: Sequence[EngineSlot]) -> dict[str, Setting]:
    if not slots:
        return {}
    return {"n_ctx_slot": slots[0].context_tokens, "n_parallel": len(slots)}


async def read_identity(http: EngineHttp) -> Identity:
    """Build, model names and context length of a slot.

    Raises:
        SourceError: When the server does not answer yet.
    """
    answer = await http.get("/props", timeout_s=HEALTH_TIMEOUT_S)
    props = http.require(answer, "props").json_object()
    build = props.get("build_info")
    version: Text = Missing("this build does not know its own version")
    if isinstance(build, str) and not build.endswith("unknown"):
        version = build
    length: Figure = Missing("/props does not tell it")
    settings = props.get("default_generation_settings")
    if isinstance(settings, dict) and isinstance(settings.get("n_ctx"), int):
        length = settings["n_ctx"]
    try:
        models = await read_models(http)
    except SourceError:
        return Identity(version, (), length)
    return Identity(version, tuple(str(m["id"]) for m in models if "id" in m), length)
