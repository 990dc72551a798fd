"""Dollars: exact, by three spans, and missing with the reason rather than nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.config import RentSettings
from a40console.model.figures import Estimated, Missing, number
from a40console.model.snapshot import UsdPerMillion
from a40console.service.cost import NO_PROFILE, UNPAID, Account, Spending, cost, terms_of
from a40console.service.spending import spending_report, tokens_since, usd_of
from a40console.service.tally import HOUR_S, MINUTE_S, Tally, TallyBook

BEGAN = "2026-11-29T10:00:00Z"
BEGAN_S = datetime.fromisoformat(BEGAN).timestamp()
PROFILE = Decimal("0.44")
NO_RENT = RentSettings()
RENT = RentSettings(since=BEGAN, usd_per_hour=Decimal("0.40"), disk_usd_per_hour=Decimal("0.02"))


def account(
    rent: RentSettings = NO_RENT, *, price: Decimal | None = PROFILE, **changes: object
) -> Account:
    made = Account(terms=terms_of(rent, price), now_s=BEGAN_S + 7200)
    return replace(made, **changes)  # type: ignore[arg-type]


def spending(**changes: object) -> Spending:
    values: dict[str, object] = {
        "account": account(),
        "uptime_s": 3600.0,
        "generation_tokens_per_s": 400.0,
    }
    return Spending(**{**values, **changes})  # type: ignore[arg-type]


def test_now_and_since_the_start() -> None:
    block = cost(spending())
    assert block.usd_per_hour == 0.44
    assert number(block.usd_so_far) == pytest.approx(0.44)
    assert number(block.usd_per_million.now) == pytest.approx(0.44 / 3600 / 400 * 1e6)
    assert not block.includes_disk


def test_dollars_since_the_engines_start_are_not_called_dollars_since_the_rent() -> None:
    block = cost(spending())
    assert block.since == "engine start"
    assert block.usd_per_million.since_rent == Missing("when the rent began is not known")


def test_since_the_rent_idle_and_disk_included() -> None:
    rented = account(RENT, generated_since_rent=2_000_000)
    block = cost(spending(account=rented, uptime_s=60.0))
    assert (block.usd_per_hour, block.includes_disk, block.since) == (0.42, True, "rent began")
    assert number(block.usd_so_far) == pytest.approx(0.84)
    assert block.usd_per_million.since_rent == pytest.approx(0.42)
    assert block.usd_per_million.now == pytest.approx(0.42 / 3600 / 400 * 1e6)


def test_the_rent_goes_on_without_an_engine_and_without_a_profile() -> None:
    rented = account(RENT, price=None, generated_since_rent=1000)
    why = Missing("no engine runs")
    block = cost(spending(account=rented, uptime_s=None, generation_tokens_per_s=why))
    assert number(block.usd_so_far) == pytest.approx(0.84)
    assert block.usd_per_million.now == why


def test_tokens_that_were_lost_make_the_price_an_estimate() -> None:
    lost = account(RENT, generated_since_rent=Estimated(1_000_000))
    assert cost(spending(account=lost)).usd_per_million.since_rent == Estimated(0.84)


def test_a_rent_without_tokens_or_still_to_come() -> None:
    nothing = account(RENT, generated_since_rent=0)
    assert cost(spending(account=nothing)).usd_per_million.since_rent == Missing(
        "nothing was generated since the rent began"
    )
    early = account(RENT, now_s=BEGAN_S - 60, generated_since_rent=5)
    block = cost(spending(account=early))
    assert block.usd_so_far == Missing("the rent begins later")
    assert block.usd_per_million.since_rent == Missing("the rent begins later")


def test_the_profiles_price_with_the_rents_begin() -> None:
    since_only = RentSettings(since=BEGAN)
    block = cost(spending(account=account(since_only, generated_since_rent=1_000_000)))
    assert (block.usd_per_hour, block.includes_disk) == (0.44, False)
    assert block.usd_per_million.since_rent == pytest.approx(0.88)


def test_the_busiest_sessions_price() -> None:
    assert cost(spending()).usd_per_million.session == Missing("sessions are not followed")
    assert cost(spending(session_usd_per_million=1.5)).usd_per_million.session == 1.5


def test_an_estimated_rate_makes_an_estimated_price() -> None:
    block = cost(spending(generation_tokens_per_s=Estimated(400.0)))
    assert isinstance(block.usd_per_million.now, Estimated)


def test_idle_is_no_price() -> None:
    block = cost(spending(generation_tokens_per_s=0.0))
    assert block.usd_per_million.now == Missing("nothing is generated now")


def test_without_a_price_everything_says_so() -> None:
    block = cost(spending(account=account(price=None)))
    for figure in (block.usd_per_hour, block.usd_so_far, block.usd_per_million.now):
        assert figure == Missing("the profile names no price")
    disk_only = RentSettings(disk_usd_per_hour=Decimal("0.02"))
    assert cost(spending(account=account(disk_only, price=None))).usd_per_hour == Missing(
        "the profile names no price"
    )


def book_of(**hours: Tally) -> TallyBook:
    """A book with tallies of hours after the rent began: `h0`, `h3`."""
    book = TallyBook()
    tallies: dict[tuple[int, int], Tally] = {}
    for name, tally in hours.items():
        at_s = int(BEGAN_S) + int(name[1:]) * HOUR_S
        tallies |= {(HOUR_S, at_s): tally, (MINUTE_S, at_s): tally}
    book.restore(tallies, None)
    return book


WORKED = Tally(
    generated_tokens=500_000,
    usd=Decimal("0.22"),
    priced_s=1800.0,
    priced_tokens=500_000,
    busy_s=900.0,
    observed_s=3600.0,
)
IDLE = Tally(observed_s=3600.0)


def test_hours_of_a_rent_cost_their_share_whatever_ran() -> None:
    terms = terms_of(RENT, None)
    report = spending_report(
        book_of(h0=WORKED, h1=IDLE), terms, since_s=BEGAN_S - 7200, now_s=BEGAN_S + 3.5 * HOUR_S
    )
    assert [hour.at_s - BEGAN_S for hour in report.hours] == [0, 3600, 7200, 10_800]
    assert [number(hour.usd) for hour in report.hours] == pytest.approx([0.42, 0.42, 0.42, 0.21])
    assert number(report.usd) == pytest.approx(1.47)
    worked, idle, unseen, _ = report.hours
    assert worked.usd_per_million == pytest.approx(0.84)
    assert idle.generated_tokens == 0
    assert idle.usd_per_million == Missing("nothing was generated")
    assert isinstance(unseen.generated_tokens, Missing)
    assert unseen.observed_s == 0
    assert report.generated_tokens == Estimated(500_000), "two hours were not seen"
    assert (report.usd_per_hour, report.includes_disk) == (0.42, True)


def test_hours_without_a_rent_cost_what_their_engines_cost() -> None:
    terms = terms_of(RentSettings(), PROFILE)
    report = spending_report(
        book_of(h0=WORKED, h1=IDLE, h3=WORKED),
        terms,
        since_s=BEGAN_S,
        now_s=BEGAN_S + 4 * HOUR_S - 1,
    )
    assert [number(hour.usd) for hour in report.hours] == [0.22, None, None, 0.22]
    assert report.hours[1].usd == Missing("no engine with a price ran")
    assert report.usd == Estimated(0.44)


def test_tokens_that_were_not_counted_for_all_of_the_rent_give_no_price() -> None:
    now_s = BEGAN_S + 72 * HOUR_S
    late = book_of(h71=Tally(generated_tokens=1000, observed_s=3600.0))
    tokens = tokens_since(late, BEGAN_S, now_s, complete=True)
    assert tokens == Missing("tokens are counted only since 2026-12-02 09:00 UTC")
    rented = account(RENT, now_s=now_s, generated_since_rent=tokens)
    assert cost(spending(account=rented)).usd_per_million.since_rent == tokens
    assert isinstance(tokens_since(TallyBook(), BEGAN_S, now_s, complete=True), Missing)


def test_tokens_since_the_rent_are_exact_only_where_all_were_seen() -> None:
    now_s = BEGAN_S + 2 * HOUR_S
    assert tokens_since(book_of(h0=WORKED), BEGAN_S, now_s, complete=True) == 500_000
    assert tokens_since(book_of(h0=WORKED), BEGAN_S, now_s, complete=False) == Estimated(500_000)
    found = replace(WORKED, earlier_tokens=100_000)
    assert tokens_since(book_of(h0=found), BEGAN_S, now_s, complete=True) == Estimated(600_000)


def test_a_price_is_of_the_tokens_that_were_paid_for() -> None:
    """An hour with a price beside one without, and both within one hour."""
    terms = terms_of(RentSettings(), PROFILE)
    priced = Tally(
        generated_tokens=1_000_000,
        usd=Decimal("0.44"),
        priced_s=3600.0,
        priced_tokens=1_000_000,
        observed_s=3600.0,
    )
    unpriced = Tally(generated_tokens=1_000_000, observed_s=3600.0)
    mixed = replace(priced, generated_tokens=2_000_000, observed_s=7200.0)
    for book in (book_of(h0=priced, h1=unpriced), book_of(h0=mixed)):
        report = spending_report(book, terms, since_s=BEGAN_S, now_s=BEGAN_S + 2 * HOUR_S - 1)
        assert number(report.usd_per_million) == pytest.approx(0.44)
        assert number(report.generated_tokens) == 2_000_000
        assert number(report.priced_usd) == pytest.approx(0.44)
        assert number(report.priced_tokens) == 1_000_000


HOURS = st.sampled_from(
    [
        None,
        IDLE,
        WORKED,
        Tally(generated_tokens=300_000, observed_s=3600.0),
        replace(WORKED, generated_tokens=900_000),
        Tally(generated_tokens=10_000, observed_s=600.0),
        replace(WORKED, spread_tokens=100),
    ]
)


@given(st.lists(HOURS, min_size=1, max_size=8), st.sampled_from([RENT, NO_RENT]), st.booleans())
def test_an_hour_counts_in_dollars_and_tokens_of_a_price_or_in_neither(
    hours: list[Tally | None], rent: RentSettings, late: bool
) -> None:
    """Whatever was seen, whatever had a price, and where the rent began in their midst."""
    book = book_of(**{f"h{number}": one for number, one in enumerate(hours) if one is not None})
    terms = terms_of(rent, PROFILE)
    if late and terms.rent_since_s is not None:
        terms = replace(terms, rent_since_s=terms.rent_since_s + 1.5 * HOUR_S)
    end_s = BEGAN_S + len(hours) * HOUR_S - 1
    report = spending_report(book, terms, since_s=BEGAN_S, now_s=end_s)
    counted = [
        (usd, tokens)
        for hour in report.hours
        if (usd := number(hour.usd)) is not None
        and (tokens := number(hour.priced_tokens)) is not None
    ]
    if not counted:
        assert isinstance(report.usd_per_million, Missing)
        return
    usd, tokens = (sum(column) for column in zip(*counted, strict=True))
    assert number(report.priced_usd) == pytest.approx(usd)
    assert number(report.priced_tokens) == tokens
    price = number(report.usd_per_million)
    assert price == (pytest.approx(usd / tokens * 1e6) if tokens else None)


def test_an_hour_of_a_rent_that_was_seen_in_part_has_no_price() -> None:
    part = Tally(generated_tokens=10_000, observed_s=600.0)
    whole = Tally(generated_tokens=1_000_000, observed_s=3600.0)
    terms = terms_of(RENT, None)
    report = spending_report(
        book_of(h0=whole, h1=part), terms, since_s=BEGAN_S, now_s=BEGAN_S + 2 * HOUR_S - 1
    )
    assert report.hours[1].usd_per_million == Missing("only a part of its tokens was seen")
    assert report.usd_per_million == Estimated(0.42)


def test_no_hour_is_invented_before_anything_was_counted() -> None:
    terms = terms_of(RentSettings(), PROFILE)
    report = spending_report(TallyBook(), terms, since_s=BEGAN_S - 86_400, now_s=BEGAN_S + 60)
    assert len(report.hours) == 1
    assert isinstance(report.usd, Missing)
    assert isinstance(report.usd_per_million, Missing)


def test_a_span_before_the_rent() -> None:
    terms = terms_of(RENT, None)
    assert usd_of(WORKED, terms, BEGAN_S - 100, BEGAN_S - 1) == Missing("before the rent began")
    assert usd_of(None, terms, BEGAN_S - 100, BEGAN_S + 3600) == pytest.approx(0.42)


def test_without_a_profile_no_profile_is_blamed() -> None:
    none = Missing("there is no profile that would name a price")
    block = cost(spending(account=UNPAID))
    assert block.usd_per_hour == block.usd_so_far == none
    assert block.usd_per_million == UsdPerMillion(now=none, session=none, since_rent=none)
    assert terms_of(RENT, None, unpriced=NO_PROFILE).usd_per_hour == Decimal("0.42")
