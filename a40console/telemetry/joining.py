"""From evidence and gateway rows to slots: who is who, where each sits, how fast each is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.request import EngineRow, GatewayRow
from a40console.model.snapshot import RecentRequest, Slot
from a40console.telemetry.blocks import decode_passes_per_s
from a40console.telemetry.ended_requests import recent_requests
from a40console.telemetry.evidence import Evidence
from a40console.telemetry.matching import (
    Pair,
    ended_since,
    make_room,
    match_by_order,
    our_id,
    pair_by_id,
    pair_by_order,
)
from a40console.telemetry.metering import Meter, above_noise, in_engine
from a40console.telemetry.slots import (
    Context,
    Seats,
    Speed,
    build_slot,
    direct_rest,
    first_token_at_s,
    is_uncounted,
    no_speed,
    phase_of,
    speed,
)
from a40console.telemetry.timeline import Share, Timeline
from a40console.telemetry.windows import RATE_WINDOW_S

_UNCOUNTED = Missing("its tokens are not counted: the engine's counter cannot be read")
_KEPT_MATCHES = 512
_ENDED_COUNTS_S = 3.0
"""How long an ended engine row may still find its gateway row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The requests of one instant."""

    slots: tuple[Slot, ...] | Missing
    recent: tuple[RecentRequest, ...]
    contexts: tuple[float, ...]
    """Tokens in the context of each live request, as far as known."""

    ended_tokens_per_s: Figure
    held: int
    """Requests that wait at the gateway: their bodies are not sent to the engine yet."""

    told: Mapping[str, EngineRow]
    """The engine's own rows of the gateway's requests, live and lately ended, by request id."""


class Joiner:
    """Keeps what a join needs from one view to the next."""

    def __init__(self) -> None:
        self._meter = Meter()
        self._seats = Seats()
        self._matches: dict[str, str] = {}
        self._matched: OrderedDict[str, None] = OrderedDict()

    def clear(self) -> None:
        """The engine began again."""
        self._meter.clear()
        self._matches.clear()

    def join(
        self,
        evidence: Evidence,
        live: Sequence[GatewayRow],
        finished: Sequence[GatewayRow],
        *,
        now_s: float,
    ) -> Joined:
        """Join the engine's rows with the gateway's; counts of a reading are taken once."""
        self._observe(evidence, live, finished, now_s)
        pairs = self._pairs(evidence, live, finished)
        listed = evidence.rows is not None
        timeline = evidence.timeline if listed else self._meter.timeline
        context = Context(
            now_s=now_s,
            engine=evidence.engine,
            queued_ids=_queued(evidence, pairs),
            assigned={} if listed else self._meter.assigned_tokens,
        )
        shares = [_share(pair, timeline) for pair in pairs]
        generated = evidence.counters.counter("generated_tokens")
        counted = evidence.metrics_usable and number(generated) is not None
        shown = [
            no_speed(_UNCOUNTED)
            if not counted and is_uncounted(pair, context)
            else speed(
                share,
                phase=phase_of(pair, context),
                rough=pair.rough,
                engine_passes=partial(decode_passes_per_s, evidence.counters),
                window_s=timeline.span_s(),
                speculating=evidence.speculating,
            )
            for pair, share in zip(pairs, shares, strict=True)
        ]
        slots = self._seated(pairs, shown, context)
        ended = _ended(timeline, shares)
        if not listed:
            slots, ended = self._with_rest(slots, ended, evidence, live)
        return Joined(
            slots=self._or_unknown(slots, evidence),
            recent=recent_requests(finished, evidence.ended, skip=frozenset(self._matched)),
            contexts=_contexts(slots),
            ended_tokens_per_s=ended,
            held=sum(1 for row in live if row.sent_at_s is None),
            told=_told(pairs, evidence, self._matches),
        )

    def _observe(
        self,
        evidence: Evidence,
        live: Sequence[GatewayRow],
        finished: Sequence[GatewayRow],
        now_s: float,
    ) -> None:
        """Meter at the instant of the counter; without one, now, by what the gateway knows."""
        reading = evidence.metrics.latest if evidence.metrics_usable else None
        self._meter.observe(
            now_s if reading is None else reading.at_s,
            None if reading is None else reading.counters.get("generated_tokens"),
            running=None if reading is None else reading.gauges.get("running"),
            live=live,
            finished=finished,
        )

    def _pairs(
        self, evidence: Evidence, live: Sequence[GatewayRow], finished: Sequence[GatewayRow]
    ) -> tuple[Pair, ...]:
        rows, at_s = evidence.rows, evidence.rows_at_s
        if rows is None:
            return tuple(Pair(None, row) for row in live)
        if not evidence.by_order:
            return pair_by_id(rows, evidence.ended, live, finished, read_at_s=at_s)
        lately = [row for row in evidence.ended if (row.ended_at_s or 0.0) > at_s - _ENDED_COUNTS_S]
        candidates = [*live, *(row for row in finished if ended_since(row, at_s - _ENDED_COUNTS_S))]
        self._matches = match_by_order([*rows, *lately], candidates, self._matches, read_at_s=at_s)
        self._matches = make_room(
            rows,
            live,
            self._matches,
            slots=number(evidence.counters.gauge("max_running")),
            read_at_s=at_s,
        )
        self._matched.update(dict.fromkeys(self._matches.values()))
        while len(self._matched) > _KEPT_MATCHES:
            self._matched.popitem(last=False)
        return pair_by_order(rows, live, self._matches)

    def _seated(
        self,
        pairs: Sequence[Pair],
        shown: Sequence[Speed],
        context: Context,
    ) -> tuple[Slot, ...]:
        keys = _unique([pair.key for pair in pairs])
        taken = {
            key: pair.engine.slot
            for key, pair in zip(keys, pairs, strict=True)
            if pair.engine is not None and pair.engine.slot is not None
        }
        seats = self._seats.assign(keys, taken=taken)
        slots = [
            build_slot(pair, seat=seats[key], shown=fast, context=context)
            for key, pair, fast in zip(keys, pairs, shown, strict=True)
        ]
        return tuple(sorted(slots, key=lambda slot: slot.slot))

    def _with_rest(
        self,
        slots: tuple[Slot, ...],
        ended: Figure,
        evidence: Evidence,
        live: Sequence[GatewayRow],
    ) -> tuple[tuple[Slot, ...], Figure]:
        """One row for what the engine generates beyond the gateway's requests, if it is clear.

        Where none of those others runs any more, it belongs to requests that ended.
        """
        whole = number(evidence.counters.rate("generated_tokens"))
        latest, span_s = evidence.counters.latest, self._meter.timeline.span_s()
        if whole is None or latest is None or span_s <= 0:
            return slots, ended
        rest = whole - self._meter.timeline.total() / span_s
        running = latest.gauges.get("running")
        ours = sum(1 for row in live if in_engine(row, latest.at_s))
        if not above_noise(rest, whole):
            return slots, ended
        if running is not None and running <= ours:
            return slots, Estimated((number(ended) or 0.0) + rest)
        seat = 1 + max((slot.slot for slot in slots), default=-1)
        passes = decode_passes_per_s(evidence.counters)
        return (*slots, direct_rest(rest, seat=seat, engine_passes=passes)), ended

    def _or_unknown(
        self, slots: tuple[Slot, ...], evidence: Evidence
    ) -> tuple[Slot, ...] | Missing:
        """No slot at all is knowledge only where something could have shown one."""
        if slots or evidence.rows is not None or evidence.counters.latest is not None:
            return slots
        return evidence.counters.none


def _told(
    pairs: Sequence[Pair], evidence: Evidence, matches: Mapping[str, str]
) -> dict[str, EngineRow]:
    """What the engine says of each of our requests; of an ended one the last word."""
    told = {
        pair.gateway.request_id: pair.engine
        for pair in pairs
        if pair.gateway is not None and pair.engine is not None
    }
    ended = {
        row.engine_id if evidence.by_order else our_id(row.external_id): row
        for row in evidence.ended
    }
    by_order = matches.items() if evidence.by_order else ((key, key) for key in ended)
    for ours, theirs in by_order:
        if ours is not None and theirs in ended:
            told[ours] = ended[theirs]
    return told


def _share(pair: Pair, timeline: Timeline) -> Share | None:
    if pair.engine is not None:
        key = pair.engine.engine_id
    else:
        key = pair.gateway.request_id if pair.gateway is not None else ""
    return timeline.share(key, first_token_at_s=first_token_at_s(pair), window_s=RATE_WINDOW_S)


def _queued(evidence: Evidence, pairs: Sequence[Pair]) -> frozenset[str]:
    """Gateway requests that the engine has not begun: the newest ones, as many as wait.

    Where the engine lists its slots, those that find none free wait, whatever its gauge says yet.
    """
    sent = sorted(
        (
            (pair.gateway.sent_at_s, pair.gateway.request_id)
            for pair in pairs
            if pair.engine is None
            and pair.gateway is not None
            and pair.gateway.sent_at_s is not None
            and pair.gateway.first_token_at_s is None
        ),
        reverse=True,
    )
    if evidence.rows is not None and not evidence.by_order:
        return frozenset(request_id for _, request_id in sent)  # the plugin lists what has begun
    waiting = int(number(evidence.counters.gauge("waiting")) or 0)
    slots = number(evidence.counters.gauge("max_running"))
    if evidence.rows is not None and slots is not None:
        taken = sum(1 for pair in pairs if pair.engine is not None or _streams(pair))
        waiting = max(waiting, len(sent) - max(0, int(slots) - taken))
    return frozenset(request_id for _, request_id in sent[:waiting])


def _streams(pair: Pair) -> bool:
    return pair.gateway is not None and pair.gateway.first_token_at_s is not None


def _contexts(slots: Sequence[Slot]) -> tuple[float, ...]:
    contexts = []
    for slot in slots:
        prompt, generated = number(slot.prompt_tokens), number(slot.generated_tokens)
        if prompt is not None and slot.phase in ("prefill", "decode"):
            contexts.append(prompt + (generated or 0))
    return tuple(contexts)


def _ended(timeline: Timeline, shares: Sequence[Share | None]) -> Figure:
    span_s = timeline.span_s()
    if span_s <= 0:
        return Missing("one reading so far")
    live = sum(share.tokens for share in shares if share is not None)
    return (timeline.total() - live) / span_s


def _unique(keys: Sequence[str]) -> list[str]:
    """Keys told apart: several completions of one request share the engine's external id."""
    seen: dict[str, int] = {}
    unique = []
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        unique.append(key if seen[key] == 1 else f"{key}#{seen[key]}")
    return unique
