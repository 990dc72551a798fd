"""The ways in which an engine dies before the first token of an answer, and one that only fails."""

from __future__ import annotations

import asyncio
import json

from tests.gateway.holding import Breaks
from tests.gateway.stub import Received, Reply, capture


async def cut_before_the_head(received: Received, reply: Reply) -> None:
    reply.kill()


async def cut_after_the_head(received: Received, reply: Reply) -> None:
    if not received.json.get("stream"):
        await reply.start(headers={"content-type": "application/json"})
        await reply.chunk(b'{"choices": [')
    else:
        await reply.start()
    await asyncio.sleep(0.02)
    reply.kill()


async def answer_that_its_core_is_dead(received: Received, reply: Reply) -> None:
    await reply.whole(b'{"error": {"message": "EngineCore encountered an issue."}}', 500)


async def tell_that_its_core_is_dead_in_the_stream(received: Received, reply: Reply) -> None:
    if not received.json.get("stream"):
        await answer_that_its_core_is_dead(received, reply)
        return
    error = json.dumps({"error": {"message": "EngineCore encountered an issue.", "code": 500}})
    await reply.start()
    if received.target.startswith("/v1/messages"):
        told = {"type": "error", "error": {"type": "internal_error", "message": "2 errors"}}
        await reply.chunk(f"event: error\ndata: {json.dumps(told)}\n\n".encode())
    else:
        await reply.chunk(f"data: {error}\n\ndata: [DONE]\n\n".encode())
    await reply.end()


async def end_without_a_word(received: Received, reply: Reply) -> None:
    if not received.json.get("stream"):
        reply.kill()
        return
    await reply.start()
    await reply.end()


async def open_and_die(received: Received, reply: Reply) -> None:
    """What stands before the first token has gone out by then."""
    if not received.json.get("stream"):
        reply.kill()
        return
    native = received.target.startswith("/v1/messages")
    opening = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    await reply.start()
    await reply.chunk(
        capture("vllm-messages.sse")[0]
        if native
        else f"data: {json.dumps({'choices': [opening]})}\n\n".encode()
    )
    await asyncio.sleep(0.05)
    reply.kill()


DEATHS = [
    open_and_die,
    cut_before_the_head,
    cut_after_the_head,
    answer_that_its_core_is_dead,
    tell_that_its_core_is_dead_in_the_stream,
    end_without_a_word,
]


def dying(breaks: Breaks) -> Breaks:
    """An engine whose core has died: it says so until it exits."""

    async def handle(received: Received, reply: Reply) -> None:
        if received.target == "/health":
            await reply.whole(b"", 503)
        else:
            await breaks(received, reply)

    return handle


async def fails(received: Received, reply: Reply) -> None:
    await asyncio.sleep(0.1)
    await reply.whole(b'{"error": {"message": "it went wrong"}}', 500)


def living(answers: Breaks) -> Breaks:
    """An engine that is well, whatever it answers."""

    async def handle(received: Received, reply: Reply) -> None:
        if received.target == "/health":
            await reply.whole(b"")
        else:
            await answers(received, reply)

    return handle
