"""A machine with several sessions at work, for screens and tests: each in another state."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from a40console.model.figures import Estimated, Missing
from a40console.model.session import SessionDetail, SessionRequest, ToolSum
from a40console.model.snapshot import Session, Snapshot
from tests import make_session as one
from tests import make_snapshot as make
from tests.make_snapshot import at

LONG = "c3d21f08-0a6b-4f1e-8f0a-0b9d1c2e3f40"
SHARED = {each.name for each in fields(Session)} & {each.name for each in fields(SessionDetail)}
UNTOLD = Missing("the engine did not tell")


def several() -> tuple[Session, ...]:
    """In decode and captured, at its client's tool, with a long name, of an OpenAI client, idle."""
    decode = one.session(
        session="1a2b3c4d-5d1e-4b8a-9f60-2f8a1c7e4b11",
        phase="decode",
        tool=one.NO_TOOL,
        phase_s=4.2,
        turns=128,
        requests=160,
        context_tokens=201_844,
        reread_tokens=0,
        generated_tokens=128_110,
        tokens_per_s=412.0,
        ttft_last_s=0.31,
        cost_usd=1.284,
        last_at=at(4),
        capturing=True,
    )
    named = one.session(
        session=LONG,
        tool="mcp__github__create_pull_request_review",
        phase_s=12.0,
        turns=7,
        requests=9,
        context_tokens=Estimated(9_100),
        compacts_at_tokens=Missing("only Claude Code's window can be told"),
        client="a-client-with-a-long-name",
        cost_usd=0.0041,
    )
    plain = one.session(
        session="nightly-eval",
        client="openai-python",
        phase="prefill",
        tool=one.NO_TOOL,
        phase_s=1.1,
        turns=3,
        requests=3,
        context_tokens=UNTOLD,
        hit_ratio=UNTOLD,
        reread_tokens=Missing("its prompt is not outlined"),
        sustained_tokens_per_s=Missing("the engine had no request of it yet"),
        compacts_at_tokens=Missing("only Claude Code's window can be told"),
        ttft_last_s=Missing("no turn of it has begun to answer yet"),
        ttft_median_s=Missing("no turn of it has begun to answer yet"),
    )
    idle = one.session(
        session="client-91ac02de",
        phase="idle",
        tool=one.NO_TOOL,
        phase_s=5400.0,
        turns=12,
        requests=14,
        context_tokens=88_002,
    )
    return decode, one.session(), named, plain, idle


def long_timeline(turns: int = 40) -> tuple[SessionRequest, ...]:
    """Turn after turn with sub-agents, a loss, a retry, a summary, a failure, the last live."""
    rows: list[SessionRequest] = []
    for turn in range(1, turns):
        values: dict[str, Any] = {
            "request_id": f"a40-{turn:04d}",
            "turn": turn,
            "at": at(4.0 + 37.0 * (turns - turn)),
            "client_s": 0.4 + 3.1 * (turn % 7),
            "prefill_s": 0.29 + 0.05 * (turn % 3),
            "decode_s": 1.0 + 1.7 * (turn % 5),
            "prompt_tokens": 20_000 + 4_500 * turn,
            "reused_tokens": 19_800 + 4_400 * turn,
            "generated_tokens": 120 + 97 * (turn % 9),
            "tools": (one.call(name=("Bash", "Edit", "Read", "Grep")[turn % 4]),),
        }
        rows.append(one.request(**values))
        if turn % 9 == 4:
            calls = (one.call(name="Grep"), one.call(name="Grep"), one.call(name="Read"))
            child = one.request(
                **(values | {"request_id": f"a40-{turn:04d}-x", "agent": "Explore a1b2c3d"}),
            )
            rows.append(replace(child, prompt_tokens=9_210, reused_tokens=8_800, tools=calls))
    rows[-3] = replace(
        rows[-3],
        loss=one.loss(),
        reused_tokens=14_112,
        reread_tokens=Estimated(16_400),
        prefill_s=5.6,
        ttft_s=5.7,
    )
    rows[-5] = replace(rows[-5], repeats=True, tools=(), finish_reason="end_turn")
    rows[-7] = replace(rows[-7], purpose="compaction", tools=(), finish_reason="end_turn")
    rows[-9] = replace(rows[-9], client_s=4_000.0, finish_reason="aborted", tools=())
    live = one.live_request(request_id="a40-live", turn=turns, prompt_tokens=201_204)
    return (*rows, replace(live, prefill_s=0.3, queue_s=0.0))


def details() -> dict[str, SessionDetail]:
    """Each of them in full; the first has most to tell."""
    found = {}
    for row in several():
        changes = {name: getattr(row, name) for name in SHARED}
        found[row.session] = one.detail(**changes)
    first = several()[0].session
    many = (
        *one.detail().tools,
        ToolSum(
            name="mcp__github__create_pull_request_review",
            calls=3,
            failed=2,
            running=0,
            total_s=312.0,
            longest_s=204.0,
        ),
        ToolSum(
            name="WebFetch",
            calls=1,
            failed=0,
            running=1,
            total_s=Missing("under way"),
            longest_s=Missing("under way"),
        ),
    )
    losses = (
        one.loss(kind="compacted", cause="the client summed its history up", remedy="", turn=31),
        one.loss(
            kind="evicted",
            block=None,
            cause="the same prompt went on, but the engine had it no more",
            turn=35,
        ),
        one.loss(),
    )
    found[first] = replace(
        found[first],
        timeline=long_timeline(),
        tools=many,
        losses=losses,
        window=replace(one.detail().window, used_ratio=0.77),
        removed={"billing header": 160, "token reminder": 97, "context_management": 160},
    )
    return found


def snapshot(**changes: Any) -> Snapshot:
    """The busy machine with these sessions; its slots belong to the first and the fourth."""
    return make.snapshot(**({"sessions": several()} | changes))
