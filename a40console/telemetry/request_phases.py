"""How long an ended request was in each phase, as far as gateway and engine tell. Pure."""

from __future__ import annotations

from a40console.model.figures import Figure, Missing, measured
from a40console.telemetry.matching import Pair

_NOT_TOLD = "only our plugin in vLLM tells when a request was begun"


def queue_s(pair: Pair) -> Figure:
    """Seconds held at the gateway, and queued in the engine."""
    engine, gateway = pair.engine, pair.gateway
    held_s = 0.0
    if gateway is not None:
        if gateway.sent_at_s is None:  # it ended where it was held
            ended_s = gateway.ended_at_s
            return measured(ended_s and ended_s - gateway.received_at_s, "it has not ended")
        held_s = gateway.sent_at_s - gateway.received_at_s
    queued_s = None if engine is None else engine.queued_s
    return measured(None if queued_s is None else held_s + queued_s, _NOT_TOLD)


def prefill_s(pair: Pair) -> Figure:
    """Seconds from when the engine began it to its first token."""
    if pair.gateway is not None and pair.gateway.sent_at_s is None:
        return Missing("it was never sent to the engine")
    return measured(None if pair.engine is None else pair.engine.prefill_s, _NOT_TOLD)


def decode_s(pair: Pair) -> Figure:
    """Seconds from its first token to its last."""
    for row in (pair.engine, pair.gateway):
        first_s = None if row is None else row.first_token_at_s
        last_s = None if row is None else row.last_token_at_s
        if first_s is not None and last_s is not None:
            return max(0.0, last_s - first_s)
    return Missing("no token came, or its times are not known")
