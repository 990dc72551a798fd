"""Before real engines: a count is what a request with the same body is charged, to the token."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from a40console.gateway.probing import Dialects
from a40console.gateway.upstream import Upstream
from a40console.model.engine import MessagesRoute
from tests.gateway.asking import Known, assistant, recorded, result, system, text, use, user
from tests.gateway.stub import Gateway, call, gateway

COUNT, MESSAGES = "/v1/messages/count_tokens?beta=true", "/v1/messages?beta=true"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where, e.g. Rome"}},
    "required": ["city"],
}
TOOLS = [
    {"name": "get_weather", "description": "Weather of a city.", "input_schema": SCHEMA},
    {"name": "now", "description": "", "input_schema": {"type": "object", "properties": {}}},
]
CALLED = [user("Rome?"), assistant([text("Looking."), use("t1", "get_weather", {"city": "Rome"})])]
BODIES: dict[str, dict[str, Any]] = {
    "one text": {"messages": [user("Say hi to the sea.")]},
    "texts": {"messages": [user([text("One."), text("Two.")])]},
    "system": {"system": [text("x-anthropic-billing-header: cch=1;"), text("Be brief."),
                          text("Be kind.")], "messages": [user("hi")]},
    "turns": {"messages": [user("a"), system("noon"), assistant("b"), system("one"), user("c")]},
    "tools": {"tools": TOOLS, "messages": [user("Rome?")]},
    "results": {"tools": TOOLS, "messages": [*CALLED, user([result("t1", [text("Sun"),
                text("22 degrees")]), text("And now?")])]},
    "a system turn behind a result": {"tools": TOOLS, "messages": [*CALLED, user([result("t1",
                "Sun", is_error=True)]), system("noon")]},
    "thinking": {"thinking": {"type": "adaptive"}, "messages": [user("a"), assistant([
                {"type": "thinking", "thinking": "Hm.", "signature": "x"}, text("b")]), user("c")]},
    "foreign blocks": {"messages": [user([text("see"), {"type": "document", "source":
                {"type": "text", "data": "It rains."}}, {"type": "image", "source":
                {"type": "base64", "media_type": "image/png", "data": "aGk="}}])]},
    "other scripts": {"messages": [user("Grüße, 世界! Привет \U0001f600")]},
}  # fmt: skip
BLOCK_TOKENS = 128
"""vLLM's CPU build caches whole blocks of so many."""

SEAM_TOKENS = 16
"""The start of the answer, which the later prompt goes on from in its own way."""

RECORDED = ("cc_p_default_messages", "cc_tui_compact", "cc_p_after_malformed_tool_json")


def bodies() -> dict[str, dict[str, Any]]:
    made = {name: {"model": "any", "max_tokens": 1, **body} for name, body in BODIES.items()}
    for name in RECORDED:
        body, _, _ = recorded(name)
        made[name] = {**body, "max_tokens": 1, "stream": False}
    return made


async def ask(served: Gateway, path: str, body: dict[str, Any]) -> Any:
    async with call(served.port, path, body) as answer:
        return await answer.json()


async def charged(served: Gateway, body: dict[str, Any]) -> int:
    usage = (await ask(served, MESSAGES, body))["usage"]
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(part) or 0 for part in parts)


@pytest.mark.parametrize("name", bodies())
async def test_b14_b15_a_count_is_what_the_request_is_charged(
    real_engine: Upstream, name: str
) -> None:
    body = bodies()[name]
    async with gateway(real_engine, dialects=Dialects()) as served:
        counted = (await ask(served, COUNT, body))["input_tokens"]
        assert counted == await charged(served, body)
        assert counted > 5
        assert len(await served.ended()) == 1


@pytest.mark.parametrize("name", BODIES)
async def test_b15_by_the_tokenizer_as_well(real_engine: Upstream, name: str) -> None:
    if real_engine.kind != "vllm":
        pytest.skip("counts by its own route alone")
    dialect = await Dialects().of(real_engine)
    translated = Known(replace(dialect, route="translated", counting="tokenize"))
    body = {"model": "any", "max_tokens": 1, **BODIES[name]}
    async with gateway(real_engine, dialects=translated) as served:
        counted = (await ask(served, COUNT, body))["input_tokens"]
        assert counted == await charged(served, body)


async def test_b13_26_counts_at_once_leave_a_running_answer_its_pace(
    real_engine: Upstream,
) -> None:
    """The longest pause between two pieces of an answer, with the counts and without."""
    prompt = {"model": "any", "max_tokens": 120, "stream": True, "messages": [user("Count up.")]}
    tool = {"model": "any", "messages": [user("foo")], "tools": TOOLS}

    async def longest_pause_s(served: Gateway, counts: int) -> float:
        pauses: list[float] = []
        async with call(served.port, MESSAGES, prompt) as answer:
            asked = [asyncio.create_task(ask(served, COUNT, tool)) for _ in range(counts)]
            last_s = time.monotonic()
            async for _ in answer.chunks():
                pauses.append(time.monotonic() - last_s)
                last_s = time.monotonic()
            answers = await asyncio.gather(*asked)
        assert len({str(one) for one in answers}) <= 1
        return max(pauses)

    async with gateway(real_engine, dialects=Dialects()) as served:
        await longest_pause_s(served, 0)
        alone_s = await longest_pause_s(served, 0)
        beside_s = await longest_pause_s(served, 26)
    assert beside_s < alone_s + 1.0


@pytest.mark.parametrize("route", ["native", "translated"])
async def test_b42_a_limit_beyond_the_window_is_no_fault(
    real_engine: Upstream, route: MessagesRoute
) -> None:
    """Claude Code asks for 32,000 tokens whatever the window is; older vLLM refuses that."""
    upstream = replace(real_engine, messages_route=route)
    body = {"max_tokens": 32_000, "stream": True, "messages": [user("Count up. " * 200)]}
    async with (
        gateway(upstream, dialects=Dialects()) as served,
        call(served.port, MESSAGES, body) as answer,
    ):
        assert answer.status == 200
        first = b""
        async for chunk in answer.chunks():
            first += chunk
            if b"content_block_delta" in first:
                break
        answer.leave()
    assert b"message_start" in first
    assert b"event: error" not in first


async def test_b1_b5_b8_a_turn_finds_the_one_before_in_the_cache(real_engine: Upstream) -> None:
    """Nonce, reminders and a system turn of its own each time: what was read stays read."""
    left = "<total_tokens>{} tokens left</total_tokens>"
    billing = "x-anthropic-billing-header: cc_version=2.1.100; cch={:05x};"
    turns: list[dict[str, Any]] = []

    async def turn(served: Gateway, number: int) -> tuple[int, int]:
        turns.extend([user(f"{number}: say yes."), system(f"It is {number} o'clock.")])
        turns.append(system(left.format(9000 - number)))
        body = {
            "max_tokens": 1,
            "system": [text(billing.format(number)), text("Be brief and kind. " * 80)],
            "tools": TOOLS,
            "messages": turns,
        }
        usage = (await ask(served, MESSAGES, body))["usage"]
        turns.append(assistant("yes"))
        cached = usage.get("cache_read_input_tokens") or 0
        return usage["input_tokens"] + cached, cached

    async with gateway(real_engine, dialects=Dialects()) as served:
        before, _ = await turn(served, 1)
        for number in (2, 3, 4):
            prompt, cached = await turn(served, number)
            assert before - cached < BLOCK_TOKENS + SEAM_TOKENS
            before = prompt
