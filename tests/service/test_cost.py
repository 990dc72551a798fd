"""Dollars: exact, by three spans, and missing with the reason rather than nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest

from a40console.model.figures import Estimated, Missing, number
from a40console.service.cost import Spending, cost


def spending(**changes: object) -> Spending:
    values: dict[str, object] = {
        "usd_per_hour": Decimal("0.44"),
        "uptime_s": 3600.0,
        "generation_tokens_per_s": 400.0,
    }
    return Spending(**{**values, **changes})  # type: ignore[arg-type]


def test_now_and_since_the_start() -> None:
    block = cost(spending())
    assert block.usd_per_hour == 0.44
    assert number(block.usd_so_far) == pytest.approx(0.44)
    assert number(block.usd_per_million.now) == pytest.approx(0.44 / 3600 / 400 * 1e6)


def test_dollars_since_the_engines_start_are_not_called_dollars_since_the_rent() -> None:
    block = cost(spending())
    assert block.since == "engine start"
    assert block.usd_per_million.since_rent == Missing("when the rent began is not known")


def test_an_estimated_rate_makes_an_estimated_price() -> None:
    block = cost(spending(generation_tokens_per_s=Estimated(400.0)))
    assert isinstance(block.usd_per_million.now, Estimated)


def test_idle_is_no_price() -> None:
    block = cost(spending(generation_tokens_per_s=0.0))
    assert block.usd_per_million.now == Missing("nothing is generated now")


def test_without_a_price_everything_says_so() -> None:
    block = cost(spending(usd_per_hour=None))
    for figure in (block.usd_per_hour, block.usd_so_far, block.usd_per_million.now):
        assert figure == Missing("the profile names no price")
