"""Dollars and tokens by the hour of the clock. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from a40console.model.control import SpendingHour, SpendingReport
from a40console.model.figures import Estimated, Figure, Missing, is_estimate, number
from a40console.service.cost import NOTHING_COUNTED, Terms, usd_per_million
from a40console.service.tally import HOUR_S, KEPT_S, Tally, TallyBook

UNSEEN_S = 60.0
"""So many seconds of an hour may be unseen before that makes a difference."""

UNSEEN = Missing("nothing was recorded: the service did not run")
PARTLY_SEEN = Missing("only a part of its tokens was seen")
BEFORE_RENT = Missing("before the rent began")
UNPRICED = Missing("no engine with a price ran")


def spending_report(
    book: TallyBook, terms: Terms, *, since_s: float, now_s: float
) -> SpendingReport:
    """Every hour since an instant, as far as anything is known.

    With the rent's begin and price, an hour costs its share of the rent, whether or not anything
    ran; else what engines with a price cost while they ran.

    Args:
        book: What was counted.
        terms: What is paid now, and since when.
        since_s: Unix time.
        now_s: Unix time.
    """
    known = [at_s for at_s in (book.oldest_s, terms.rent_since_s) if at_s is not None]
    begin_s = max(since_s, min(known, default=now_s), now_s - KEPT_S[HOUR_S])
    first_s = math.floor(min(begin_s, now_s) / HOUR_S) * HOUR_S
    begins = range(first_s, math.floor(now_s) + 1, HOUR_S)
    tallies = [book.hour(at_s) for at_s in begins]
    ends = [min(at_s + HOUR_S, now_s) for at_s in begins]
    rows = list(zip(begins, ends, tallies, strict=True))
    usd = [usd_of(tally, terms, at_s, end_s) for at_s, end_s, tally in rows]
    bought = [_bought(tally, terms, at_s, end_s) for at_s, end_s, tally in rows]
    hours = tuple(
        SpendingHour(
            at_s=float(at_s),
            observed_s=0.0 if tally is None else round(min(tally.observed_s, HOUR_S), 1),
            usd=paid,
            generated_tokens=UNSEEN if tally is None else generated(tally),
            busy_s=UNSEEN if tally is None else round(tally.busy_s, 1),
            usd_per_million=usd_per_million(paid, tokens),
            priced_tokens=tokens,
        )
        for (at_s, _, tally), paid, tokens in zip(rows, usd, bought, strict=True)
    )
    priced = _priced_together(list(zip(usd, bought, strict=True)))
    return SpendingReport(
        since_s=float(first_s),
        until_s=now_s,
        hours=hours,
        usd=_total(usd),
        generated_tokens=_total([hour.generated_tokens for hour in hours]),
        busy_s=_total([hour.busy_s for hour in hours]),
        usd_per_million=usd_per_million(*priced) if priced else UNPRICED,
        usd_per_hour=terms.unpriced if terms.usd_per_hour is None else float(terms.usd_per_hour),
        includes_disk=terms.includes_disk,
        priced_usd=priced[0] if priced else UNPRICED,
        priced_tokens=priced[1] if priced else UNPRICED,
    )


def usd_of(tally: Tally | None, terms: Terms, since_s: float, until_s: float) -> Figure:
    """What a span cost: its share of the rent, else what its engines cost."""
    rented = terms.rented(since_s, until_s)
    if rented is not None:
        begun = terms.rent_since_s is not None and until_s > terms.rent_since_s
        return float(rented) if begun else BEFORE_RENT
    if tally is None:
        return UNSEEN
    return float(tally.usd) if tally.priced_s else UNPRICED


def generated(tally: Tally) -> Figure:
    """Tokens of a span; estimated where it is not known when some of them were generated."""
    tokens = tally.generated_tokens
    return Estimated(tokens) if tally.spread_tokens else tokens


def tokens_since(book: TallyBook, since_s: float, now_s: float, *, complete: bool) -> Figure:
    """All tokens generated since an instant; missing where the counting began later.

    Those that an engine had generated before it was first seen are among them, and make an
    estimate of it: some may be older than the instant.

    Args:
        book: What was counted.
        since_s: Unix time.
        now_s: Unix time.
        complete: Whether nothing that was once counted is known to be lost.
    """
    oldest_s = book.oldest_s
    if oldest_s is None:
        return NOTHING_COUNTED
    if oldest_s > since_s + HOUR_S:
        since = datetime.fromtimestamp(oldest_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return Missing(f"tokens are counted only since {since}")
    tally = book.since(since_s, now_s)
    tokens = tally.generated_tokens + tally.earlier_tokens
    return tokens if complete and not tally.earlier_tokens else Estimated(tokens)


def _bought(tally: Tally | None, terms: Terms, since_s: float, until_s: float) -> Figure:
    """The tokens that the dollars of an hour paid for: those of the same of its seconds."""
    if tally is None:
        return UNSEEN
    tokens = tally.priced_tokens
    begins_within = False
    if terms.rented(since_s, until_s) is not None and terms.rent_since_s is not None:
        if until_s - since_s - tally.observed_s > UNSEEN_S:
            return PARTLY_SEEN
        tokens = tally.generated_tokens
        begins_within = since_s < terms.rent_since_s < until_s
    return Estimated(tokens) if tally.spread_tokens or begins_within else tokens


def _priced_together(hours: Iterable[tuple[Figure, Figure]]) -> tuple[Figure, Figure] | None:
    """Dollars and tokens of the hours in which both are known: an hour counts in both or neither.

    The tokens are an estimate where there are others; an hour without a priced engine has neither,
    and is none of the others. None where there is no such hour.
    """
    both, others = [], False
    for usd, tokens in hours:
        if isinstance(usd, Missing) or isinstance(tokens, Missing):
            others = others or bool(number(tokens)) or isinstance(tokens, Missing)
        else:
            both.append((usd, tokens))
    if not both:
        return None
    tokens = _total([tokens for _, tokens in both])
    value = number(tokens)
    told = Estimated(value) if others and value is not None else tokens
    return _total([usd for usd, _ in both]), told


def _total(figures: Sequence[Figure]) -> Figure:
    """What is known of them together; estimated where one is not known."""
    known = [value for figure in figures if (value := number(figure)) is not None]
    if not known:
        return figures[-1] if figures else UNSEEN
    exact = len(known) == len(figures) and not any(map(is_estimate, figures))
    return sum(known) if exact else Estimated(sum(known))
