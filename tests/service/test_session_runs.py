"""Sessions over a switch of the engine: each with the window and price of what served it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from a40console.model.figures import Missing
from a40console.service.session_shelf import SessionShelf
from a40console.service.sessions import Around, Sessions
from tests.gateway.session_clients import HEAD, Ask, Gateway, talk, who

SIM = Around(
    slots=(),
    window_tokens=262_144,
    usd_per_hour=Decimal("0.44"),
    told={},
    run_id="sim",
    simulated=True,
)
SMALL = replace(SIM, window_tokens=2048, usd_per_hour=None, run_id="small", simulated=False)
PAID = replace(SMALL, usd_per_hour=Decimal("0.72"), run_id="paid")


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def sessions(gateway: Gateway) -> Sessions:
    return Sessions(gateway.book, gateway.clock.wall)


def serve(gateway: Gateway, sessions: Sessions, around: Around) -> None:
    gateway.run_id = around.run_id
    sessions.take(around)


def test_an_idle_session_keeps_the_window_that_served_it_and_is_accused_of_none(
    gateway: Gateway, sessions: Sessions
) -> None:
    serve(gateway, sessions, SIM)
    gateway.turn(Ask(who("old"), HEAD), prompt=17_600, generated=109)
    sessions.take(SIM)
    serve(gateway, sessions, SMALL)
    gateway.turn(Ask(who("new"), HEAD), prompt=40, generated=7)

    (sign,) = [each for each in sessions.take(SMALL).signs if each.session == "old"]
    old, new = sessions.detail("old"), sessions.detail("new")

    assert (sign.window_wrong, sign.nearly_full, sign.overflows) == (False, False, 0)
    assert sign.window_evidence == ""
    assert (old.context_tokens, old.window.true_tokens) == (17_709, 262_144)
    assert (new.context_tokens, new.window.true_tokens) == (47, 2048)
    serve(gateway, sessions, SIM)
    assert sessions.detail("new").window.true_tokens == 2048


def test_a_window_that_is_full_now_still_speaks(gateway: Gateway, sessions: Sessions) -> None:
    serve(gateway, sessions, SMALL)
    gateway.turn(Ask(who(), HEAD), prompt=1900, generated=100)

    (sign,) = sessions.take(SMALL).signs
    (gone,) = sessions.take(replace(SMALL, run_id=None, window_tokens=Missing("none"))).signs

    assert (sign.window_wrong, sign.nearly_full) == (True, True)
    assert (gone.window_wrong, gone.nearly_full) == (False, False)


def test_going_on_at_another_engine_forgets_what_was_full_at_the_first(
    gateway: Gateway, sessions: Sessions
) -> None:
    serve(gateway, sessions, SIM)
    gateway.turn(Ask(who(), HEAD), prompt=17_600, generated=109)
    serve(gateway, sessions, SMALL)
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=40, generated=7)

    (sign,) = sessions.take(SMALL).signs

    assert (sign.window_wrong, sign.nearly_full) == (False, False)


def test_simulated_dollars_stand_apart_from_real_ones(gateway: Gateway, sessions: Sessions) -> None:
    serve(gateway, sessions, SIM)
    gateway.turn(Ask(who(), HEAD), generated=600)
    simulated = sessions.take(SIM)
    pretended = sessions.detail("7f3a")
    serve(gateway, sessions, SMALL)
    gateway.turn(Ask(who(), HEAD + talk(1)), generated=500)
    sessions.take(SMALL)
    unpriced = sessions.detail("7f3a")
    serve(gateway, sessions, PAID)
    between = sessions.take(PAID).usd_per_million
    gateway.turn(Ask(who(), HEAD + talk(2)), generated=100)
    paid = sessions.take(PAID)
    real = sessions.detail("7f3a")

    # Each of the three was busy for 3 s.
    assert pretended.cost_usd == pytest.approx(0.44 * 3 / 3600)
    assert simulated.usd_per_million == pytest.approx(0.44 * 3 / 3600 / 600 * 1e6)
    assert unpriced.cost_usd == Missing("the profile names no price")
    assert unpriced.usd_per_million == Missing("the profile names no price")
    assert between == Missing("no engine with a price served it")
    assert real.cost_usd == pytest.approx(0.72 * 3 / 3600)
    assert real.usd_per_million == paid.usd_per_million
    assert paid.usd_per_million == pytest.approx(0.72 * 3 / 3600 / 100 * 1e6)


def test_what_only_the_simulated_engine_served_costs_nothing_real(
    gateway: Gateway, sessions: Sessions
) -> None:
    serve(gateway, sessions, SIM)
    gateway.turn(Ask(who(), HEAD))
    serve(gateway, sessions, PAID)

    assert sessions.detail("7f3a").cost_usd == Missing("only a simulated engine served it")


def test_dollars_stay_however_often_the_engine_is_started_again(
    gateway: Gateway, sessions: Sessions
) -> None:
    for number in range(20):
        price = Decimal("0.36") if number % 2 else Decimal("0.72")
        serve(gateway, sessions, replace(PAID, run_id=f"run-{number}", usd_per_hour=price))
        gateway.turn(Ask(who(), HEAD + talk(number)), generated=50)

    (record,) = gateway.book.records()

    assert len(record.served) <= 8
    assert sessions.detail("7f3a").cost_usd == pytest.approx(0.54 * 20 * 3 / 3600)
    assert sessions.detail("7f3a").usd_per_million == pytest.approx(0.54 * 3 / 3600 / 50 * 1e6)


async def test_a_restarted_service_knows_windows_and_prices(
    gateway: Gateway, sessions: Sessions, tmp_path: Path
) -> None:
    serve(gateway, sessions, PAID)
    gateway.turn(Ask(who(), HEAD), prompt=500)
    sessions.take(PAID)
    await SessionShelf(tmp_path / "sessions.json", gateway.book).save()
    again = Gateway()
    SessionShelf(tmp_path / "sessions.json", again.book).load()
    told = Sessions(again.book, again.clock.wall)
    serve(again, told, SIM)

    detail = told.detail("7f3a")

    assert detail.window.true_tokens == 2048
    assert detail.cost_usd == pytest.approx(0.72 * 3 / 3600)
