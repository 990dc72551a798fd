"""The cost screen: the rate, three prices with what each divides, and the day by the hour."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.model.figures import Missing
from a40console.model.snapshot import UsdPerMillion
from a40console.tui.app import ConsoleApp
from a40console.tui.ink import Line, width_of
from a40console.tui.panels.cost import cost_facts, hours, hours_heading
from a40console.tui.widgets.lines import Lines
from tests import make_snapshot as make
from tests.tui import fake_past
from tests.tui.driving import Driven, running, screen_text, until
from tests.tui.fake_service import FakeService
from tests.tui.fog import fogged


def text(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in row) for row in lines)


async def opened(app: ConsoleApp, pilot: Driven) -> None:
    await pilot.press("5")
    await until(pilot, lambda: "hour from" in screen_text(app))
    await pilot.pause()


async def test_the_hours_of_the_day_are_listed_newest_first() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        rows = app.screen.query_one("#hours", Lines).plain.splitlines()
        assert len(rows) == 25
        assert re.search(r"14:00 +\$0\.44 +125,000 +━+ +9 % +\$3\.52", rows[1])
        assert re.search(r"– +the service did not run", "\n".join(rows))
        assert "28 Nov 15:00" in rows[-1]


async def test_the_sum_of_the_day_is_in_the_heading() -> None:
    async with running(FakeService()) as (app, pilot):
        await opened(app, pilot)
        said = app.screen.query_one("#hours-heading", Lines).plain
        assert "≈$10.12" in said
        assert "1,842,000 tokens" in said
        assert "≈$5.49/1M" in said


async def test_a_service_that_does_not_tell_is_named() -> None:
    service = FakeService()
    async with running(service) as (app, pilot):
        service.go_down()
        await pilot.press("5")
        await until(pilot, lambda: "✖ No service answers" in screen_text(app))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50), (40, 12)])
async def test_it_fits(size: tuple[int, int]) -> None:
    async with running(FakeService(), size=size) as (app, pilot):
        await pilot.press("5")
        await until(pilot, lambda: app.current_mode == "cost")
        await pilot.pause(0.1)
        assert app.screen.query_one("#hints", Lines).region.bottom == size[1]
        for name in ("#facts", "#hours"):
            assert all(width_of(row) <= size[0] for row in app.screen.query_one(name, Lines).lines)


def test_each_price_says_what_it_divides() -> None:
    prices = UsdPerMillion(now=0.31, session=0.46, since_rent=3.42)
    snapshot = make.snapshot(
        cost=make.cost(usd_per_million=prices, since="rent began", includes_disk=True)
    )
    said = text(cost_facts(snapshot, None, 120))
    assert re.search(r"now +\$0\.31 +the present rate ÷ 509 tok/s", said)
    assert re.search(r"session +\$0\.46 +busiest: its seconds", said)
    assert re.search(r"since rent +\$3\.42 +all dollars, idle ones too", said)
    assert "with disk" in said
    assert "without disk" not in said


@pytest.mark.parametrize("width", [80, 118])
def test_its_words_are_whole(width: int) -> None:
    prices = UsdPerMillion(now=0.31, session=0.46, since_rent=3.42)
    snapshot = make.snapshot(cost=make.cost(usd_per_million=prices, since="engine start"))
    report = fake_past.spending()
    report = replace(report, since_s=report.until_s - 2267.0, hours=report.hours[-1:])
    said = text(cost_facts(snapshot, report, width))
    assert "…" not in said
    assert re.search(r"A million tokens  generated ones counted ─", said)
    assert "all dollars, idle ones too ÷ all tokens" in " ".join(said.split())


def test_what_is_missing_says_why_and_what_would_make_it_known() -> None:
    said = " ".join(text(cost_facts(make.sparse(), None, 80)).split())
    assert "rate – the profile names no price; known with usd_per_hour" in said
    rent = UsdPerMillion(now=0.3, session=0.4, since_rent=Missing("when it began is not known"))
    snapshot = make.snapshot(cost=make.cost(usd_per_million=rent))
    said = " ".join(text(cost_facts(snapshot, None, 80)).split())
    assert 'when it began is not known; known with "since" under "[rent]"' in said


@pytest.mark.parametrize("width", [40, 80, 118])
def test_what_is_paid_by_the_token_has_no_rate_by_the_hour(width: int) -> None:
    untold = Missing("tokens are paid")
    prices = UsdPerMillion(now=61.2, session=untold, since_rent=53.4)
    cost = make.cost(
        kind="per_token",
        usd_per_hour=Missing("it is paid by the token, not by the hour"),
        usd_so_far=0.27,
        usd_per_million=prices,
        counted="all",
    )
    snapshot = make.snapshot(cost=cost)
    said = " ".join(text(cost_facts(snapshot, fake_past.spending(), width)).split())
    assert said.startswith("─ Paid by the token prompts too ─")
    assert "so far $0.27 since engine start" in said
    assert "1M now $61.20 of the last minute's answers ÷ their" in said
    assert "a million $53.40 all that was charged ÷ generated" in said
    assert "/h" not in said
    assert "usd_per_hour" not in said


def test_an_hour_that_was_partly_seen_says_so() -> None:
    report = fake_past.spending()
    part = replace(report.hours[3], observed_s=1800.0)
    report = replace(report, hours=(*report.hours[:3], part, *report.hours[4:]))
    assert "30 m seen" in text(hours(report, "", 120, make.at()))


def test_the_report_says_since_when_it_counts() -> None:
    report = fake_past.spending()
    young = replace(report, since_s=report.until_s - 7200, hours=report.hours[-2:])
    [row] = hours_heading(young, 120)
    assert re.search(r"By the hour  since \d\d:\d\d, 2 h: ", text([row]))
    assert "last 24 h" not in text(cost_facts(make.snapshot(), young, 120))


def test_a_simulated_engines_dollars_are_called_so() -> None:
    simulated = replace(make.snapshot(), simulated=True)
    assert "SIMULATED, not counted below" in text(cost_facts(simulated, None, 120))
    assert "SIMULATED" not in text(cost_facts(make.snapshot(), None, 120))


@settings(deadline=None, max_examples=60)
@given(chance=st.floats(0, 1), seed=st.integers(0, 10**6), width=st.integers(30, 220))
def test_any_figures_are_drawn_within_the_width(chance: float, seed: int, width: int) -> None:
    snapshot, report = (
        fogged(make.snapshot(), chance, seed),
        fogged(fake_past.spending(), chance, seed),
    )
    for lines in (
        cost_facts(snapshot, report, width),
        hours_heading(report, width),
        hours(report, "", width, make.at()),
    ):
        assert all(width_of(row) <= width for row in lines)


def test_a_price_that_is_not_of_all_dollars_and_tokens_beside_it_says_of_which() -> None:
    report = replace(
        fake_past.spending(), usd=0.44, generated_tokens=2_000_000, usd_per_million=0.44
    )
    partly = replace(report, priced_usd=0.44, priced_tokens=1_000_000)
    assert "$0.44/1M (of $0.44 for 1,000,000 of them) ─" in text(hours_heading(partly, 120))
    wholly = replace(report, priced_usd=0.44, priced_tokens=2_000_000)
    assert "$0.44/1M ─" in text(hours_heading(wholly, 120))
    hour = replace(report.hours[-1], usd=0.44, generated_tokens=2_000_000)
    half = replace(report, hours=(replace(hour, priced_tokens=1_000_000),))
    assert "50 % paid" in text(hours(half, "", 120, make.at()))
    whole = replace(report, hours=(replace(hour, priced_tokens=2_000_000),))
    assert "% paid" not in text(hours(whole, "", 120, make.at()))
