"""Both routes before the simulated engine, which says what it is told and may lack the API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from a40console.gateway.model_names import ModelNames
from a40console.gateway.probing import Dialects
from a40console.gateway.upstream import Upstream
from a40console.model.engine import Endpoint
from tests.gateway.both_routes import answer, counts, four
from tests.gateway.conversations import CLOCK, PLAIN, WEATHER, asked, user
from tests.gateway.stub import call, gateway
from tests.sim.engine_process import SimProcess, sim_process

SCRIPT = [
    {
        "when": "two calls",
        "say": [
            {"thinking": "Both at once, I think."},
            {"text": "I look."},
            {"tool": "get_weather", "input": {"city": "Rome", "note": 'a "quoted" word'}},
            {"tool": "get_time", "input": {}},
        ],
    },
    {"when": "only a call", "say": [{"tool": "get_weather", "input": {"city": "Oslo"}}]},
    {"when": "words", "say": [{"text": "Just these words."}]},
]
TOOLS = [WEATHER, CLOCK]
CASES = {
    "thoughts, words and two calls": asked(user("two calls"), max_tokens=200, tools=TOOLS),
    "a call alone": asked(user("only a call"), max_tokens=200, tools=TOOLS),
    "words alone": asked(user("words"), max_tokens=200),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimProcess]:
    script: Path = tmp_path_factory.mktemp("script") / "script.json"
    script.write_text(json.dumps(SCRIPT))
    words = ("--served-model-name", "sim", "--speed", "50", "--script", str(script))
    with sim_process(*words) as made:
        yield made


def upstream(engine: SimProcess) -> Upstream:
    return Upstream(Endpoint("http://engine", str(engine.socket)), "sim", "sim", False, "run-1")


def user_says(words: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": words}]}


def said(message: dict[str, Any]) -> dict[str, Any]:
    """What was answered; the simulation writes a prompt with tools as each API words them."""
    return {**message, "usage": message["usage"]["output_tokens"]}


@pytest.mark.parametrize("name", CASES)
async def test_the_same_answer(engine: SimProcess, name: str) -> None:
    first, *others = await four(upstream(engine), CASES[name])
    for other in others:
        assert said(other) == said(first)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_a_name_that_the_engine_refuses_is_the_served_one_through_the_gateway(
    engine: SimProcess, path: str
) -> None:
    body = {"model": "gpt-9", "max_tokens": 5, "prompt": "words", **user_says("words")}
    assert engine.http.post(path, json=body).status_code == 404
    async with gateway(upstream(engine), names=ModelNames()) as served:
        for asked_by in ("gpt-9", "sim"):
            async with call(served.port, path, {**body, "model": asked_by}) as told:
                assert told.status == 200
                assert (await told.json())["model"] == "sim"


async def test_two_calls_arrive_whole(engine: SimProcess) -> None:
    message = (await four(upstream(engine), CASES["thoughts, words and two calls"]))[0]
    assert message["content"] == [
        {"type": "thinking", "thinking": "Both at once, I think."},
        {"type": "text", "text": "I look."},
        {
            "type": "tool_use",
            "name": "get_weather",
            "input": {"city": "Rome", "note": 'a "quoted" word'},
        },
        {"type": "tool_use", "name": "get_time", "input": {}},
    ]
    assert message["stop_reason"] == "tool_use"


async def test_an_engine_without_the_api_serves_it_all_the_same(engine: SimProcess) -> None:
    body = CASES["thoughts, words and two calls"]
    expected = (await four(upstream(engine), body))[0]
    counted = await counts(upstream(engine), PLAIN["several turns"])
    faults = {"authorization": "Bearer plugin-token"}
    engine.http.post("/sim/v1/faults", json={"no_messages": ""}, headers=faults)
    try:
        assert engine.http.post("/v1/messages", json=body).status_code == 404
        dialects = Dialects()
        dialect = await dialects.of(upstream(engine))
        assert (dialect.route, dialect.counting) == ("translated", "tokenize")
        assert dialect.system_turns == "keep"
        async with gateway(upstream(engine), dialects=dialects) as served:
            for stream in (False, True):
                found = await answer(served.port, body, stream=stream)
                assert said(found) == said(expected)
        assert await counts(upstream(engine), PLAIN["several turns"]) == counted
    finally:
        engine.http.post("/sim/v1/faults", json={"no_messages": None}, headers=faults)
