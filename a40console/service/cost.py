"""What the engine costs: exact arithmetic on the price, and on the engine's own counters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from a40console.config import RentSettings
from a40console.model.figures import Figure, Missing, combine
from a40console.model.profile import TokenPrice
from a40console.model.snapshot import Cost, UsdPerMillion
from a40console.service.token_cost import token_cost
from a40console.telemetry.view import Charged

SECONDS_PER_HOUR = Decimal(3600)
MILLION = 1_000_000

NO_PRICE = Missing("the profile names no price")
NO_PROFILE = Missing("there is no profile that would name a price")
NO_SESSIONS = Missing("sessions are not followed")
NO_RENT = Missing("when the rent began is not known")
RENT_TO_COME = Missing("the rent begins later")
NOTHING_YET = Missing("nothing was generated since the rent began")
NOTHING_COUNTED = Missing("no tokens were counted yet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is paid, and since when."""

    usd_per_hour: Decimal | None
    """Disk included; None where no price is known."""

    includes_disk: bool
    rent_since_s: float | None
    """Unix time at which the rent began; None where that is not known."""

    unpriced: Missing = NO_PRICE
    """Why no price is known."""

    per_token: TokenPrice | None = None
    """What an attached endpoint asks; None where hours are paid."""

    def rented(self, since_s: float, until_s: float) -> Decimal | None:
        """Dollars of the rent between two instants; None where price or begin is not known."""
        if self.usd_per_hour is None or self.rent_since_s is None:
            return None
        seconds = max(0.0, until_s - max(since_s, self.rent_since_s))
        return self.usd_per_hour / SECONDS_PER_HOUR * Decimal(seconds)


def terms_of(
    rent: RentSettings, profile_usd_per_hour: Decimal | None, *, unpriced: Missing = NO_PRICE
) -> Terms:
    """The terms by the settings, and by the profile where they name no price."""
    price = profile_usd_per_hour if rent.usd_per_hour is None else rent.usd_per_hour
    disk = rent.disk_usd_per_hour
    return Terms(
        usd_per_hour=price if price is None or disk is None else price + disk,
        includes_disk=price is not None and disk is not None,
        rent_since_s=None if rent.since is None else datetime.fromisoformat(rent.since).timestamp(),
        unpriced=unpriced,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What is paid, and what the service has counted for it."""

    terms: Terms
    now_s: float
    """Unix time."""

    generated_since_rent: Figure = NOTHING_COUNTED


UNPAID = Account(terms=terms_of(RentSettings(), None, unpriced=NO_PROFILE), now_s=0.0)
"""Of an engine whose price nobody here knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What costs are worked out from."""

    account: Account
    uptime_s: float | None
    """Seconds since the engine started; None while there is none."""

    generation_tokens_per_s: Figure
    """The present rate."""

    charged: Charged | None = None
    """Tokens that an endpoint charged for, since it is attached."""

    charged_lately: Charged | None = None
    """The same of the last minute."""

    session_usd_per_million: Figure = NO_SESSIONS
    """Of the busiest session."""


def cost(spending: Spending) -> Cost:
    """The cost block.

    `now` divides the price by the present rate; `session` is the busiest session's dollars, by the
    price of the engines that served it, by the tokens of the same requests; `since_rent` is all
    dollars since the rent began, idle and disk included, by all tokens generated since then.
    Without a begin of the rent, what was spent is counted from the engine's start, and no price a
    token since the rent is given.
    """
    terms = spending.account.terms
    if terms.per_token is not None:
        return token_cost(terms.per_token, spending.charged, spending.charged_lately)
    if terms.usd_per_hour is None:
        none = terms.unpriced
        return _cost(terms, none, UsdPerMillion(now=none, session=none, since_rent=none))
    per_second = float(terms.usd_per_hour / SECONDS_PER_HOUR)
    now = combine(
        lambda rate: per_second / rate * MILLION if rate else None,
        spending.generation_tokens_per_s,
        reason="nothing is generated now",
    )
    prices = UsdPerMillion(
        now=now, session=spending.session_usd_per_million, since_rent=_since_rent(spending)
    )
    return _cost(terms, _so_far(spending), prices)


def usd_per_million(usd: Figure, tokens: Figure, nothing: str = "nothing was generated") -> Figure:
    """Dollars a million tokens; missing where there are no tokens to share them."""
    return combine(
        lambda dollars, count: dollars / count * MILLION if count else None,
        usd,
        tokens,
        reason=nothing,
    )


def _so_far(spending: Spending) -> Figure:
    terms = spending.account.terms
    if terms.rent_since_s is not None:
        if spending.account.now_s < terms.rent_since_s:
            return RENT_TO_COME
        return float(terms.rented(0.0, spending.account.now_s) or 0)
    if spending.uptime_s is None or terms.usd_per_hour is None:
        return Missing("no engine runs")
    return float(terms.usd_per_hour / SECONDS_PER_HOUR * Decimal(spending.uptime_s))


def _since_rent(spending: Spending) -> Figure:
    account = spending.account
    if account.terms.rent_since_s is None:
        return NO_RENT
    return usd_per_million(_so_far(spending), account.generated_since_rent, NOTHING_YET.reason)


def _cost(terms: Terms, so_far: Figure, prices: UsdPerMillion) -> Cost:
    return Cost(
        kind="hourly",
        usd_per_hour=terms.unpriced if terms.usd_per_hour is None else float(terms.usd_per_hour),
        includes_disk=terms.includes_disk,
        usd_so_far=so_far,
        since="engine start" if terms.rent_since_s is None else "rent began",
        usd_per_million=prices,
        counted="generated",
    )
