"""A session as the service tells of it, for screens and tests: change what a test is about."""

from __future__ import annotations

from typing import Any

from a40console.model.figures import Estimated, Missing
from a40console.model.session import (
    ClientWindow,
    PrefixLoss,
    SessionAgent,
    SessionDetail,
    SessionRequest,
    ToolCall,
    ToolSum,
)
from a40console.model.snapshot import Session
from tests.make_snapshot import at

NO_TOOL = Missing("no tool runs")
NO_LOSS = Missing("nothing was lost")
UNDER_WAY = Missing("under way")


def session(**changes: Any) -> Session:
    """A Claude Code session whose client runs a tool."""
    values: dict[str, Any] = {
        "session": "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10",
        "client": "claude-code",
        "phase": "client",
        "tool": "Bash",
        "phase_s": 190.0,
        "turns": 41,
        "requests": 57,
        "context_tokens": 31844,
        "window_tokens": 262144,
        "prompt_tokens": 900112,
        "reused_tokens": 861004,
        "reread_tokens": Estimated(16400),
        "generated_tokens": 28110,
        "hit_ratio": 0.96,
        "sustained_tokens_per_s": 268.0,
        "cost_usd": 0.0128,
        "started_at": at(1900),
        "last_at": at(190),
        "tokens_per_s": Missing("nothing of it is in decode (client)"),
        "ttft_last_s": 0.29,
        "ttft_median_s": 0.37,
        "compacts_at_tokens": Estimated(229144),
        "capturing": False,
    }
    return Session(**(values | changes))


def loss(**changes: Any) -> PrefixLoss:
    """A pruned tool result."""
    values: dict[str, Any] = {
        "kind": "changed",
        "at": at(300),
        "request_id": "a40-0127",
        "agent": "main",
        "turn": 40,
        "block": 14,
        "block_kind": "tool_result",
        "message": 3,
        "cause": "tool_result of message 3 was pruned",
        "remedy": "Pruning tool results at every turn loses the prefix every time: compact in "
        "blocks instead.",
        "tokens": Estimated(16400),
        "prefill_s": Estimated(5.3),
    }
    return PrefixLoss(**(values | changes))


def call(**changes: Any) -> ToolCall:
    """A call that was answered."""
    values: dict[str, Any] = {
        "name": "Bash",
        "at": at(320),
        "duration_s": 2.5,
        "origin": "client",
        "failed": False,
    }
    return ToolCall(**(values | changes))


def request(**changes: Any) -> SessionRequest:
    """A turn that called a tool."""
    values: dict[str, Any] = {
        "request_id": "a40-0126",
        "agent": "main",
        "turn": 39,
        "purpose": "turn",
        "repeats": False,
        "streamed": True,
        "live": False,
        "at": at(330),
        "client_s": 2.5,
        "queue_s": 0.0,
        "prefill_s": 0.29,
        "decode_s": 4.1,
        "ttft_s": 0.31,
        "prompt_tokens": 30112,
        "reused_tokens": 29956,
        "reread_tokens": 11,
        "generated_tokens": 640,
        "tokens_per_s": 156.0,
        "finish_reason": "tool_use",
        "status": 200,
        "tools": (call(),),
        "loss": NO_LOSS,
    }
    return SessionRequest(**(values | changes))


def live_request(**changes: Any) -> SessionRequest:
    """A request under way."""
    values: dict[str, Any] = {
        "request_id": "a40-0128",
        "turn": 41,
        "live": True,
        "at": at(3),
        "queue_s": UNDER_WAY,
        "prefill_s": UNDER_WAY,
        "decode_s": UNDER_WAY,
        "generated_tokens": UNDER_WAY,
        "tokens_per_s": UNDER_WAY,
        "finish_reason": UNDER_WAY,
        "tools": (),
    }
    return request(**(values | changes))


def timeline() -> tuple[SessionRequest, ...]:
    """A turn, one that lost its prefix, a sub-agent's, and one whose tool still runs."""
    return (
        request(),
        request(
            request_id="a40-0127",
            turn=40,
            at=at(300),
            prefill_s=5.6,
            ttft_s=5.7,
            prompt_tokens=30960,
            reused_tokens=14112,
            reread_tokens=Estimated(16400),
            tools=(call(name="Task", at=at(290), duration_s=41.0, origin="seen"),),
            loss=loss(),
        ),
        request(
            request_id="a40-0200",
            agent="Explore a1b2c3d",
            turn=40,
            at=at(280),
            client_s=Missing("no answer of its agent before it"),
            prompt_tokens=5210,
            reused_tokens=0,
            reread_tokens=0,
            generated_tokens=90,
            tools=(call(name="Grep", at=at(278), failed=True),),
        ),
        request(
            request_id="a40-0128",
            turn=41,
            at=at(200),
            prompt_tokens=31204,
            tools=(call(at=at(190), duration_s=Missing("it runs"), origin="seen"),),
        ),
    )


def agents() -> tuple[SessionAgent, ...]:
    """The main agent and one that explores."""
    main = SessionAgent(
        agent="main",
        is_subagent=False,
        phase="client",
        requests=41,
        prompt_tokens=820000,
        reused_tokens=798000,
        reread_tokens=Estimated(16400),
        generated_tokens=26000,
        context_tokens=31844,
        started_at=at(1900),
        last_at=at(200),
    )
    explore = SessionAgent(
        agent="Explore a1b2c3d",
        is_subagent=True,
        phase="idle",
        requests=16,
        prompt_tokens=80112,
        reused_tokens=63004,
        reread_tokens=0,
        generated_tokens=2110,
        context_tokens=9300,
        started_at=at(280),
        last_at=at(240),
    )
    return main, explore


def detail(**changes: Any) -> SessionDetail:
    """The same session in full."""
    row = session()
    values: dict[str, Any] = {
        "session": row.session,
        "client": row.client,
        "origin": "header",
        "model": "qwen3-coder-30b",
        "max_tokens": 32000,
        "phase": row.phase,
        "tool": row.tool,
        "phase_s": row.phase_s,
        "started_at": row.started_at,
        "last_at": at(190),
        "turns": row.turns,
        "requests": row.requests,
        "failed": 0,
        "aborted": 1,
        "context_tokens": row.context_tokens,
        "window": ClientWindow(
            true_tokens=262144,
            used_ratio=0.1215,
            assumed_tokens=Estimated(262144),
            compacts_at_tokens=Estimated(229144),
            compactions=1,
            overflows=0,
            evidence="it asks for max_tokens 24,000, not its default: it was given settings, the "
            "window probably with them",
        ),
        "prompt_tokens": row.prompt_tokens,
        "reused_tokens": row.reused_tokens,
        "reread_tokens": row.reread_tokens,
        "generated_tokens": row.generated_tokens,
        "hit_ratio": row.hit_ratio,
        "tokens_per_s": Missing("nothing of it is in decode (client)"),
        "sustained_tokens_per_s": row.sustained_tokens_per_s,
        "busy_s": 104.9,
        "cost_usd": row.cost_usd,
        "usd_per_million": 0.4554,
        "ttft_s": (0.42, 0.31, 5.7, 0.29),
        "agents": agents(),
        "tools": (
            ToolSum(name="Bash", calls=22, failed=1, running=1, total_s=61.0, longest_s=12.0),
            ToolSum(name="Edit", calls=11, failed=0, running=0, total_s=4.4, longest_s=0.9),
            ToolSum(name="Task", calls=1, failed=0, running=0, total_s=41.0, longest_s=41.0),
        ),
        "timeline": timeline(),
        "forgotten_requests": 53,
        "losses": (loss(),),
        "removed": {"context_management": 57},
        "safeguards": False,
        "capturing": row.capturing,
    }
    return SessionDetail(**(values | changes))
