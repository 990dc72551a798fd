"""Tokens counted by the engine, off the meter, a few at once, and honest where it cannot be."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.asking import FOLDING, Known, recorded, system, text, user
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway

PATH = "/v1/messages/count_tokens?beta=true"
TOOL = {"name": "Bash", "description": "Runs", "input_schema": {"type": "object"}}
BODY: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "system": [text("x-anthropic-billing-header: cch=1;"), text("Head.")],
    "messages": [user("hi"), system("noon")],
    "tools": [TOOL],
    "max_tokens": 5,
    "metadata": {"user_id": "somebody"},
}
TOKENIZING = replace(FOLDING, route="translated", counting="tokenize")


async def counted(received: Received, reply: Reply) -> None:
    await reply.whole(b'{"input_tokens": 42, "count": 43, "tokens": [1, 2]}')


async def test_b14_b15_the_engine_counts_the_whole_prompt_by_its_own_route() -> None:
    async with (
        StubEngine(counted) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
    ):
        async with call(served.port, PATH, BODY) as answer:
            assert (answer.status, await answer.json()) == (200, {"input_tokens": 42})
        (request,) = engine.requests
        assert request.target == "/v1/messages/count_tokens"
        assert request.json == {
            "model": "smollm2",
            "system": "Head.",
            "messages": [user([text("hi"), text("<system-reminder>\nnoon\n</system-reminder>")])],
            "tools": [TOOL],
        }
        assert served.meter.live() == served.meter.finished() == ()


async def test_b15_an_engine_without_the_route_counts_by_its_tokenizer() -> None:
    async with (
        StubEngine(counted) as engine,
        gateway(engine.upstream, dialects=Known(TOKENIZING)) as served,
    ):
        async with call(served.port, PATH, BODY) as answer:
            assert await answer.json() == {"input_tokens": 43}
        (request,) = engine.requests
        assert request.target == "/tokenize"
        assert request.json["add_generation_prompt"] is True
        assert [message["role"] for message in request.json["messages"]] == ["system", "user"]
        assert request.json["tools"][0]["function"]["name"] == "Bash"


@pytest.mark.parametrize("name", ["cc_tui_count_tokens_messages", "cc_tui_count_tokens_tool"])
async def test_b13_b16_what_context_asks_is_counted_as_it_stands(name: str) -> None:
    body, _, _ = recorded(name)
    async with (
        StubEngine(counted) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
        call(served.port, PATH, body) as answer,
    ):
        assert await answer.json() == {"input_tokens": 42}
        assert engine.requests[0].json["messages"] == body["messages"]


async def test_26_at_once_reach_the_engine_two_at_a_time() -> None:
    under_way, most = 0, 0

    async def slowly(received: Received, reply: Reply) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        await reply.whole(b'{"input_tokens": 7}')

    async with (
        StubEngine(slowly) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
    ):

        async def one() -> Any:
            async with call(served.port, PATH, BODY) as answer:
                return await answer.json()

        answers = await asyncio.gather(*(one() for _ in range(26)))
    assert answers == [{"input_tokens": 7}] * 26
    assert most == 2


@pytest.mark.parametrize(
    ("status", "said", "told", "kind"),
    [
        (503, {"error": {"message": "The engine is currently busy"}}, 529, "overloaded_error"),
        (400, {"error": {"message": "This model's maximum context length is 2048 tokens. However, "
         "your prompt contains 3000 input tokens"}}, 400, "invalid_request_error"),
        (500, {"error": {"message": "boom"}}, 500, "api_error"),
        (200, {"something": "else"}, 502, "api_error"),
    ],
)  # fmt: skip
async def test_what_the_engine_says_instead_is_told_in_shape(
    status: int, said: dict[str, Any], told: int, kind: str
) -> None:
    async def refuses(received: Received, reply: Reply) -> None:
        await reply.whole(json.dumps(said).encode(), status)

    async with (
        StubEngine(refuses) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
        call(served.port, PATH, BODY) as answer,
    ):
        body = await answer.json()
    assert (answer.status, body["type"], body["error"]["type"]) == (told, "error", kind)


async def test_b43_a_window_that_cannot_hold_the_prompt_is_told_in_words_to_compact_on() -> None:
    said = (
        "This model's maximum context length is 4096 tokens. However, your prompt contains at "
        "least 4097 input tokens, which exceeds this limit."
    )

    async def refuses(received: Received, reply: Reply) -> None:
        await reply.whole(json.dumps({"error": {"message": said}}).encode(), 400)

    body, _, _ = recorded("cc_p_default_messages")
    async with (
        StubEngine(refuses) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
        call(served.port, PATH, body) as answer,
    ):
        error = (await answer.json())["error"]
    assert (answer.status, error["type"]) == (400, "invalid_request_error")
    assert error["message"].startswith("prompt is too long: ")


async def test_an_engine_that_is_not_there_or_cannot_count_is_told_in_shape() -> None:
    async with gateway(None) as served, call(served.port, PATH, BODY) as answer:
        body = await answer.json()
        assert (answer.status, body["error"]["type"]) == (503, "overloaded_error")
        assert answer.headers["retry-after"] == "30"
    blind = Known(replace(FOLDING, counting="none"))
    async with (
        StubEngine(counted) as engine,
        gateway(engine.upstream, dialects=blind) as served,
        call(served.port, PATH, BODY) as answer,
    ):
        body = await answer.json()
        assert (answer.status, body["error"]["type"]) == (404, "not_found_error")
        assert engine.requests == []
    async with StubEngine(counted) as engine:
        upstream = engine.upstream
    async with (
        gateway(upstream, dialects=Known(FOLDING)) as served,
        call(served.port, PATH, BODY) as answer,
    ):
        body = await answer.json()
        assert (answer.status, body["error"]["type"]) == (503, "overloaded_error")


async def test_a_body_that_is_none_is_refused_unasked() -> None:
    async with (
        StubEngine(counted) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
        call(served.port, PATH, b'{"messages": ') as answer,
    ):
        body = await answer.json()
        assert (answer.status, body["error"]["type"]) == (400, "invalid_request_error")
        assert engine.requests == []
        assert served.budget.held_bytes == 0
