"""What sessions cost: each second at the price of the engine that served it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from a40console.gateway.session_records import Record
from a40console.gateway.session_runs import Served
from a40console.gateway.session_view import added, generated_with
from a40console.model.figures import Figure, Missing, number
from a40console.model.session import SessionRequest
from a40console.service.cost import usd_per_million

ONLY_SIMULATED = Missing("only a simulated engine served it")
UNPRICED_ENGINE = Missing("no engine with a price served it")
NO_SESSION = Missing("no session yet")


@dataclass(frozen=True, slots=True)
class Due:
    """A session's dollars, and the tokens that they paid for."""

    usd: Figure
    tokens: Figure
    simulated: bool

    @property
    def usd_per_million(self) -> Figure:
        """The one by the other."""
        return usd_per_million(self.usd, self.tokens, "it generated nothing yet")


def due(
    record: Record, live: Sequence[SessionRequest], *, simulated: bool, unpriced: Missing | None
) -> Due:
    """What a session costs; a simulated engine's price never stands beside a real one's.

    Args:
        record: The session.
        live: Its requests under way.
        simulated: Whether a simulated engine serves: what that did is told where there is any.
        unpriced: Why the engine that serves has no price; None where it has one.
    """
    served = record.served
    pretended = simulated and any(each.simulated for each in served.values())
    of_kind = {name: each for name, each in served.items() if each.simulated is pretended}
    paid = {name: each for name, each in of_kind.items() if each.usd is not None}
    if not paid:
        why = _unpaid(served.values(), unpriced, known=bool(of_kind))
        return Due(why, why, pretended)
    requests = sum(each.requests for each in paid.values())
    generated = sum(each.generated for each in paid.values())
    untold = sum(each.generated_untold for each in paid.values())
    runs = {entry.request_id: entry.run_id or "" for entry in record.live}
    writing = [row.generated_tokens for row in live if runs.get(row.request_id) in paid]
    return Due(
        sum(each.usd or 0.0 for each in paid.values()),
        generated_with(added(generated, untold, requests), writing),
        pretended,
    )


def _unpaid(served: Iterable[Served], unpriced: Missing | None, *, known: bool) -> Missing:
    if not known and any(each.simulated for each in served):
        return ONLY_SIMULATED
    return unpriced or UNPRICED_ENGINE


def busiest_usd_per_million(dues: Sequence[Due], *, simulated: bool) -> Figure:
    """Of the session with most tokens that were paid for; only simulated dollars, or only real."""
    if not dues:
        return NO_SESSION
    paid = [each for each in dues if each.simulated is simulated and number(each.usd) is not None]
    if not paid:
        return dues[0].usd if isinstance(dues[0].usd, Missing) else UNPRICED_ENGINE
    return max(paid, key=lambda each: number(each.tokens) or 0.0).usd_per_million
