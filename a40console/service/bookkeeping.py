"""What each snapshot adds to the service's records: history, sums, findings as events."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from a40console.config import RentSettings
from a40console.gateway.meter import RequestCounts
from a40console.model.figures import Figure, number
from a40console.model.history import history_point
from a40console.model.profile import Profile, TokenPrice
from a40console.model.snapshot import Snapshot
from a40console.operations.status import EngineStatus
from a40console.service.assemble import works
from a40console.service.chronicle import Chronicle
from a40console.service.cost import NO_PROFILE, Account, Terms, terms_of
from a40console.service.finding_log import FindingLog
from a40console.service.journal import Journal
from a40console.service.spending import tokens_since
from a40console.service.tally import Counters, Reading
from a40console.service.token_cost import PER_TOKEN
from a40console.telemetry.view import EngineView


class Bookkeeper:
    """Writes down what each snapshot says, and knows what is paid.

    Args:
        chronicle: Keeps speeds, tokens and dollars.
        journal: Keeps events.
        rent: What the machine is rented for.
        wall: Unix time.
        clock: The monotonic clock.
    """

    def __init__(
        self,
        chronicle: Chronicle,
        journal: Journal,
        rent: RentSettings,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chronicle = chronicle
        self._rent = rent
        self._wall = wall
        self._clock = clock
        self._findings = FindingLog(journal.record)
        self._findings.recall(journal.since(0, limit=len(journal)), clock())
        self._taken_s: float | None = None

    def terms(self, profile: Profile | None) -> Terms:
        """What is paid with this profile."""
        if profile is None:
            return terms_of(self._rent, None, unpriced=NO_PROFILE)
        if profile.kind == "attached":
            terms = terms_of(self._rent, None, unpriced=PER_TOKEN)
            return replace(terms, usd_per_hour=None, per_token=profile.price or TokenPrice())
        return terms_of(self._rent, profile.usd_per_hour)

    def account(self, profile: Profile | None) -> Account:
        """What a snapshot's cost is worked out from."""
        terms, now_s = self.terms(profile), self._wall()
        if terms.rent_since_s is None:
            return Account(terms=terms, now_s=now_s)
        book, complete = self._chronicle.book, self._chronicle.complete
        tokens = tokens_since(book, terms.rent_since_s, now_s, complete=complete)
        return Account(terms=terms, now_s=now_s, generated_since_rent=tokens)

    def take(
        self,
        snapshot: Snapshot,
        view: EngineView | None,
        counts: RequestCounts,
        status: EngineStatus,
    ) -> None:
        """Write down what a snapshot says."""
        now_s, at_s = self._clock(), self._wall()
        elapsed_s = None if self._taken_s is None else now_s - self._taken_s
        self._taken_s = now_s
        point = history_point(snapshot, at_s)
        reading = Reading(
            counters=_counters(at_s, view, counts, status),
            counters_reset_s=number(view.counters_reset_s) if view else None,
            run_age_s=number(snapshot.engine.uptime_s),
            elapsed_s=elapsed_s,
            usd_per_hour=self._paid(status),
            busy=bool(number(point.running)) or works(snapshot.slots),
            simulated=snapshot.simulated,
        )
        self._chronicle.add(point, reading, view.latest_throughput if view else None)
        self._findings.observe(snapshot.findings, now_s)

    def _paid(self, status: EngineStatus) -> Decimal | None:
        return self.terms(status.profile).usd_per_hour if status.living else None


def _counters(
    at_s: float, view: EngineView | None, counts: RequestCounts, status: EngineStatus
) -> Counters:
    tokens: Figure | None = view.generated_tokens if view else None
    return Counters(
        at_s=at_s,
        run=status.run.id if status.run and status.living else None,
        generated_tokens=None if tokens is None else number(tokens),
        finished=counts.completed,
        failed=counts.failed,
        aborted=counts.aborted,
    )
