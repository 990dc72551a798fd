"""What an endpoint costs that is paid by the token: its own counts times its prices. Pure."""

from __future__ import annotations

from decimal import Decimal

from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.profile import TokenPrice
from a40console.model.snapshot import Cost, UsdPerMillion
from a40console.telemetry.view import Charged

MILLION = 1_000_000
PER_TOKEN = Missing("it is paid by the token, not by the hour")
NOT_COUNTED = Missing("the endpoint's tokens were not read yet")
NOTHING = Missing("nothing was generated yet")
NOTHING_LATELY = Missing("no answer ended in the last minute")
NO_SESSION_PRICE = Missing("tokens are paid, not the seconds of a session")


def token_cost(price: TokenPrice, charged: Charged | None, lately: Charged | None = None) -> Cost:
    """The cost block of an endpoint: what was paid by what was generated.

    `now` is of the answers that ended in the last minute, as an answer says at its end what it
    costs; `since_rent` is of all since the endpoint was attached. Prompts are paid too, so a
    million generated tokens cost more than the price of output.
    """
    paid = NOT_COUNTED if charged is None else usd(price, charged)
    paid_lately = NOT_COUNTED if lately is None else usd(price, lately)
    return Cost(
        kind="per_token",
        usd_per_hour=PER_TOKEN,
        includes_disk=False,
        usd_so_far=paid,
        since="engine start",
        usd_per_million=UsdPerMillion(
            now=_per_million(paid_lately, lately, NOTHING_LATELY),
            session=NO_SESSION_PRICE,
            since_rent=_per_million(paid, charged, NOTHING),
        ),
        counted="all",
    )


def usd(price: TokenPrice, charged: Charged) -> Figure:
    """Dollars for what was charged; missing where something was whose price is not known.

    An endpoint that did not say of every answer what it charged makes an estimate of it.
    """
    prompt, cached = number(charged.prompt_tokens), number(charged.cached_tokens)
    generated, untold = number(charged.generated_tokens), number(charged.untold_requests)
    if prompt is None or cached is None or generated is None:
        return NOT_COUNTED
    whole = Decimal(0)
    for count, each, name in (
        (prompt - cached, price.input, "input"),
        (cached, price.cached_input, "cached_input"),
        (generated, price.output, "output"),
    ):
        if count and each is None:
            return Missing(f"the profile's [price] does not say what a million of {name} costs")
        whole += Decimal(int(count)) * (each or Decimal(0)) / MILLION
    return Estimated(float(whole)) if untold else float(whole)


def _per_million(paid: Figure, charged: Charged | None, nothing: Missing) -> Figure:
    if isinstance(paid, Missing) or charged is None:
        return paid
    generated, dollars = number(charged.generated_tokens), number(paid)
    if not generated or dollars is None:
        return nothing
    value = dollars / generated * MILLION
    return Estimated(value) if isinstance(paid, Estimated) else value
