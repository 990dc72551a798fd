"""Which models there are, in the shape of the caller's API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a40console.gateway.anthropic.catalogue import alias_of
from a40console.gateway.hold import HoldLimits
from tests.gateway.asking import FOLDING, Known
from tests.gateway.holding import closed, switched
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway, until

VERSION = {"anthropic-version": "2023-06-01"}
ENGINES: dict[str, Any] = {
    "object": "list",
    "data": [{"id": "smollm2", "object": "model", "max_model_len": 2048}],
}


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
            assert await answer.json() == {**ENGINES["data"][0], "id": "gpt-9"}


async def test_where_the_engine_does_not_list_the_served_model_no_other_name_is_one() -> None:
    async with (
        StubEngine(engines_list, served_name="a-router") as engine,
        gateway(engine.upstream) as served,
    ):
        async with call(served.port, "/v1/models/smollm2") as answer:
            assert answer.status == 200
        async with call(served.port, "/v1/models/gpt-9") as answer:
            error = (await answer.json())["error"]
    assert (answer.status, error["type"]) == (404, "not_found_error")
    assert "a-router serves" in error["message"]


ASKED = pytest.mark.parametrize(
    ("path", "headers", "told"),
    [
        ("/v1/models", {}, b"max_model_len"),
        ("/v1/models/gpt-9", {}, b"gpt-9"),
        ("/v1/models?limit=1000", VERSION, b"served by a40console"),
        ("/v1/models/claude-sonnet-5", VERSION, b"claude-sonnet-5"),
        ("/version", {}, b"0.32"),
    ],
)


async def lists_and_tells(received: Received, reply: Reply) -> None:
    if received.target == "/version":
        await reply.whole(b'{"version": "0.32"}')
    else:
        await engines_list(received, reply)


@ASKED
async def test_while_the_engine_is_switched_the_question_waits_for_the_next_one(
    path: str, headers: dict[str, str], told: bytes
) -> None:
    gate = closed()
    async with (
        StubEngine(lists_and_tells) as engine,
        gateway(None, dialects=Known(FOLDING), gate=gate) as served,
        call(served.port, path, headers=headers, begin=False) as answer,
    ):
        await until(lambda: gate.polls == 1)
        switched(served, gate, engine)
        await answer.begin()
        assert answer.status == 200
        assert told in await answer.body()
        await until(lambda: gate.under_way == 0)
    assert gate.held_bytes == served.budget.held_bytes == 0


@ASKED
async def test_an_engine_that_serves_answers_whoever_is_held(
    path: str, headers: dict[str, str], told: bytes
) -> None:
    gate = closed(HoldLimits(requests=0))
    async with (
        StubEngine(lists_and_tells) as engine,
        gateway(engine.upstream, dialects=Known(FOLDING), gate=gate) as served,
        call(served.port, path, headers=headers) as answer,
    ):
        assert answer.status == 200
        assert told in await answer.body()


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/smollm2", "/version"])
async def test_an_engine_that_is_stopped_while_it_is_asked_is_not_the_last(path: str) -> None:
    async def cut(received: Received, reply: Reply) -> None:
        served.state.upstream = None
        reply.kill()

    gate = closed()
    async with (
        StubEngine(cut) as first,
        StubEngine(lists_and_tells, run_id="run-2") as second,
        gateway(first.upstream, gate=gate) as served,
        call(served.port, path, begin=False) as answer,
    ):
        await until(lambda: gate.polls == 1)
        switched(served, gate, second)
        await answer.begin()
        assert answer.status == 200
        await answer.body()


@pytest.mark.parametrize("path", ["/v1/models", "/version"])
async def test_who_leaves_meanwhile_frees_the_place(path: str) -> None:
    gate = closed()
    async with (
        gateway(None, gate=gate) as served,
        call(served.port, path, begin=False) as answer,
    ):
        await until(lambda: gate.polls == 1)
        answer.leave()
        await until(lambda: gate.polls == 0)


async def test_without_an_engine_both_are_told_so() -> None:
    async with gateway(None) as served:
        async with call(served.port, "/v1/models", headers=VERSION) as answer:
            body = await answer.json()
        assert (answer.status, body["error"]["type"]) == (503, "overloaded_error")
        async with call(served.port, "/v1/models") as answer:
            body = await answer.json()
        assert (answer.status, body["error"]["code"]) == (503, 503)
        assert "a40console engine start" in body["error"]["message"]
