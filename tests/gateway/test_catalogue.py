"""Which models there are, in the shape of the caller's API."""

from __future__ import annotations

import json

from a40console.gateway.anthropic.catalogue import alias_of
from tests.gateway.asking import FOLDING, Known
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway

VERSION = {"anthropic-version": "2023-06-01"}
ENGINES = {"object": "list", "data": [{"id": "smollm2", "object": "model", "max_model_len": 2048}]}


async def engines_list(received: Received, reply: Reply) -> None:
    await reply.whole(json.dumps(ENGINES).encode())


async def test_anthropics_callers_get_the_served_model_in_their_shape() -> None:
    async with (
        StubEngine(engines_list) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
    ):
        async with call(served.port, "/v1/models?limit=1000", headers=VERSION) as answer:
            page = await answer.json()
        assert page["data"] == [
            {
                "type": "model",
                "id": "smollm2",
                "display_name": "smollm2",
                "description": "smollm2, served by a40console, window 32,768 tokens",
                "created_at": "1970-01-01T00:00:00Z",
                "max_input_tokens": 32_768,
            }
        ]
        assert (page["has_more"], page["first_id"], page["last_id"]) == (
            False,
            "smollm2",
            "smollm2",
        )
        assert engine.requests == []


async def test_claude_codes_discovery_finds_a_name_that_it_keeps() -> None:
    headers = {**VERSION, "user-agent": "claude-code/2.1.332"}
    async with (
        StubEngine(engines_list) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
        call(served.port, "/v1/models?limit=1000", headers=headers) as answer,
    ):
        data = (await answer.json())["data"]
    assert [entry["id"] for entry in data] == ["smollm2", "claude-local-smollm2"]
    assert data[1]["display_name"] == "smollm2"
    assert alias_of("Org/Qwen3.6-27B_AWQ") == "claude-local-org-qwen3.6-27b-awq"


async def test_every_name_is_one_of_the_served_model_to_anthropics_callers() -> None:
    async with (
        StubEngine(engines_list) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING)) as served,
        call(served.port, "/v1/models/claude-sonnet-5", headers=VERSION) as answer,
    ):
        entry = await answer.json()
    assert (answer.status, entry["id"], entry["display_name"]) == (
        200,
        "claude-sonnet-5",
        "smollm2",
    )


async def test_openais_callers_get_the_engines_own_list() -> None:
    async with StubEngine(engines_list) as engine, gateway(engine.upstream) as served:
        async with call(served.port, "/v1/models") as answer:
            assert await answer.json() == ENGINES
        async with call(served.port, "/v1/models/smollm2") as answer:
            assert await answer.json() == ENGINES["data"][0]
        async with call(served.port, "/v1/models/gpt-9") as answer:
            error = (await answer.json())["error"]
        assert (answer.status, error["type"]) == (404, "not_found_error")
        assert "smollm2 serves" in error["message"]


async def test_without_an_engine_both_are_told_so() -> None:
    async with gateway(None) as served:
        async with call(served.port, "/v1/models", headers=VERSION) as answer:
            body = await answer.json()
        assert (answer.status, body["error"]["type"]) == (503, "overloaded_error")
        async with call(served.port, "/v1/models") as answer:
            body = await answer.json()
        assert (answer.status, body["error"]["code"]) == (503, 503)
        assert "a40console engine start" in body["error"]["message"]
