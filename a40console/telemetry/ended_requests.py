"""The requests that ended, the newest first: engine rows and gateway rows joined. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from a40console.model.figures import Figure, Missing, measured
from a40console.model.request import EngineRow, GatewayRow
from a40console.model.snapshot import RecentRequest
from a40console.telemetry.matching import Pair, our_id
from a40console.telemetry.request_cells import (
    cached_tokens,
    counted,
    method_of,
    request_id,
    reread_tokens,
    told,
    ttft_s,
)
from a40console.telemetry.request_phases import decode_s, prefill_s, queue_s

RECENT_REQUESTS = 20


def recent_requests(
    gateway_rows: Iterable[GatewayRow],
    engine_rows: Iterable[EngineRow],
    *,
    skip: frozenset[str] = frozenset(),
) -> tuple[RecentRequest, ...]:
    """The last finished requests, newest first: the gateway's, and direct ones of the engine.

    Args:
        gateway_rows: Finished at the gateway.
        engine_rows: Finished in the engine; those with our id give their counts to the gateway's.
        skip: Engine ids that belong to gateway rows by another join.
    """
    ended = [row for row in engine_rows if row.ended_at is not None]
    by_id = {our_id(row.external_id): row for row in ended}
    listed: list[tuple[str, RecentRequest]] = []
    ours = set()
    for gateway in gateway_rows:
        ours.add(gateway.request_id)
        if gateway.ended_at is not None:
            request = _recent(by_id.get(gateway.request_id), gateway)
            listed.append((gateway.ended_at, request))
    listed += [
        (row.ended_at or "", _recent(row, None))
        for row in ended
        if our_id(row.external_id) not in ours and row.engine_id not in skip
    ]
    listed.sort(key=lambda entry: entry[0], reverse=True)
    return tuple(request for _, request in listed[:RECENT_REQUESTS])


def _recent(engine: EngineRow | None, gateway: GatewayRow | None) -> RecentRequest:
    pair = Pair(engine, gateway)
    tokens = None if engine is None else engine.generated_tokens
    reason = None if engine is None else engine.finish_reason
    ended_at = None if engine is None else engine.ended_at
    if gateway is not None:
        # What the client was told counts before what the engine counted.
        tokens = tokens if gateway.generated_tokens is None else gateway.generated_tokens
        reason = gateway.finish_reason or reason
        ended_at = gateway.ended_at or ended_at
    return RecentRequest(
        request_id=request_id(pair),
        session=told(pair, "session", "the client names no session"),
        finish_reason=Missing("the engine does not tell") if reason is None else reason,
        generated_tokens=measured(tokens, "the engine did not tell"),
        tokens_per_s=_finished_speed(tokens or 0, pair),
        ttft_s=ttft_s(pair),
        ended_at=ended_at or "",
        client=told(pair, "client", "the client does not name itself"),
        model=told(pair, "model", "the request names no model"),
        queue_s=queue_s(pair),
        prefill_s=prefill_s(pair),
        decode_s=decode_s(pair),
        agent=told(pair, "agent", "agents are not told apart"),
        prompt_tokens=measured(
            counted(engine, gateway, "prompt_tokens"), "its prompt was not counted"
        ),
        cached_tokens=cached_tokens(pair),
        reread_tokens=_reread(pair),
        max_tokens=measured(counted(engine, gateway, "max_tokens"), "no limit was asked for"),
        method=method_of(pair),
        age_s=_lasted(pair),
    )


def _reread(pair: Pair) -> Figure:
    """What was computed again; what would have been, before it ended, is no figure of it."""
    if counted(pair.engine, pair.gateway, "cached_tokens") is None:
        return Missing("it ended before the engine told")
    return reread_tokens(pair)


def _lasted(pair: Pair) -> Figure:
    """Seconds from its arrival to its end."""
    gateway, engine = pair.gateway, pair.engine
    if gateway is not None and gateway.ended_at_s is not None:
        return max(0.0, gateway.ended_at_s - gateway.received_at_s)
    if engine is not None and engine.ended_at_s is not None and engine.arrived_at_s is not None:
        return max(0.0, engine.ended_at_s - engine.arrived_at_s)
    return Missing("the engine does not tell")


def _finished_speed(tokens: int, pair: Pair) -> Figure:
    """Tokens after the first, by the time from the first to the last."""
    for row in (pair.engine, pair.gateway):
        first_s = None if row is None else row.first_token_at_s
        last_s = None if row is None else row.last_token_at_s
        if first_s is not None and last_s is not None and last_s > first_s and tokens > 1:
            return (tokens - 1) / (last_s - first_s)
    return Missing("fewer than two tokens, or their times are not known")
