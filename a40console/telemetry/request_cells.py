"""What one request's two rows say together: the cells of live and of ended requests. Pure."""

from __future__ import annotations

from a40console.model.figures import Estimated, Figure, Missing, Text, measured
from a40console.model.own_request import own_request
from a40console.model.request import EngineRow, GatewayRow, Method
from a40console.telemetry.matching import Pair, our_id

NOT_OURS = Missing("not sent through the gateway")
_NO_RECORD = Missing("sent through the gateway, which has no record of it any more")
_NOT_OUTLINED = Missing("its prompt is not outlined")
_REUSE_UNTOLD = Missing("known with the first token")


def request_id(pair: Pair) -> str:
    """Ours where it came through the gateway, else the engine's."""
    if pair.gateway is not None:
        return pair.key
    return "" if pair.engine is None else pair.engine.external_id or pair.engine.engine_id


def told(pair: Pair, name: str, reason: str) -> Text:
    """What only the gateway knows."""
    if pair.gateway is None:
        external_id = None if pair.engine is None else pair.engine.external_id
        if name == "client" and (own := own_request(external_id)) is not None:
            return f"a40console {own}"
        return NOT_OURS if our_id(external_id) is None else _NO_RECORD
    value: str | None = getattr(pair.gateway, name)
    return Missing(reason) if value is None else value


def counted(engine: EngineRow | None, gateway: GatewayRow | None, name: str) -> int | None:
    """A count from the engine, else from the gateway."""
    for row in (engine, gateway):
        value: int | None = None if row is None else getattr(row, name)
        if value is not None:
            return value
    return None


def cached_tokens(pair: Pair) -> Figure:
    """Prompt tokens that were in the prefix cache."""
    return measured(counted(pair.engine, pair.gateway, "cached_tokens"), "the engine did not tell")


def reread_tokens(pair: Pair) -> Figure:
    """What its session had sent before and is computed again; before that is told, what must be."""
    if pair.gateway is None:
        return NOT_OURS
    shared = pair.gateway.shared
    if shared is None:
        return _NOT_OUTLINED
    if not shared.tokens:
        return 0
    cached = counted(pair.engine, pair.gateway, "cached_tokens")
    if cached is None:
        return Estimated(round(shared.lost)) if shared.lost else _REUSE_UNTOLD
    prompt = counted(pair.engine, pair.gateway, "prompt_tokens")
    most = shared.tokens if prompt is None else min(shared.tokens, prompt)
    return marked(max(0, round(most - cached)), rough=not shared.exact)


def ttft_s(pair: Pair) -> Figure:
    """At the gateway from request to first content; of a direct request the engine's own."""
    gateway = pair.gateway
    if gateway is not None:
        if gateway.first_token_at_s is None:
            return Missing("no token yet")
        return gateway.first_token_at_s - gateway.received_at_s
    known = None if pair.engine is None else pair.engine.ttft_s
    return measured(known, "no token yet, or not told")


def method_of(pair: Pair) -> Method:
    """How its tokens are counted."""
    if pair.gateway is not None and (pair.engine is None or pair.metered):
        return pair.gateway.method
    return "engine"


def marked(value: float, *, rough: bool) -> Figure:
    """The value, marked as an estimate where it is rough."""
    return Estimated(value) if rough else value
