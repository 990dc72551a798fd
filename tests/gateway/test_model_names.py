"""An OpenAI client's name for the model, where the engine that serves has another one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a40console.gateway.hold import AdmissionGate
from a40console.gateway.model_names import ModelNames
from tests.gateway.holding import CHAT, COMPLETIONS, WHY, asked, is_held, serve
from tests.gateway.messages_asked import ASK, MESSAGES, STREAM
from tests.gateway.stub import Received, Reply, StubEngine, call, gateway


class Listing:
    """An engine that lists its models, and answers 404 to every other name, as vLLM does."""

    def __init__(self, *names: str, status: int = 200) -> None:
        self.names = list(names)
        self.status = status
        self.lists = 0
        self.asked: list[str] = []

    async def __call__(self, received: Received, reply: Reply) -> None:
        if received.target == "/v1/models":
            self.lists += 1
            data = {"object": "list", "data": [{"id": name} for name in self.names]}
            await reply.whole(json.dumps(data).encode(), self.status)
            return
        name = received.json["model"]
        self.asked.append(name)
        if name in self.names:
            await serve(received, reply)
        else:
            await reply.whole(b'{"error": {"message": "it does not exist", "code": 404}}', 404)


class Clock:
    """Seconds that a test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {**STREAM, "n": 1}),
        (CHAT, {**ASK, "n": 1}),
        (COMPLETIONS, {"prompt": "a", "n": 1}),
        (COMPLETIONS, {"prompt": "a", "n": 1, "stream": True}),
    ],
)
async def test_a_name_that_the_engine_does_not_list_is_the_served_one_and_told_once(
    path: str, body: dict[str, Any], held: bool
) -> None:
    told: list[tuple[str | None, str]] = []
    names = ModelNames(lambda passage, served: told.append((passage.model, served)))
    gate, engine = AdmissionGate(), Listing("new")
    async with (
        StubEngine(engine, served_name="new") as stub,
        gateway(None if held else stub.upstream, gate=gate, names=names) as served,
    ):
        if held:
            gate.close(WHY)
        async with asked(served, path, {**body, "model": "old"}) as answer:
            if held:
                await is_held(served, gate)
                served.state.upstream = stub.upstream
                gate.open()
            await answer.begin()
            assert answer.status == 200
            await answer.body()
        for name in ("old", "gpt-9", "new"):
            async with call(served.port, path, {**body, "model": name}) as answer:
                assert answer.status == 200
                await answer.body()
    assert engine.asked == ["new"] * 4
    assert stub.requests[-1].json["n"] == 1
    assert told == [("old", "new"), ("gpt-9", "new")]
    assert engine.lists == 1


async def test_a_name_that_the_engine_lists_is_left_however_it_was_used_before() -> None:
    engine = Listing("new", "old", "an-adapter")
    async with (
        StubEngine(engine, served_name="new") as stub,
        gateway(stub.upstream, names=ModelNames()) as served,
    ):
        for name in ("old", "an-adapter", "new", "old"):
            async with call(served.port, CHAT, {**ASK, "model": name}) as answer:
                assert answer.status == 200
                await answer.body()
    assert engine.asked == ["old", "an-adapter", "new", "old"]
    assert engine.lists == 1


async def test_an_adapter_that_is_loaded_meanwhile_is_found() -> None:
    clock, engine = Clock(), Listing("new")
    async with (
        StubEngine(engine, served_name="new") as stub,
        gateway(stub.upstream, names=ModelNames(clock=clock)) as served,
    ):
        for at_s in (0.0, 1.0, 20.0):
            clock.now_s = at_s
            async with call(served.port, CHAT, {**ASK, "model": "adapter"}) as answer:
                await answer.body()
            engine.names = ["new", "adapter"]
    assert engine.asked == ["new", "new", "adapter"]


async def test_the_list_is_each_engines_own() -> None:
    first, second = Listing("a", "b"), Listing("b")
    async with (
        StubEngine(first, served_name="a") as one,
        StubEngine(second, served_name="b", run_id="run-2") as other,
        gateway(one.upstream, names=ModelNames(clock=Clock())) as served,
    ):
        for upstream in (one.upstream, other.upstream):
            served.state.upstream = upstream
            for name in ("a", "c"):
                async with call(served.port, CHAT, {**ASK, "model": name}) as answer:
                    assert answer.status == 200
                    await answer.body()
    assert (first.asked, second.asked) == (["a", "a"], ["b", "b"])


@pytest.mark.parametrize(
    "engine", [Listing("other", status=200), Listing("new", status=500), Listing()]
)
async def test_where_the_list_does_not_help_the_name_is_left(engine: Listing) -> None:
    engine.asked.clear()
    async with (
        StubEngine(engine, served_name="served") as stub,
        gateway(stub.upstream, names=ModelNames()) as served,
        call(served.port, CHAT, {**ASK, "model": "old"}) as answer,
    ):
        assert answer.status == 404
    assert engine.asked == ["old"]


async def test_a_list_that_fails_once_costs_no_request_its_name() -> None:
    """Neither the list of before is given up for it, nor the next request answered without one."""
    clock, engine = Clock(), Listing("new")
    async with (
        StubEngine(engine, served_name="new") as stub,
        gateway(stub.upstream, names=ModelNames(clock=clock)) as served,
    ):
        for at_s, status, expected in (
            (0, 503, 404),
            (0, 200, 200),
            (20, 503, 200),
            (20, 200, 200),
        ):
            clock.now_s, engine.status = at_s, status
            async with call(served.port, CHAT, {**ASK, "model": "old"}) as answer:
                assert answer.status == expected
                await answer.body()
    assert engine.asked == ["old", "new", "new", "new"]


@pytest.mark.parametrize("model", [None, 7, ["a"]])
async def test_what_is_no_name_is_the_engines_to_refuse(model: object) -> None:
    engine = Listing("new")
    async with (
        StubEngine(engine, served_name="new") as stub,
        gateway(stub.upstream, names=ModelNames()) as served,
        call(served.port, CHAT, {**ASK, "model": model}) as answer,
    ):
        assert answer.status in {404, 500}
    assert engine.lists == 0


async def test_messages_take_any_name_as_before() -> None:
    engine = Listing("smollm2")
    async with (
        StubEngine(engine) as stub,
        gateway(stub.upstream, names=ModelNames()) as served,
        call(served.port, MESSAGES, {**ASK, "model": "gpt-9"}) as answer,
    ):
        assert answer.status == 200
        assert (await answer.json())["model"] == "gpt-9"
    assert (engine.asked, engine.lists) == (["smollm2"], 0)
