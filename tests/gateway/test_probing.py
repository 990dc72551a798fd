"""What is found out of an engine, by the answers that real ones give."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from a40console.gateway.dialect import Dialect
from a40console.gateway.probing import Dialects
from tests.gateway.stub import Received, Reply, StubEngine, until

Answer = tuple[int, Any]
MODELS = {"data": [{"id": "other", "max_model_len": 9}, {"id": "smollm2", "max_model_len": 32768}]}
MARK = ["<turn>"]


def words(body: dict[str, Any], *, merges: bool = False) -> list[str]:
    """A prompt: the marks and words of each turn; or later system turns moved to the head."""
    head, tokens = str(body.get("system", "")), []
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, list):
            if any(part["type"].startswith("image") for part in content):
                raise ValueError("not a multimodal model")
            content = " ".join(part["text"] for part in content)
        if message["role"] == "system" and merges:
            head += content
        else:
            tokens += [*MARK, message["role"], *content.split()]
    whole = [*MARK, "system", *head.split()] if head else []
    return [*whole, *tokens, *(MARK if body.get("add_generation_prompt", True) else ())]


class Engine:
    """Answers like one kind of engine."""

    version = "0.33.0"

    def __init__(self, *, merges: bool = False, refuses: bool = False) -> None:
        self.merges = merges
        self.refuses = refuses
        self.broken: Answer | None = None
        self.absent: dict[str, Answer] = {}

    async def __call__(self, received: Received, reply: Reply) -> None:
        status, body = self.broken or self.answer(received)
        await reply.whole(json.dumps(body).encode(), status)

    def answer(self, received: Received) -> Answer:
        path = received.target
        if path in self.absent:
            return self.absent[path]
        told = {"/v1/models": MODELS, "/version": {"version": self.version}}
        if path in told:
            return 200, told[path]
        body = received.json
        assert body["model"] == "smollm2"
        roles = [message["role"] for message in body["messages"]]
        if self.refuses and "system" in roles[1:]:
            return 400, {"error": {"message": "Unexpected role system\nsecond line"}}
        try:
            tokens = words(body, merges=self.merges)
        except ValueError as error:
            return 400, {"error": {"message": str(error)}}
        if path == "/v1/messages/count_tokens":
            return 200, {"input_tokens": len(tokens)}
        if path == "/tokenize":
            return 200, {"count": len(tokens), "tokens": tokens, "max_model_len": 32768}
        return 404, {"detail": "Not Found"}


NO_API: Answer = (404, {"detail": "Not Found"})
COUNT, TOKENIZE = "/v1/messages/count_tokens", "/tokenize"


async def found(engine: Engine, **changes: Any) -> Dialect:
    async with StubEngine(engine) as stub:
        return await Dialects().of(replace(stub.upstream, **changes))


async def test_a_newer_vllm_is_asked_natively() -> None:
    dialect = await found(Engine())
    assert dialect == Dialect(
        route="native",
        system_turns="keep",
        images=False,
        counting="messages",
        served_name="smollm2",
        max_model_len=32768,
        evidence=(
            "Its count_tokens answers, with 5 for a short prompt.",
            "A later system message keeps its place (25 tokens, 19 without).",
            "It reads no images.",
        ),
        running_usage=True,
        clamps=True,
    )


@pytest.mark.parametrize(
    ("version", "clamps"),
    [({"version": "0.27.1"}, False), ({"version": "0.32.0"}, True), ({}, False)],
)
async def test_an_older_engine_gets_limits_that_fit(version: Any, clamps: bool) -> None:
    engine = Engine()
    engine.absent["/version"] = (200, version)
    assert (await found(engine)).clamps is clamps
    assert (await found(engine, messages_route="translated")).clamps is clamps
    assert not (await found(engine, kind="sim")).clamps


async def test_a_vllm_that_moves_system_turns_to_the_head_gets_them_folded() -> None:
    dialect = await found(Engine(merges=True))
    assert (dialect.route, dialect.system_turns) == ("native", "fold")
    assert "moved to the head" in dialect.evidence[1]


async def test_an_engine_that_refuses_later_system_turns_gets_them_folded() -> None:
    dialect = await found(Engine(refuses=True))
    assert (dialect.route, dialect.system_turns) == ("native", "fold")
    assert "refused: Unexpected role system;" in dialect.evidence[1]


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (NO_API, "status 404: Not Found"),
        ((501, {"error": {"message": "not supported by the Rust frontend yet"}}), "Rust frontend"),
        ((405, None), "status 405"),
    ],
)
async def test_an_engine_without_the_api_is_translated(refusal: Answer, words: str) -> None:
    engine = Engine()
    engine.absent[COUNT] = refusal
    dialect = await found(engine)
    assert (dialect.route, dialect.counting) == ("translated", "tokenize")
    assert dialect.system_turns == "keep"
    assert words in dialect.evidence[0]


async def test_a_template_that_moves_system_turns_is_seen_in_the_tokens() -> None:
    engine = Engine(merges=True)
    engine.absent[COUNT] = NO_API
    assert (await found(engine)).system_turns == "fold"


async def test_an_engine_that_shows_nothing_is_asked_for_nothing() -> None:
    engine = Engine()
    engine.absent = {COUNT: NO_API, TOKENIZE: NO_API, "/v1/models": (500, None)}
    dialect = await found(engine, kind="foreign")
    assert dialect.route == "translated"
    assert (dialect.system_turns, dialect.images, dialect.counting) == ("fold", False, "none")
    assert dialect.max_model_len is None
    assert not dialect.running_usage


async def test_llamacpp_says_it_with_its_properties() -> None:
    class LlamaCpp(Engine):
        def answer(self, received: Received) -> Answer:
            if received.target == "/props":
                settings = {"n_ctx": 2048}
                return 200, {
                    "default_generation_settings": settings,
                    "modalities": {"vision": True},
                }
            return super().answer(received)

    dialect = await found(LlamaCpp(), kind="llamacpp")
    assert (dialect.route, dialect.images, dialect.max_model_len) == ("native", True, 2048)
    assert (dialect.results_first, dialect.schemas) == (False, False)


@pytest.mark.parametrize(
    ("version", "tells"),
    [("0.27.1", False), ("0.32.0", True), ("v1.0.0rc1", True), ("", False), (None, False)],
)
async def test_stop_sequences_go_where_the_one_that_matched_is_told(
    version: str | None, tells: bool
) -> None:
    engine = Engine()
    engine.version = version  # type: ignore[assignment]
    dialect = await found(engine)
    assert dialect.tells_stops is tells
    stopped = {"stop_sequences": ["END"]}
    assert dialect.for_body({}).route == "native"
    assert dialect.for_body(stopped).route == ("native" if tells else "translated")
    engine.version = "0.27.1"
    assert (await found(engine, messages_route="native")).for_body(stopped).route == "native"


@pytest.mark.parametrize("route", ["native", "translated"])
async def test_what_is_asked_for_is_done(route: str) -> None:
    dialect = await found(Engine(), messages_route=route)
    assert dialect.route == route
    assert dialect.evidence[0] == f"The setting messages_route asks for the {route} route."
    assert dialect.counting == ("messages" if route == "native" else "tokenize")


async def test_many_requests_wait_for_one_look() -> None:
    async with StubEngine(Engine()) as stub:
        dialects = Dialects()
        answers = await asyncio.gather(*(dialects.of(stub.upstream) for _ in range(20)))
        asked = len(stub.requests)
        await dialects.of(stub.upstream)
        assert len(stub.requests) == asked < 20
        assert len(set(map(id, answers))) == 1


async def test_another_run_is_looked_at_anew() -> None:
    engine = Engine()
    async with StubEngine(engine) as stub:
        told: list[Dialect] = []
        dialects = Dialects(on_found=told.append)
        first = await dialects.of(stub.upstream)
        engine.merges = True
        other = replace(stub.upstream, run_id="run-2")
        assert dialects.known(other) is None
        second = await dialects.of(other)
        assert (first.system_turns, second.system_turns) == ("keep", "fold")
        assert told == [first, second]


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("broken", [(503, {"error": {"message": "Loading model"}}), (429, None)])
async def test_a_failure_that_passes_is_repeated(broken: Answer) -> None:
    engine, clock = Engine(), Clock()
    engine.broken = broken
    async with StubEngine(engine) as stub:
        dialects = Dialects(clock=clock)
        meanwhile = await dialects.of(stub.upstream)
        assert (meanwhile.route, meanwhile.counting) == ("translated", "none")
        status = dialects.status(stub.upstream)
        assert (status.name, status.state) == ("messages API", "absent")
        assert str(broken[0]) in (status.reason or "")
        engine.broken = None
        assert (await dialects.of(stub.upstream)).route == "translated"  # not asked again so soon
        clock.now_s = 3.0
        assert (await dialects.of(stub.upstream)).route == "native"
        assert dialects.status(stub.upstream).state == "ok"


async def test_an_engine_that_is_gone_is_a_failure_that_passes() -> None:
    async with StubEngine(Engine()) as stub:
        upstream = stub.upstream
    dialects = Dialects()
    assert (await dialects.of(upstream)).counting == "none"
    assert "/v1/messages/count_tokens: " in (dialects.status(upstream).reason or "")


async def test_a_look_begins_without_a_request_and_is_told() -> None:
    async with StubEngine(Engine()) as stub:
        dialects = Dialects()
        assert dialects.status(None).state == "absent"
        dialects.look(None)
        dialects.look(stub.upstream)
        assert dialects.status(stub.upstream).reason == "the engine is being asked"
        await until(lambda: dialects.known(stub.upstream))
        reason = dialects.status(stub.upstream).reason or ""
        assert reason.startswith("native Messages API, system turns kept, no images, ")
        assert "keeps its place" in reason


async def test_a_client_that_leaves_does_not_end_the_look() -> None:
    entered = asyncio.Event()
    go_on = asyncio.Event()
    engine = Engine()

    async def slow(received: Received, reply: Reply) -> None:
        entered.set()
        await go_on.wait()
        await engine(received, reply)

    async with StubEngine(slow) as stub:
        dialects = Dialects()
        leaving = asyncio.create_task(dialects.of(stub.upstream))
        staying = asyncio.create_task(dialects.of(stub.upstream))
        await entered.wait()
        leaving.cancel()
        go_on.set()
        assert (await staying).route == "native"


def test_what_it_says_in_short() -> None:
    dialect = Dialect(
        route="translated",
        system_turns="fold",
        images=True,
        counting="tokenize",
        served_name="m",
        max_model_len=None,
        evidence=(),
    )
    assert dialect.says() == (
        "translated to chat, system turns folded, images, tokens counted by the engine's tokenizer"
    )
