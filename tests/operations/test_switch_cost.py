"""What a switch will cost, and how it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from a40console.model.figures import Estimated, Figure, Missing
from a40console.model.profile import Profile
from a40console.model.snapshot import Session, Snapshot
from a40console.model.switch_cost import told
from a40console.operations.switch_cost import Known, switch_cost
from tests import make_snapshot
from tests.make_session import session

BETA = Profile(name="beta", kind="vllm", model="m", max_model_len=65_536)
RATES = (2_000.0, Missing("idle"), 4_000.0)
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


def known(*starts: dict[str, float], rates: Sequence[Figure] = RATES) -> Known:
    return Known(drain_s=30.0, prefill_rates=rates, starts=starts)


def snapshot(*contexts: int, **changes: Any) -> Snapshot:
    whole = make_snapshot.snapshot()
    requests = replace(whole.requests, running=2)
    return replace(
        whole, at=AT, sessions=sessions(*contexts, **changes), requests=requests, simulated=False
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
            "measured here."
        ),
        (
            "The window becomes 65,536 tokens; clients that believe in more: claude-code s0 "
            "(250,000), claude-code s1 (250,000)."
        ),
    )


def test_what_is_not_known_is_said_with_its_reason() -> None:
    cost = switch_cost(BETA, snapshot(30_000, believes=60_000), known(rates=()))
    assert told(cost)[0] == (
        "Clients wait while beta starts: how long, no earlier start of it tells."
    )
    assert "how long that takes, no prompt was read in the last hour" in told(cost)[2]
    assert cost.too_wide == ()


def test_sessions_of_yesterday_cost_nothing() -> None:
    cost = switch_cost(BETA, snapshot(30_000, last_at="2026-11-28T14:07:31.120Z"), known())
    assert cost.sessions == 0
    assert "No session has a context to read again." in told(cost)


def test_figures_of_a_simulation_say_so() -> None:
    cost = switch_cost(replace(BETA, kind="sim"), snapshot(30_000), known())
    assert all(text.startswith("SIMULATED: ") for text in told(cost))
