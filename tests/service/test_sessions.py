"""Sessions as the service tells of them: rows, details, signs, over a restart and over the API."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from a40console.errors import ConsoleError, UsageError
from a40console.gateway import session_view
from a40console.gateway.sessions import SessionBook
from a40console.model.codec import encode
from a40console.model.figures import Estimated, Missing
from a40console.model.session import SessionSigns
from a40console.model.snapshot import Session
from a40console.service.api import ControlApi
from a40console.service.board import Board
from a40console.service.client import ServiceClient
from a40console.service.sessions import Sessions, SessionsBlock
from tests.gateway.session_clients import HEAD, Answer, Ask, Gateway, block, talk, who
from tests.make_snapshot import slot
from tests.service.session_days import around, busy_day

LONG_ID = "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10"


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def sessions(gateway: Gateway) -> Sessions:
    return Sessions(gateway.book, gateway.clock.wall)


def row(sessions: Sessions, **changes: Any) -> Session:
    block = sessions.take(around(**changes))
    assert not isinstance(block.sessions, Missing)
    return block.sessions[0]


def sign(sessions: Sessions, **changes: Any) -> SessionSigns:
    return sessions.take(around(**changes)).signs[0]


def test_a_row_adds_up_what_passed(gateway: Gateway, sessions: Sessions) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=3000, cached=0, generated=100)
    gateway.pass_s(5)
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=4200, cached=3088, generated=300)

    shown = row(sessions)

    assert (shown.session, shown.client, shown.phase) == ("7f3a", "claude-code", "idle")
    assert (shown.turns, shown.requests, shown.context_tokens) == (2, 2, 4500)
    assert (shown.prompt_tokens, shown.reused_tokens, shown.reread_tokens) == (7200, 3088, 12)
    assert (shown.generated_tokens, shown.window_tokens) == (400, 32768)
    assert shown.hit_ratio == pytest.approx(3088 / 7200)
    # 3 s each, prefill and decode together.
    assert shown.sustained_tokens_per_s == pytest.approx(400 / 6)
    assert shown.cost_usd == pytest.approx(0.44 * 6 / 3600)
    assert shown.tool == Missing("no tool runs")


def test_what_the_engine_does_not_tell_is_missing_and_never_nothing(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=3000, cached=None)
    untold = row(sessions)
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=4000, cached=3000)
    partly = row(sessions)

    assert untold.reused_tokens == Missing("the engine did not tell")
    assert untold.hit_ratio == Missing("the engine did not tell")
    assert partly.reused_tokens == Estimated(3000)
    assert partly.hit_ratio == 0.75


def test_waits_are_looked_for_again_only_when_a_request_came_or_ended(
    gateway: Gateway, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, read = list[int](), session_view.first_tokens_s

    def watched(entries: Any) -> tuple[float, ...]:
        looked.append(len(entries))
        return read(entries)

    monkeypatch.setattr(session_view, "first_tokens_s", watched)
    none_yet = gateway.ask(Ask(who(), HEAD))
    before = [row(sessions).ttft_median_s for _ in range(3)]
    gateway.answer(none_yet, prefill_s=2.0)
    one = [row(sessions).ttft_median_s for _ in range(3)]
    gateway.turn(Ask(who(), HEAD + talk(1)), prefill_s=4.0)
    two = [(row(sessions).ttft_last_s, row(sessions).ttft_median_s) for _ in range(3)]

    assert before == [Missing("no turn of it has begun to answer yet")] * 3
    assert one == [2.0] * 3
    assert two == [(4.0, 3.0)] * 3
    assert looked == [1, 1, 2]


def test_without_a_price_there_is_no_cost_and_its_reason(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD))

    assert row(sessions, usd_per_hour=None).cost_usd == Missing("the profile names no price")


def test_the_phase_is_the_slots_and_then_the_clients(gateway: Gateway, sessions: Sessions) -> None:
    passage = gateway.ask(Ask(who(), HEAD))
    gateway.pass_s(3)
    queued = row(sessions, slots=(slot(request_id=passage.request_id, phase="queued"),))
    unseen = row(sessions)
    gateway.answer(passage, calls=(("Bash", "t1"),))
    gateway.pass_s(42)
    client = row(sessions)

    assert (queued.phase, queued.phase_s) == ("queued", 3.0)
    assert unseen.phase == "prefill"
    assert (client.phase, client.tool, client.phase_s) == ("client", "Bash", 42.0)


def test_the_newest_fault_is_the_last_loss_and_a_reason_is_none(
    gateway: Gateway, sessions: Sessions
) -> None:
    changed = (*HEAD[:3], block("system", "another day", characters=8000))
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=5000, cached=0)
    before = sessions.take(around()).last_loss
    gateway.turn(Ask(who(), changed + talk(2)), prompt=6000, cached=1200)
    gateway.run_id = "run-2"
    gateway.turn(Ask(who(), changed + talk(3)), prompt=7000, cached=0)

    loss = sessions.take(around()).last_loss

    assert before == Missing("no prefix was lost yet")
    assert not isinstance(loss, Missing)
    assert (loss.session, loss.turn) == ("7f3a", 2)
    assert loss.cause == "system changed, at the same length: a date, a counter or an id in it"


def test_what_could_have_hit_is_what_was_sent_before(gateway: Gateway, sessions: Sessions) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=3000, cached=0, generated=50)
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=4000, cached=0)

    assert sessions.take(around()).reusable_ratio == pytest.approx(3050 / 7000)


def test_nothing_could_have_hit_in_an_engine_that_was_started_anew(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), prompt=3000, cached=0, generated=50)
    gateway.run_id = "run-2"
    gateway.turn(Ask(who(), HEAD + talk(1)), prompt=4000, cached=0)

    assert sessions.take(around()).reusable_ratio == 0


@pytest.mark.parametrize(
    ("changes", "wrong", "says"),
    [
        ({"max_tokens": 8192}, False, "not its default"),
        ({"max_tokens": 32000}, True, "max_tokens 32,000, its own default"),
        ({"max_tokens": 128000}, True, "takes an unknown model's for 1,000,000 tokens"),
        ({"max_tokens": 8192, "model": "claude-sonnet-5"}, True, "200,000 tokens"),
    ],
)
def test_what_the_client_takes_for_its_window_is_told_by_what_it_asks_for(
    gateway: Gateway, sessions: Sessions, changes: dict[str, Any], wrong: bool, says: str
) -> None:
    gateway.turn(Ask(who(), HEAD, **changes))

    found = sign(sessions)

    assert found.window_wrong is wrong
    assert says in found.window_evidence


def test_a_limit_that_the_console_itself_advises_accuses_nobody(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD, max_tokens=32000))
    advised = sign(sessions, window_tokens=262_144)
    gateway.turn(Ask(who(), HEAD, max_tokens=32000, removed={"billing header": 1}))
    billed = sign(sessions, window_tokens=262_144)

    assert (advised.window_wrong, advised.window_evidence) == (False, "")
    assert billed.window_wrong


def test_a_client_that_sends_what_the_console_tells_it_to_has_its_window_too(
    gateway: Gateway, sessions: Sessions
) -> None:
    told = replace(who(), prompt_id="p1")
    gateway.turn(Ask(told, HEAD, max_tokens=32000), prompt=3000)
    hinted = sign(sessions, window_tokens=262_144)
    window = sessions.detail("7f3a").window
    gateway.turn(Ask(told, HEAD, max_tokens=32000, removed={"billing header": 1}))
    billed = sign(sessions, window_tokens=262_144)

    assert (hinted.window_wrong, billed.window_wrong) == (False, True)
    assert (window.told, window.assumed_tokens) == (True, 262_144)
    assert window.compacts_at_tokens == Estimated(262_144 - 20_000 - 13_000)
    assert window.evidence == (
        "it asks for max_tokens 32,000, as the lines from here set it, "
        "and sends its hints and no billing line"
    )


@pytest.mark.parametrize(
    ("limit", "window_tokens", "hints", "told", "believes"),
    [
        (16_384, 65_536, False, True, 65_536),
        (8_192, 65_536, False, False, Estimated(65_536)),
        (8_192, 65_536, True, False, Estimated(65_536)),
        (512, 2_048, True, False, Missing),
        (32_000, 65_536, False, False, Estimated(1_000_000)),
    ],
    ids=["our limit", "another limit", "another limit, hints", "left out", "its default"],
)
def test_a_window_is_told_where_the_requests_show_our_lines_and_else_guessed(
    gateway: Gateway,
    sessions: Sessions,
    limit: int,
    window_tokens: int,
    hints: bool,
    told: bool,
    believes: object,
) -> None:
    client = replace(who(), prompt_id="p1" if hints else None)
    gateway.turn(Ask(client, HEAD, max_tokens=limit), prompt=300)
    sessions.take(around(window_tokens=window_tokens))

    window = sessions.detail("7f3a").window

    assert window.told is told
    if believes is Missing:
        assert isinstance(window.assumed_tokens, Missing)
        assert window.assumed_tokens.reason.endswith("which leave so small a window out")
    else:
        assert window.assumed_tokens == believes


def test_a_window_larger_than_the_clients_belief_is_no_fault(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD, model="claude-sonnet-5"))

    assert not sign(sessions, window_tokens=262_144).window_wrong


def test_a_context_near_the_end_without_a_summary_shows_a_wrong_window(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD), prompt=29_000, generated=600)
    found = sign(sessions)
    window = sessions.detail("7f3a").window

    assert (found.nearly_full, found.window_wrong) == (True, True)
    assert found.window_evidence == (
        "its context went to 29,600 of 32,768 tokens without a summary"
    )
    assert window.assumed_tokens == Missing("it does not say, and went beyond the true one")


def test_when_the_client_will_compact_follows_its_own_rule(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD), prompt=3000)
    sessions.take(around(window_tokens=65_536))

    window = sessions.detail("7f3a").window

    assert window.assumed_tokens == Estimated(65_536)
    assert window.compacts_at_tokens == Estimated(65_536 - 8_192 - 13_000)
    assert window.used_ratio == pytest.approx(3050 / 65_536)


def test_another_clients_window_is_not_guessed(gateway: Gateway, sessions: Sessions) -> None:
    passage = gateway.ask(Ask(who(), HEAD), client="curl")
    gateway.answer(passage)
    sessions.take(around())

    window = sessions.detail("7f3a").window

    assert window.assumed_tokens == Missing("only Claude Code's window can be told")


def test_a_detail_has_agents_tools_and_the_newest_requests(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(), HEAD + talk(0)), calls=(("Task", "t1"),))
    gateway.turn(Ask(who(agent="Explore a1b2c3d"), HEAD + talk(0)), generated=20)
    gateway.turn(Ask(who(), HEAD + talk(1), tool_answers=(Answer("t1"),)))
    live = gateway.ask(Ask(who(), HEAD + talk(2), safeguards=True))
    gateway.pass_s(1)
    live.streamed(gateway.clock(), 5)
    speed = slot(
        session="7f3a",
        request_id=live.request_id,
        tokens_per_s=41.5,
        generated_tokens=Estimated(30),
    )
    sessions.take(around(slots=(speed, slot(session="other"))))

    detail = sessions.detail("7f3a", turns=2)

    assert [(agent.agent, agent.requests) for agent in detail.agents] == [
        ("main", 2),
        ("Explore a1b2c3d", 1),
    ]
    assert [agent.phase for agent in detail.agents] == ["decode", "idle"]
    assert [(tool.name, tool.calls, tool.total_s) for tool in detail.tools] == [("Task", 1, 3.0)]
    assert [request.live for request in detail.timeline] == [False, True]
    assert (detail.forgotten_requests, detail.requests, detail.turns) == (2, 4, 3)
    assert detail.tokens_per_s == 41.5
    assert detail.ttft_s == (1.0, 1.0, 1.0)
    assert detail.safeguards
    assert isinstance(detail.usd_per_million, Estimated)
    assert detail.usd_per_million.value == pytest.approx(0.44 * 10 / 3600 / 150 * 1e6)


def test_a_session_is_found_by_its_beginning_if_only_one_begins_so(
    gateway: Gateway, sessions: Sessions
) -> None:
    gateway.turn(Ask(who(LONG_ID), HEAD))
    gateway.turn(Ask(who("7e00"), HEAD))

    assert sessions.detail("7f3a").session == LONG_ID
    with pytest.raises(UsageError, match="No session is known as 7"):
        sessions.detail("7")


# --- over the API --------------------------------------------------------------------------------


async def test_a_client_reads_a_session_over_the_api(gateway: Gateway, sessions: Sessions) -> None:
    for number in range(5):
        gateway.turn(Ask(who("night-run.1"), HEAD + talk(number)))
    sessions.take(around())
    unused: Any = None
    past = type("Past", (), {"reads": lambda self: {}, "posts": lambda self: {}})()
    api = ControlApi(
        board=Board(), past=past, commands=unused, answers=unused, session=sessions.detail
    )
    transport = httpx.ASGITransport(api.app())
    async with ServiceClient(Path("/run/none.sock"), transport=transport) as client:
        whole = await client.session("night-run.1")
        short = await client.session("night", turns=2)
        with pytest.raises(ConsoleError, match="No session is known as nobody") as raised:
            await client.session("nobody")

    assert whole == sessions.detail("night-run.1")
    assert len(short.timeline) == 2
    assert raised.value.remedy == "See them with: a40console sessions"


def test_a_block_is_json(gateway: Gateway, sessions: Sessions) -> None:
    busy_day(gateway)
    block: SessionsBlock = sessions.take(around())

    assert json.loads(json.dumps(encode(block)))["sessions"][1]["turns"] == 2
    assert isinstance(gateway.book, SessionBook)
