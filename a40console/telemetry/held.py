"""The slots of requests that wait at the gateway while no engine is there to be asked. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from a40console.model.figures import Missing
from a40console.model.request import GatewayRow
from a40console.model.snapshot import Slot
from a40console.telemetry.matching import Pair
from a40console.telemetry.slots import Context, build_slot, no_speed

_HELD = no_speed(Missing("held at the gateway"))


def held_slots(live: Sequence[GatewayRow], now_s: float) -> tuple[Slot, ...]:
    """Those of the gateway's requests that are not sent to an engine, in their order."""
    context = Context(now_s=now_s, engine="vLLM", queued_ids=frozenset(), assigned={})
    waiting = [row for row in live if row.sent_at_s is None]
    return tuple(
        build_slot(Pair(None, row), seat=seat, shown=_HELD, context=context)
        for seat, row in enumerate(waiting)
    )
