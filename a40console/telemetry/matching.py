"""Which engine row belongs to which gateway row: by id in vLLM, by order in llama.cpp."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from a40console.model.request import EngineRow, GatewayRow
from a40console.telemetry.metering import counts_itself, tokens_at

_OUR_ID = re.compile(r"(a40-[0-9a-f]+)(?:-(\d+))?")
"""Within the engine's id: vLLM makes `chatcmpl-a40-…` of ours, and `cmpl-a40-…-0`."""

_SLACK_S = 1.0
"""How far the gateway's and the engine's view of one moment may lie apart."""

_LAG_S = 0.25
"""How old the slots that the engine tells of may be within one reading."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A live request as its two witnesses see it; one of them may be missing."""

    engine: EngineRow | None
    gateway: GatewayRow | None
    by_order: bool = False
    """Joined by order and length, which may be wrong, rather than by id."""

    @property
    def metered(self) -> bool:
        """Whether its tokens are the gateway's own exact counts."""
        exact = self.gateway is not None and counts_itself(self.gateway)
        return exact and (self.engine is None or self.by_order)

    @property
    def rough(self) -> bool:
        """Whether its tokens are ≈: apportioned, or another request's if the match is wrong."""
        if self.engine is None or self.gateway is None:
            return self.engine is None and not self.metered
        return self.by_order and not self.metered

    @property
    def key(self) -> str:
        """Names the request as long as it lives, whichever witness came first."""
        if self.gateway is not None:
            return self.gateway.request_id + _choice(self.engine)
        return self.engine.engine_id if self.engine is not None else ""


def _choice(row: EngineRow | None) -> str:
    """Which of several completions of one request, after the first."""
    found = None if row is None else _OUR_ID.search(row.external_id or "")
    number = found and found.group(2)
    return f"-{number}" if number and number != "0" else ""


def our_id(external_id: str | None) -> str | None:
    """The gateway's request id within the engine's."""
    found = _OUR_ID.search(external_id or "")
    return found.group(1) if found else None


def pair_by_id(
    engine_rows: Sequence[EngineRow],
    ended_rows: Sequence[EngineRow],
    live: Sequence[GatewayRow],
    finished: Sequence[GatewayRow],
    *,
    read_at_s: float,
) -> tuple[Pair, ...]:
    """Rows joined by id; rows of requests that ended at the gateway since the reading are left out.

    A request that the engine still runs well after the gateway ended it stays: the engine works for
    a client that is gone. One that the engine ended and the gateway still delivers stays as well.
    """
    by_id = {row.request_id: row for row in (*finished, *live)}
    pairs, seen = [], set()
    for engine in engine_rows:
        request_id = our_id(engine.external_id)
        gateway = by_id.get(request_id or "")
        if gateway is None or not ended_since(gateway, read_at_s):
            pairs.append(Pair(engine, gateway))
            seen.add(request_id)
    done = {our_id(row.external_id): row for row in ended_rows}
    pairs += [Pair(done.get(row.request_id), row) for row in live if row.request_id not in seen]
    return tuple(pairs)


def ended_since(row: GatewayRow, read_at_s: float) -> bool:
    """Whether the gateway ended the request at about the reading or later."""
    return row.ended_at_s is not None and row.ended_at_s > read_at_s - _SLACK_S


def match_by_order(
    engine_rows: Sequence[EngineRow],
    gateway_rows: Sequence[GatewayRow],
    known: Mapping[str, str],
    *,
    read_at_s: float,
) -> dict[str, str]:
    """Gateway request id → engine id, for an engine that does not keep ids.

    Requests are taken in the order sent, tasks in the order queued; a match must agree in length
    limit, prompt length and progress as far as each is known, and is kept while it does. Order is a
    guess, as requests sent together are queued in any order: one whose token arrived is given a
    task that decodes before one whose token did not.
    """
    by_id = {row.engine_id: row for row in engine_rows}
    kept: dict[str, EngineRow] = {}
    for row in gateway_rows:
        engine = by_id.get(known.get(row.request_id, ""))
        if engine is not None and _agree(engine, row, read_at_s):
            kept[row.request_id] = engine
    sent = [row for row in gateway_rows if row.sent_at_s is not None or row.request_id in kept]
    sent.sort(key=lambda row: row.sent_at_s or 0.0)
    matches = {
        row.request_id: kept[row.request_id]
        for row in sent
        if row.request_id in kept and _settled(kept[row.request_id], row, read_at_s)
    }
    shown = [row for row in sent if _has_token(row, read_at_s)]
    guessed = {engine.engine_id for engine in kept.values()}
    decoding = [row for row in engine_rows if row.generated_tokens]
    decoding.sort(key=lambda row: (row.engine_id in guessed, _task(row)))
    _match(shown, decoding, matches, read_at_s)
    taken = {engine.engine_id for engine in matches.values()}
    for request_id, engine in kept.items():
        if request_id not in matches and engine.engine_id not in taken:
            matches[request_id] = engine
    _match(sent, sorted(engine_rows, key=_task), matches, read_at_s)
    return {request_id: engine.engine_id for request_id, engine in matches.items()}


def _match(
    sent: Sequence[GatewayRow],
    tasks: Sequence[EngineRow],
    matches: dict[str, EngineRow],
    read_at_s: float,
) -> None:
    """Give each request that has none the first of the free tasks that may be its own."""
    taken = {engine.engine_id for engine in matches.values()}
    free = [engine for engine in tasks if engine.engine_id not in taken]
    for row in sent:
        if row.request_id in matches:
            continue
        for engine in free:
            if _agree(engine, row, read_at_s) and _began_after(engine, row):
                matches[row.request_id] = engine
                free.remove(engine)
                break


def make_room(
    engine_rows: Sequence[EngineRow],
    live: Sequence[GatewayRow],
    matches: Mapping[str, str],
    *,
    slots: float | None,
    read_at_s: float,
) -> dict[str, str]:
    """The matches, corrected by tokens that arrived since the slots were read.

    Where more requests show tokens than slots are left for them, those that were sent last and show
    none were given a slot by a wrong guess.
    """
    room = dict(matches)
    ours = {row.request_id for row in live}
    left = {engine for request_id, engine in room.items() if request_id not in ours}
    held = {row.engine_id: row for row in engine_rows if row.engine_id not in left}
    shown = [row for row in live if row.first_token_at_s and row.request_id not in room]
    excess = 0 if slots is None else len(held) + len(shown) - int(slots)
    silent = [
        row for row in live if row.first_token_at_s is None and room.get(row.request_id) in held
    ]
    silent.sort(key=lambda row: row.sent_at_s or 0.0)
    for row in shown[: max(0, excess)]:
        for guessed in reversed(silent):
            engine = held[room[guessed.request_id]]
            if not engine.generated_tokens and _agree(engine, row, read_at_s):
                room[row.request_id] = room.pop(guessed.request_id)
                silent.remove(guessed)
                break
    return room


def _settled(engine: EngineRow, gateway: GatewayRow, read_at_s: float) -> bool:
    """Whether both say the same of the first token; a request that does not stream never does."""
    if engine.generated_tokens:
        return _has_token(gateway, read_at_s)
    return not _has_token(gateway, read_at_s - _LAG_S)


def _has_token(gateway: GatewayRow, at_s: float) -> bool:
    return gateway.first_token_at_s is not None and gateway.first_token_at_s <= at_s


def pair_by_order(
    engine_rows: Sequence[EngineRow], live: Sequence[GatewayRow], matches: Mapping[str, str]
) -> tuple[Pair, ...]:
    """Rows joined by a match, which may name requests that ended; the others alone."""
    by_id = {row.engine_id: row for row in engine_rows}
    pairs = [Pair(by_id.get(matches.get(row.request_id, "")), row, by_order=True) for row in live]
    taken = set(matches.values())
    return (*pairs, *(Pair(row, None) for row in engine_rows if row.engine_id not in taken))


def _task(row: EngineRow) -> int:
    _, _, task = row.engine_id.rpartition("/")
    return int(task) if task.isdigit() else 0


def _began_after(engine: EngineRow, gateway: GatewayRow) -> bool:
    """A task that was seen before the request was sent is another's."""
    return (engine.arrived_at_s or 0.0) >= (gateway.sent_at_s or 0.0)


def _agree(engine: EngineRow, gateway: GatewayRow, read_at_s: float) -> bool:
    limits = {engine.max_tokens, gateway.max_tokens} - {None}
    if len(limits) > 1:
        return False
    if engine.prompt_tokens is not None and gateway.prompt_tokens is not None:
        apart = abs(engine.prompt_tokens - gateway.prompt_tokens)
        if apart > max(2, 0.02 * gateway.prompt_tokens):
            return False
    first_s = gateway.first_token_at_s
    if first_s is not None and engine.phase == "prefill" and first_s < read_at_s - _SLACK_S:
        return False
    if counts_itself(gateway) and gateway.marks:
        behind = abs(engine.generated_tokens - tokens_at(gateway, read_at_s))
        return behind <= max(16, 0.25 * engine.generated_tokens)
    return True
