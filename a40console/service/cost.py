"""What the engine costs: exact arithmetic on the profile's price and the engine's own counters."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from a40console.model.figures import Figure, Missing, combine, number
from a40console.model.snapshot import Cost, UsdPerMillion

SECONDS_PER_HOUR = Decimal(3600)
MILLION = 1_000_000

NO_PRICE = Missing("the profile names no price")
NO_SESSIONS = Missing("sessions are not followed")
NO_RENT = Missing("when the rent began is not known")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What costs are worked out from."""

    usd_per_hour: Decimal | None
    uptime_s: float | None
    """Seconds since the engine started; None while there is none."""

    generation_tokens_per_s: Figure
    """The present rate."""


def cost(spending: Spending) -> Cost:
    """The cost block.

    `now` divides the price by the present rate. Nothing here knows when the rent began: what was
    spent is counted from the engine's start, and no price a token since the rent is given.
    """
    price = spending.usd_per_hour
    if price is None:
        return _cost(NO_PRICE, NO_PRICE, NO_PRICE)
    so_far: Figure = Missing("no engine runs")
    if spending.uptime_s is not None:
        so_far = float(price / SECONDS_PER_HOUR * Decimal(spending.uptime_s))
    now = combine(
        lambda rate: float(price / SECONDS_PER_HOUR) / rate * MILLION if rate else None,
        spending.generation_tokens_per_s,
        reason="nothing is generated now",
    )
    return _cost(float(price), so_far, now)


def _cost(price: Figure, so_far: Figure, now: Figure) -> Cost:
    known = number(price) is not None
    return Cost(
        kind="hourly",
        usd_per_hour=price,
        includes_disk=False,
        usd_so_far=so_far,
        since="engine start",
        usd_per_million=UsdPerMillion(
            now=now,
            session=NO_SESSIONS if known else NO_PRICE,
            since_rent=NO_RENT if known else NO_PRICE,
        ),
        counted="generated",
    )
