"""What is paid by the token: counts times prices, exact, and missing where a price is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.config import RentSettings
from a40console.model.figures import Estimated, Missing, number
from a40console.model.profile import TokenPrice
from a40console.service.cost import Account, Spending, cost, terms_of
from a40console.service.token_cost import token_cost, usd
from a40console.telemetry.view import Charged

PRICE = TokenPrice(input=Decimal(3), cached_input=Decimal("0.3"), output=Decimal(15))
CHARGED = Charged(prompt_tokens=200, cached_tokens=80, generated_tokens=10, untold_requests=0)


def test_cached_input_is_counted_apart_and_once() -> None:
    # 120 x 3 + 80 x 0.3 + 10 x 15 = 534 millionths of a dollar
    assert usd(PRICE, CHARGED) == 0.000534


def test_the_block_says_that_tokens_are_paid() -> None:
    block = token_cost(PRICE, CHARGED, CHARGED)
    assert (block.kind, block.counted, block.since) == ("per_token", "all", "engine start")
    assert isinstance(block.usd_per_hour, Missing)
    assert block.usd_so_far == 0.000534
    assert number(block.usd_per_million.now) == pytest.approx(53.4)


def test_now_is_of_what_was_charged_lately_and_not_of_all() -> None:
    # 300 x 3 + 20 x 15 = 1,200 millionths of a dollar for 20 tokens
    dear = Charged(prompt_tokens=300, cached_tokens=0, generated_tokens=20, untold_requests=0)
    block = token_cost(PRICE, replace(CHARGED, generated_tokens=1_000), dear)
    assert number(block.usd_per_million.now) == pytest.approx(60)
    # 120 x 3 + 80 x 0.3 + 1,000 x 15 = 15,384 millionths for 1,000
    assert number(block.usd_per_million.since_rent) == pytest.approx(15.384)
    idle = Charged(prompt_tokens=0, cached_tokens=0, generated_tokens=0, untold_requests=0)
    block = token_cost(PRICE, CHARGED, idle)
    assert block.usd_per_million.now == Missing("no answer ended in the last minute")
    assert number(block.usd_per_million.since_rent) == pytest.approx(53.4)


@pytest.mark.parametrize("key", ["input", "cached_input", "output"])
def test_a_price_that_is_not_known_is_named_and_is_not_nothing(key: str) -> None:
    told = usd(replace(PRICE, **{key: None}), CHARGED)
    assert told == Missing(f"the profile's [price] does not say what a million of {key} costs")


def test_a_price_of_what_was_not_used_is_not_asked_for() -> None:
    only_output = TokenPrice(output=Decimal("15.99"))
    written = replace(CHARGED, prompt_tokens=0, cached_tokens=0, generated_tokens=300)
    assert usd(only_output, written) == pytest.approx(0.004797)


def test_answers_that_did_not_say_what_they_cost_make_an_estimate() -> None:
    untold = replace(CHARGED, untold_requests=1)
    told = token_cost(PRICE, untold, untold)
    assert told.usd_so_far == Estimated(0.000534)
    assert isinstance(told.usd_per_million.since_rent, Estimated)
    assert isinstance(told.usd_per_million.now, Estimated)


def test_nothing_yet_is_missing_where_it_is_divided_by() -> None:
    none = Charged(prompt_tokens=0, cached_tokens=0, generated_tokens=0, untold_requests=0)
    block = token_cost(PRICE, none, none)
    assert block.usd_so_far == 0.0
    assert block.usd_per_million.since_rent == Missing("nothing was generated yet")
    assert isinstance(token_cost(PRICE, None).usd_so_far, Missing)


def test_no_hours_are_paid_whatever_the_rent_says() -> None:
    terms = replace(terms_of(RentSettings(), None), per_token=PRICE)
    spending = Spending(
        account=Account(terms=terms, now_s=0.0),
        uptime_s=3600.0,
        generation_tokens_per_s=Missing("it does not tell"),
        charged=CHARGED,
    )
    assert cost(spending).usd_so_far == 0.000534


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_more_tokens_never_cost_less(computed: int, cached: int, generated: int) -> None:
    charged = Charged(
        prompt_tokens=computed + cached,
        cached_tokens=cached,
        generated_tokens=generated,
        untold_requests=0,
    )
    more = replace(charged, prompt_tokens=computed + cached + 1, generated_tokens=generated + 1)
    assert (number(usd(PRICE, more)) or 0) > (number(usd(PRICE, charged)) or 0)
