"""A request that the operator has the engine end: a cut answer never looks like a whole one."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from a40console.errors import ConsoleError, Exit
from a40console.gateway.hold import AdmissionGate
from a40console.gateway.refusals import ENDED_BY_OPERATOR
from tests.gateway.holding import CHAT, serve, whole_answer
from tests.gateway.messages_asked import ASK, BOTH, MESSAGES, STREAM, chat
from tests.gateway.stub import (
    Answer,
    Gateway,
    Received,
    Reply,
    Speaks,
    StubEngine,
    call,
    capture,
    events_of,
    gateway,
    until,
)
from tests.gateway.wire import read_stream

CALL = {"index": 0, "id": "c1", "function": {"name": "Bash", "arguments": '{"command": "rm'}}


@dataclass
class Abortable:
    """An engine that ends its answers when it is told to, and like any that it has finished."""

    begins: bool = True
    """It says something before."""

    finish: str = "stop"
    dies: bool = False
    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, received: Received, reply: Reply) -> None:
        stream = received.json.get("stream")
        events = self._events(received.target.startswith("/v1/messages"))
        if stream:
            await reply.start()
            for event in events[:-2] if self.begins else ():
                await reply.chunk(event)
        await self.told.wait()
        if self.dies:
            reply.kill()
        elif stream:
            for event in events[-2:] if self.begins else events:
                await reply.chunk(event)
            await reply.end()
        else:
            await reply.whole(json.dumps(whole_answer(received.target)).encode())

    def _events(self, native: bool) -> list[bytes]:
        if native:
            events = capture("vllm-messages.sse")
            return events if self.begins else [events[0], *events[-2:]]
        said: list[dict[str, Any]] = (
            [{"content": "a"}, {"tool_calls": [CALL]}] if self.begins else []
        )
        return chat({"role": "assistant"}, *said, finish=self.finish)


def has_come(engine: StubEngine) -> bool:
    """Whether the engine was asked for an answer, and not only for its health."""
    return any(received.body for received in engine.requests)


async def ended(served: Gateway, engine: StubEngine, speaks: Abortable, answer: Answer) -> bytes:
    """What the client of the request has in the end, once the operator has ended it."""
    await until(lambda: has_come(engine))
    if speaks.begins and not speaks.dies:
        await until(lambda: bool(served.meter.live()[0].first_token_at_s))
    (row,) = served.meter.live()
    with served.meter.stopping(row.request_id):
        speaks.told.set()
    await answer.begin()
    return await answer.body()


@BOTH
@pytest.mark.parametrize("finish", ["abort", "stop", "tool_calls"])
async def test_a_stream_that_the_operator_ends_ends_with_an_error(
    route: Speaks, finish: str
) -> None:
    speaks = Abortable(finish=finish)
    async with (
        StubEngine(speaks) as engine,
        gateway(engine.upstream, dialects=route) as served,
        call(served.port, MESSAGES, STREAM, begin=False) as answer,
    ):
        told = await ended(served, engine, speaks, answer)
        (row,) = await served.ended()
    read = read_stream(told)
    assert (read.error or {}) == {"type": "api_error", "message": ENDED_BY_OPERATOR}
    assert b"message_stop" not in told
    assert b"message_delta" not in told
    assert row.finish_reason == "error"


@BOTH
async def test_before_a_token_the_client_of_a_stream_may_repeat_it_by_itself(
    route: Speaks,
) -> None:
    speaks = Abortable(begins=False)
    async with (
        StubEngine(speaks) as engine,
        gateway(engine.upstream, dialects=route) as served,
        call(served.port, MESSAGES, STREAM, begin=False) as answer,
    ):
        told = await ended(served, engine, speaks, answer)
    read = read_stream(told)
    assert (read.error or {}) == {"type": "overloaded_error", "message": ENDED_BY_OPERATOR}


@BOTH
async def test_an_answer_in_one_piece_is_refused_so_that_it_may_be_sent_again(
    route: Speaks,
) -> None:
    speaks = Abortable(begins=False)
    async with (
        StubEngine(speaks) as engine,
        gateway(engine.upstream, dialects=route) as served,
        call(served.port, MESSAGES, ASK, begin=False) as answer,
    ):
        told = json.loads(await ended(served, engine, speaks, answer))
    assert (answer.status, answer.headers["x-should-retry"]) == (529, "true")
    assert (told["type"], told["error"]) == (
        "error",
        {"type": "overloaded_error", "message": ENDED_BY_OPERATOR},
    )


@BOTH
@pytest.mark.parametrize("stream", [True, False])
async def test_what_the_operator_ended_is_not_asked_of_the_next_engine(
    route: Speaks, stream: bool
) -> None:
    speaks, gate = Abortable(begins=False, dies=True), AdmissionGate(patience_s=2)
    async with (
        StubEngine(speaks) as first,
        StubEngine(serve, run_id="run-2") as second,
        gateway(first.upstream, dialects=route, gate=gate) as served,
        call(served.port, MESSAGES, STREAM if stream else ASK, begin=False) as answer,
    ):
        await until(lambda: has_come(first))
        served.state.upstream = second.upstream
        told = await ended(served, first, speaks, answer)
    assert ENDED_BY_OPERATOR.encode() in told
    assert served.meter.counts().resent == 0
    assert not has_come(second)


async def test_openais_clients_read_that_it_was_aborted() -> None:
    speaks = Abortable(finish="abort")
    async with (
        StubEngine(speaks) as engine,
        gateway(engine.upstream) as served,
        call(served.port, CHAT, STREAM, begin=False) as answer,
    ):
        told = await ended(served, engine, speaks, answer)
    *_, last, done = events_of(told)
    assert json.loads(last[6:])["choices"][0]["finish_reason"] == "abort"
    assert done == b"data: [DONE]\n\n"


@pytest.mark.parametrize("stream", [True, False])
async def test_openais_clients_are_told_where_nothing_came(stream: bool) -> None:
    speaks = Abortable(begins=False, dies=True)
    async with (
        StubEngine(speaks) as engine,
        gateway(engine.upstream) as served,
        call(served.port, CHAT, STREAM if stream else ASK, begin=False) as answer,
    ):
        told = await ended(served, engine, speaks, answer)
    assert ENDED_BY_OPERATOR.encode() in told
    assert answer.status == (200 if stream else 503)


@BOTH
@pytest.mark.parametrize(
    ("exit_code", "whole"), [(Exit.REFUSED, True), (Exit.TIMED_OUT, False)], ids=str
)
async def test_where_the_engine_refuses_to_end_it_its_answer_is_whole(
    route: Speaks, exit_code: Exit, whole: bool
) -> None:
    speaks = Abortable()
    error = ConsoleError("the engine did not", exit_code=exit_code)
    async with (
        StubEngine(speaks) as engine,
        gateway(engine.upstream, dialects=route) as served,
        call(served.port, MESSAGES, STREAM) as answer,
    ):
        await until(lambda: bool(served.meter.live()[0].first_token_at_s))
        with pytest.raises(ConsoleError), served.meter.stopping():
            raise error
        speaks.told.set()
        told = await answer.body()
    assert (read_stream(told).error is None) is whole


async def test_only_what_the_engine_has_and_only_the_request_that_is_named_is_ended() -> None:
    speaks = Abortable()
    async with (
        StubEngine(speaks) as engine,
        gateway(engine.upstream) as served,
        call(served.port, MESSAGES, STREAM) as one,
        call(served.port, MESSAGES, STREAM) as other,
    ):
        await until(lambda: all(row.first_token_at_s for row in served.meter.live()))
        first, _ = served.meter.live()
        with served.meter.stopping(first.request_id):
            speaks.told.set()
        errors = [read_stream(await answer.body()).error for answer in (one, other)]
    assert sorted(error is None for error in errors) == [False, True]
