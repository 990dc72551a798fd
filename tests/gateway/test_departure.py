"""Who has left and who has not: a client that has its whole answer may close the connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message

from a40console.gateway.departure import ClientLeftError, unless_left
from a40console.gateway.upstream import EngineSessions
from tests.gateway.messages_asked import ASK, MESSAGES, STREAM, chat
from tests.gateway.stub import (
    NATIVE_ENGINE,
    SSE,
    TRANSLATED_ENGINE,
    Received,
    Reply,
    Speaks,
    StubEngine,
    call,
    capture,
    gateway,
)

CHAT = "/v1/chat/completions"


class Client:
    """Closes the connection when it is told to."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def test_who_leaves_before_the_end_has_left() -> None:
    client, cut = Client(), asyncio.Event()

    async def work() -> str:
        try:
            client.gone.set()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cut.set()
            raise
        return "completed"

    with pytest.raises(ClientLeftError):
        await unless_left(client.receive, work(), lambda: False)
    assert cut.is_set()


async def test_who_closes_the_connection_with_the_last_byte_has_not_left() -> None:
    client, answered = Client(), asyncio.Event()

    async def work() -> str:
        answered.set()
        client.gone.set()
        await asyncio.sleep(0.05)
        return "completed"

    assert await unless_left(client.receive, work(), answered.is_set) == "completed"


async def streams(received: Received, reply: Reply) -> None:
    native = received.target.startswith("/v1/messages")
    if received.json.get("stream"):
        await reply.start(headers=SSE)
        events = capture("vllm-messages.sse") if native else chat({"content": "hi"})
        for event in events:
            await reply.chunk(event)
        await reply.end()
    elif native:
        await reply.whole(
            b'{"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}],'
            b'"stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 1}}'
        )
    else:
        await reply.whole(
            b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"},'
            b'"finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}'
        )


@pytest.mark.parametrize("body", [STREAM, ASK], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("path", "route"),
    [(MESSAGES, NATIVE_ENGINE), (MESSAGES, TRANSLATED_ENGINE), (CHAT, NATIVE_ENGINE)],
    ids=["messages", "messages by chat", "chat"],
)
async def test_a_finished_answer_is_never_counted_as_aborted(
    path: str, route: Speaks, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though something is still to be done for it when its client closes the connection."""
    release = EngineSessions.lease

    class Slow:
        def __init__(self, leased: Any) -> None:
            self._leased = leased

        async def __aenter__(self) -> Any:
            return await self._leased.__aenter__()

        async def __aexit__(self, *told: Any) -> Any:
            await asyncio.sleep(0.05)
            return await self._leased.__aexit__(*told)

    monkeypatch.setattr(EngineSessions, "lease", lambda *given: Slow(release(*given)))
    async with (
        StubEngine(streams) as engine,
        gateway(engine.upstream, dialects=route) as served,
    ):
        async with call(served.port, path, body) as answer:
            assert await answer.body()
            answer.leave()
        (row,) = await served.ended()
        counts = served.meter.counts()
    assert (row.finish_reason, row.status) == ("stop", 200)
    assert (counts.aborted, counts.failed) == (0, 0)
