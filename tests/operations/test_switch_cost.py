"""What a switch will cost, and how it is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from a40console.model.figures import Estimated, Figure, Missing, number
from a40console.model.profile import Profile
from a40console.model.snapshot import RecentRequest, Session, Snapshot
from a40console.model.switch_cost import told
from a40console.operations.switch_cost import Known, switch_cost
from tests import make_snapshot
from tests.make_session import session
from tests.make_snapshot import recent

BETA = Profile(name="beta", kind="vllm", model="m", max_model_len=65_536)
AT = "2026-11-29T14:07:31.120Z"


def sessions(*contexts: int, last_at: str = AT, believes: float = 250_000) -> tuple[Session, ...]:
    return tuple(
        session(
            session=f"s{number}",
            context_tokens=context,
            last_at=last_at,
            compacts_at_tokens=Estimated(believes),
        )
        for number, context in enumerate(contexts)
    )


def known(*starts: dict[str, float]) -> Known:
    return Known(drain_s=30.0, starts=starts)


def read(tokens: float, seconds: Figure, cached: Figure = 1_000, at: str = AT) -> RecentRequest:
    """A request whose engine computed so many tokens of its prompt in so many seconds."""
    prompt = tokens + (number(cached) or 0)
    return recent(prompt_tokens=prompt, cached_tokens=cached, prefill_s=seconds, ended_at=at)


READ = (read(8_000, 4.0), read(27, 0.001), read(20_000, 5.0))


def snapshot(*contexts: int, **changes: Any) -> Snapshot:
    whole = make_snapshot.snapshot()
    requests = replace(whole.requests, running=2)
    return replace(
        whole,
        at=AT,
        sessions=sessions(*contexts, **changes),
        requests=requests,
        simulated=False,
        recent=READ,
    )


def test_contexts_windows_and_time_are_told() -> None:
    starts = ({"load": 30.0, "download": 300.0}, {"load": 40.0, "canary": 2.0}, {"load": 90.0})
    cost = switch_cost(BETA, snapshot(30_000, 50_000), known(*starts))
    assert cost.reread_tokens == 80_000
    assert cost.reread_s == Estimated(20.0)
    assert cost.start_s == Estimated(42.0)
    assert told(cost) == (
        "Clients wait ≈ 42 s for beta to start (the median of 3 starts).",
        "2 requests are running: what has not ended after 30 s is cut.",
        (
            "The contexts of 2 sessions are read again: 80,000 tokens, ≈ 20 s at the 4,000 tok/s "
            "measured here (2 long prompts)."
        ),
        (
            "The window becomes 65,536 tokens; clients that believe in more: claude-code s0 "
            "(250,000), claude-code s1 (250,000)."
        ),
    )


def test_what_is_not_known_is_said_with_its_reason() -> None:
    unread = replace(snapshot(30_000, believes=60_000), recent=())
    cost = switch_cost(BETA, unread, known())
    assert told(cost)[0] == (
        "Clients wait while beta starts: how long, no earlier start of it tells."
    )
    assert "how long that takes, no prompt of 2,048 tokens or more was read" in told(cost)[2]
    assert cost.too_wide == ()


def test_a_switch_to_what_serves_already_says_so() -> None:
    served = snapshot(30_000)
    cost = switch_cost(replace(BETA, name=str(served.engine.profile)), served, known())
    assert told(cost)[0] == (
        f"{served.engine.profile} serves already: it is started anew, as its file is now."
    )


def test_sessions_of_yesterday_cost_nothing() -> None:
    cost = switch_cost(BETA, snapshot(30_000, last_at="2026-11-28T14:07:31.120Z"), known())
    assert cost.sessions == 0
    assert "No session has a context to read again." in told(cost)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_only_what_is_said_of_a_simulated_engine_says_so(before: bool, after: bool) -> None:
    beta = replace(BETA, kind="sim") if after else BETA
    now = replace(snapshot(30_000), simulated=before)
    starts, running, contexts, window = told(switch_cost(beta, now, known({"load": 1.0})))
    assert [text.startswith("SIMULATED: ") for text in (starts, window)] == [after, after]
    assert [text.startswith("SIMULATED: ") for text in (running, contexts)] == [before, before]


def test_short_prompts_tell_nothing_of_long_ones() -> None:
    now = snapshot(30_000)
    untold = Missing("the engine does not tell")
    earlier = "2026-11-29T13:00:00.000Z"  # of an engine before this one, which is up for an hour
    for short in (
        (),
        (read(2_047, 0.5),),
        (read(9_000, untold),),
        (read(9_000, 3.0, cached=untold),),
        (read(9_000, 3.0, at=earlier),),
    ):
        engine = replace(now.engine, uptime_s=3600.0)
        cost = switch_cost(BETA, replace(now, recent=short, engine=engine), known())
        assert isinstance(cost.prefill_tokens_per_s, Missing), short
        assert isinstance(cost.reread_s, Missing)
    just = switch_cost(BETA, replace(now, recent=(read(2_048, 0.5),)), known())
    assert (just.prefill_tokens_per_s, just.prefill_prompts) == (Estimated(4_096.0), 1)


def test_what_takes_no_second_is_not_zero() -> None:
    cost = switch_cost(BETA, snapshot(300), known())
    assert "300 tokens, less than 1 s at the 4,000 tok/s measured here" in told(cost)[2]
