"""The rehearsed day's two Claude Code sessions are sessions: agents, tools, and a named loss."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from a40console.model.figures import Missing
from a40console.model.snapshot import Session
from a40console.profiles.loader import load_profiles
from a40console.rehearsal.day import Rehearsal, rehearse

PROFILE = "sim-a40-qwen3-coder-30b"


@pytest.fixture(scope="module")
def day() -> Rehearsal:
    profile = load_profiles(Path("/nonexistent")).find(PROFILE)
    return asyncio.run(rehearse(profile, seconds=76))


def sessions(day: Rehearsal) -> dict[str, Session]:
    rows = day.snapshots[-1].sessions
    assert not isinstance(rows, Missing)
    return {row.session[:4]: row for row in rows}


def test_two_sessions_stand_in_the_snapshot(day: Rehearsal) -> None:
    rows = sessions(day)
    assert set(rows) == {"7f3a", "a91c"}
    assert all(row.client == "claude-code" for row in rows.values())
    assert all(row.hit_ratio != 0 and row.cost_usd != 0 for row in rows.values())
    assert rows["a91c"].requests > rows["a91c"].turns


def test_slots_say_whose_they_are(day: Rehearsal) -> None:
    whose = set()
    for snapshot in day.snapshots:
        assert not isinstance(snapshot.slots, Missing)
        whose |= {(str(slot.session)[:4], slot.agent) for slot in snapshot.slots}
    assert whose >= {("7f3a", "main"), ("a91c", "main"), ("a91c", "Explore ab9f252")}


def test_a_sub_agent_and_its_tools_are_told_apart(day: Rehearsal) -> None:
    detail = day.sessions.detail("a91c", turns=500)
    explore = next(agent for agent in detail.agents if agent.agent.startswith("Explore"))
    assert (explore.is_subagent, explore.requests) == (True, 4)
    assert {tool.name for tool in detail.tools} >= {"Grep", "Bash", "Task", "Edit"}
    task = next(tool for tool in detail.tools if tool.name == "Task")
    assert task.longest_s == 4.0


def test_the_pruned_result_is_the_last_loss_and_a_finding(day: Rehearsal) -> None:
    snapshot = day.snapshots[-1]
    loss = snapshot.prefix_cache.last_loss
    assert not isinstance(loss, Missing)
    assert loss.session.startswith("7f3a")
    assert loss.cause == "tool_result of message 3 was pruned"
    assert "prefix-changed" in {finding.code for finding in snapshot.findings}


def test_an_agent_never_has_two_requests_at_once_however_long_the_day() -> None:
    profile = load_profiles(Path("/nonexistent")).find(PROFILE)
    long_day = asyncio.run(rehearse(profile, seconds=340))
    for snapshot in long_day.snapshots:
        assert not isinstance(snapshot.slots, Missing)
        whose = [(slot.session, slot.agent) for slot in snapshot.slots]
        assert len(whose) == len(set(whose)), snapshot.at
    for row in sessions(long_day).values():
        detail = long_day.sessions.detail(row.session, turns=500)
        live = [each.agent for each in detail.timeline if each.live]
        assert len(live) == len(set(live))
        assert detail.turns > 24, "one day follows the other"
