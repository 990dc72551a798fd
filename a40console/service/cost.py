"""What the engine costs: exact arithmetic on the profile's price and the engine's own counters."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from a40console.model.figures import Figure, Missing, combine, number
from a40console.model.snapshot import Cost, UsdPerMillion

SECONDS_PER_HOUR = Decimal(3600)
MILLION = 1_000_000

NO_PRICE = Missing("the profile names no price")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What costs are worked out from."""

    usd_per_hour: Decimal | None
    uptime_s: float | None
    """Seconds since the engine started; None while there is none."""

    generation_tokens_per_s: Figure
    generated_tokens: Figure
    """Since the engine started."""


def cost(spending: Spending) -> Cost:
    """The cost block.

    `now` divides the price by the present rate; `since_rent` divides all dollars since the engine
    started, idle included, by all generated tokens.
    """
    price = spending.usd_per_hour
    if price is None:
        return _cost(NO_PRICE, NO_PRICE, NO_PRICE, NO_PRICE)
    so_far: Figure = Missing("no engine runs")
    if spending.uptime_s is not None:
        so_far = float(price / SECONDS_PER_HOUR * Decimal(spending.uptime_s))
    now = combine(
        lambda rate: float(price / SECONDS_PER_HOUR) / rate * MILLION if rate else None,
        spending.generation_tokens_per_s,
        reason="nothing is generated now",
    )
    since = combine(
        lambda dollars, tokens: dollars / tokens * MILLION if tokens else None,
        so_far,
        spending.generated_tokens,
        reason="nothing was generated yet",
    )
    return _cost(float(price), so_far, now, since)


def _cost(price: Figure, so_far: Figure, now: Figure, since: Figure) -> Cost:
    return Cost(
        kind="hourly",
        usd_per_hour=price,
        includes_disk=False,
        usd_so_far=so_far,
        since="engine start",
        usd_per_million=UsdPerMillion(
            now=now,
            session=Missing("sessions are not followed") if number(price) is not None else NO_PRICE,
            since_rent=since,
        ),
        counted="generated",
    )
