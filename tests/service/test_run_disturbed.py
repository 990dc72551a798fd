"""Before a run starts it is said whom it disturbs; whoever would lose by it unasked is spared."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.own_request import RUN_SESSION
from a40console.model.run import Intrusion, RunSpec
from a40console.model.snapshot import Session, Snapshot
from a40console.service.run_disturbed import Clients, clients_of, with_clients
from tests import make_session
from tests import make_snapshot as make
from tests.service import orders


def seen(*sessions: Session, running: int = 0) -> Snapshot:
    snapshot = make.snapshot()
    return replace(
        snapshot,
        at="2026-11-30T12:00:00.000Z",
        sessions=sessions,
        requests=replace(snapshot.requests, running=running, waiting=0, held=0),
    )


def session(name: str = "7f3a9c52", phase: str = "idle", last: str = "11:00:00") -> Session:
    return replace(
        make_session.session(),
        session=name,
        phase=phase,  # type: ignore[arg-type]
        last_at=f"2026-11-30T{last}.000Z",
        context_tokens=41_200,
    )


def test_who_works_and_who_rests_is_told_apart() -> None:
    snapshot = seen(
        session("at-work", "decode"),
        session("runs-a-tool", "client"),
        session("reads-the-answer", last="11:58:00"),
        session("went-home"),
        session(RUN_SESSION + "20261130-114501-sweep-1f3a", last="11:59:00"),
    )
    clients = clients_of(snapshot, under_way=0)
    assert [each.session for each in clients.active] == [
        "at-work",
        "runs-a-tool",
        "reads-the-answer",
    ]
    assert [each.session for each in clients.resting] == ["went-home"], "a run is no client"


def test_requests_that_nobody_knows_count() -> None:
    assert clients_of(seen(running=2), under_way=0).requests == 2
    assert clients_of(seen(running=0), under_way=1).any_active
    assert not clients_of(seen(), under_way=0).any_active


@pytest.mark.parametrize("intrusion", ["evicts", "restarts"])
def test_a_working_session_is_named_with_what_it_loses(intrusion: Intrusion) -> None:
    clients = clients_of(seen(session("at-work", "decode"), session("home")), under_way=0)
    plan = with_clients(orders.plan(intrusion), RunSpec(experiment="sweep"), clients)
    assert "session at-work works with the engine" in plan.refusal
    told = " ".join(plan.consequences)
    assert "Session at-work" in told
    assert "41,200 tokens" in told
    assert "1 idle session" in told
    assert "invalid" in told, "its traffic spoils the run, too"


def test_a_session_that_reads_its_answer_is_told_by_when_it_asked() -> None:
    clients = clients_of(seen(session("reads", last="11:58:50")), under_way=0)
    plan = with_clients(orders.plan("evicts"), RunSpec(experiment="sweep"), clients)
    assert plan.refusal == (
        "session reads asked 1 m ago and may go on, and the run throws its cached prefix out"
    )
    both = clients_of(seen(session("reads", last="11:58:50"), session("at-work", "decode")), 0)
    plan = with_clients(orders.plan("evicts"), RunSpec(experiment="sweep"), both)
    assert plan.refusal.startswith("session at-work works with the engine, 1 more at work, and")


@given(
    intrusion=st.sampled_from(get_args(Intrusion)),
    active=st.booleans(),
    accepted=st.booleans(),
    when=st.sampled_from(["now", "idle"]),
)
def test_refused_exactly_where_somebody_would_lose_unasked(
    intrusion: Intrusion, active: bool, accepted: bool, when: str
) -> None:
    spec = RunSpec(
        experiment="sweep",
        accept_intrusion=accepted,
        when=when,  # type: ignore[arg-type]
    )
    working = (session("at-work", "decode"),) if active else ()
    clients = Clients(active=working, resting=(), requests=0)
    plan = with_clients(orders.plan(intrusion), spec, clients)
    loses = intrusion in ("evicts", "restarts") and active
    assert bool(plan.refusal) == (loses and not accepted and when == "now")
    if intrusion == "nothing" or not active:
        assert plan.consequences == ()


def test_another_refusal_stands() -> None:
    clients = Clients(active=(session("at-work", "decode"),), resting=(), requests=1)
    plan = with_clients(
        orders.plan("evicts", refusal="the window is too small"),
        RunSpec(experiment="compaction"),
        clients,
    )
    assert plan.refusal == "the window is too small"
