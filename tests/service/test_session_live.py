"""A session with a request under way says what its slot says; what is not known yet is no 0."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from a40console.model.figures import Estimated, Missing
from a40console.model.first_request import sentences
from a40console.model.snapshot import Session
from a40console.service.sessions import Around, Sessions
from a40console.tui.panels.session_text import facts
from tests.gateway.session_clients import HEAD, Ask, Gateway, talk, who
from tests.make_snapshot import slot

UNTOLD = Missing("the engine did not tell")


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def sessions(gateway: Gateway) -> Sessions:
    return Sessions(gateway.book, gateway.clock.wall)


def row(sessions: Sessions, request_id: str = "", **told: Any) -> Session:
    slots = (slot(session="7f3a", request_id=request_id, **told),) if told else ()
    block = sessions.take(
        Around(
            slots=slots,
            window_tokens=32_768,
            usd_per_hour=Decimal("0.44"),
            told={},
            run_id="run-1",
        )
    )
    assert not isinstance(block.sessions, Missing)
    return block.sessions[0]


def test_a_first_request_is_not_denied(gateway: Gateway, sessions: Sessions) -> None:
    live = gateway.ask(Ask(who(), HEAD))
    gateway.pass_s(2)
    unseen = row(sessions)
    said = sentences(sessions.detail("7f3a"))
    reading = row(
        sessions,
        live.request_id,
        phase="prefill",
        prompt_tokens=3000,
        cached_tokens=UNTOLD,
        generated_tokens=0,
        ttft_s=Missing("no token yet"),
    )

    for figure in (
        unseen.prompt_tokens,
        unseen.reused_tokens,
        unseen.generated_tokens,
        unseen.hit_ratio,
        unseen.sustained_tokens_per_s,
    ):
        assert isinstance(figure, Missing)
    assert unseen.prompt_tokens == Missing("under way")
    assert said[1:] == ("Its request is under way.",)
    assert (reading.prompt_tokens, reading.reused_tokens) == (3000, Missing("under way"))
    assert reading.hit_ratio == Missing("under way")
    assert reading.generated_tokens == Missing("its first answer has not begun yet")
    assert reading.sustained_tokens_per_s == Missing("its first answer has not begun yet")


def test_the_slots_figures_are_the_sessions_and_its_timelines(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD), prompt=3000, cached=0, generated=100)
    live = gateway.ask(Ask(who(), HEAD + talk(1)))
    gateway.pass_s(4)
    live.streamed(gateway.clock(), 5)
    gateway.pass_s(3)
    shown = row(
        sessions,
        live.request_id,
        phase="decode",
        prompt_tokens=4000,
        cached_tokens=3000,
        reread_tokens=50,
        generated_tokens=Estimated(80),
        ttft_s=4.0,
        tokens_per_s=41.0,
    )
    detail = sessions.detail("7f3a")

    assert (shown.prompt_tokens, shown.reused_tokens, shown.reread_tokens) == (7000, 3000, 50)
    assert shown.generated_tokens == Estimated(180)
    assert shown.hit_ratio == pytest.approx(3000 / 7000)
    assert shown.sustained_tokens_per_s == Estimated(180 / 10)
    assert (shown.ttft_last_s, shown.ttft_median_s) == (4.0, 2.5)
    assert shown.context_tokens == Estimated(4080)
    newest = detail.timeline[-1]
    assert (newest.prompt_tokens, newest.reused_tokens, newest.ttft_s) == (4000, 3000, 4.0)
    assert (newest.generated_tokens, newest.tokens_per_s) == (Estimated(80), 41.0)
    assert detail.agents[0].generated_tokens == Estimated(180)
    assert sentences(detail)[1] == "7,000 tokens in, 180 tokens answered so far."


def test_a_sum_with_one_that_does_not_tell_is_an_estimate(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD), prompt=3000, cached=0, generated=100)
    gateway.ask(Ask(who(), HEAD + talk(1)))

    shown = row(sessions)

    assert shown.prompt_tokens == Estimated(3000)
    assert shown.generated_tokens == Estimated(100)


def test_its_last_time_is_that_of_its_last_answer(gateway: Gateway, sessions: Sessions) -> None:
    gateway.turn(Ask(who(), HEAD))
    idle = "\n".join(
        "".join(span.text for span in line) for line in facts(sessions.detail("7f3a"), 100)
    )
    gateway.ask(Ask(who(), HEAD + talk(1)))
    busy = "\n".join(
        "".join(span.text for span in line) for line in facts(sessions.detail("7f3a"), 100)
    )

    assert ", last answer at " in idle
    assert ", a request is under way" in busy
    assert "last answer at" not in busy
