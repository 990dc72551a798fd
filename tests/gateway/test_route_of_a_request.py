"""A request that the engine's own Messages API would not honour goes to its chat completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a40console.gateway.dialect import Dialect
from a40console.gateway.upstream import Upstream
from tests.gateway.conversations import CALLED, FORCED, PLAIN, asked
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway

USAGE = {"prompt_tokens": 5, "completion_tokens": 2}
CHAT = {
    "choices": [
        {
            "message": {"content": "Yes"},
            "finish_reason": "stop",
            "stop_reason": "END",
        }
    ],
    "usage": USAGE,
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "Yes"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 5, "output_tokens": 2},
}
NATIVE = Dialect(
    route="native",
    system_turns="keep",
    images=False,
    counting="messages",
    served_name="smollm2",
    max_model_len=4096,
    evidence=(),
    results_first=False,
    schemas=False,
    tells_stops=False,
)


class Known:
    """Knows the dialect without asking."""

    async def of(self, upstream: Upstream) -> Dialect:
        return NATIVE


async def both_apis(received: Received, reply: Reply) -> None:
    native = received.target.startswith("/v1/messages")
    await reply.whole(json.dumps(MESSAGE if native else CHAT).encode())


async def asked_of_the_engine(body: dict[str, Any]) -> tuple[Received, dict[str, Any]]:
    async with (
        StubEngine(both_apis) as stub,
        gateway(stub.upstream, dialects=Known()) as served,
        call(served.port, "/v1/messages?beta=true", body) as answer,
    ):
        told = await answer.json()
        (received,) = stub.requests
        return received, told


@pytest.mark.parametrize(
    ("body", "target"),
    [
        (PLAIN["a text"], "/v1/messages?beta=true"),
        (FORCED["an answer in JSON"], "/v1/chat/completions"),
        (PLAIN["a stop sequence"], "/v1/chat/completions"),
    ],
)
async def test_where_it_goes(body: dict[str, Any], target: str) -> None:
    received, told = await asked_of_the_engine(body)
    assert received.target == target
    assert told["content"] == [{"type": "text", "text": "Yes"}]
    stopped = "stop_sequence" if target.endswith("completions") else "end_turn"
    assert told["stop_reason"] == stopped


async def test_results_stay_before_the_words_that_follow_them() -> None:
    received, _ = await asked_of_the_engine(asked(*CALLED))
    turns = received.json["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "user"]
    assert {block["type"] for block in turns[2]["content"]} == {"tool_result"}
