"""A gate that is closed, an engine that serves any API, and clients that wait before it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from a40console.gateway.anthropic.commitment import Timing
from a40console.gateway.hold import AdmissionGate, HoldLimits
from tests.gateway.messages_asked import MESSAGES, chat
from tests.gateway.stub import (
    NATIVE_ENGINE,
    TRANSLATED_ENGINE,
    Answer,
    Gateway,
    Received,
    Reply,
    StubEngine,
    call,
    capture,
    until,
)

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
COUNT = "/v1/messages/count_tokens?beta=true"
QUICK = Timing(commit_after_s=0.2, ping_every_s=0.1)
WHY = "the engine is switched to kimi-linear"
SESSION = {"x-claude-code-session-id": "7f3a", "user-agent": "claude-cli/2.1.0"}
Breaks = Callable[[Received, Reply], Awaitable[None]]
"""How an engine answers, or does not."""

ROUTES = pytest.mark.parametrize(
    ("path", "route"),
    [(MESSAGES, NATIVE_ENGINE), (MESSAGES, TRANSLATED_ENGINE), (CHAT, NATIVE_ENGINE)],
    ids=["messages", "translated", "chat"],
)
"""Those that generate, with how the engine is asked."""


async def serve(received: Received, reply: Reply) -> None:
    """As an engine of any API answers."""
    if "count_tokens" in received.target:
        await reply.whole(b'{"input_tokens": 42}')
    elif received.target == "/health":
        await reply.whole(b"")
    elif received.json.get("stream"):
        native = received.target.startswith("/v1/messages")
        await reply.start()
        for event in (
            capture("vllm-messages.sse")
            if native
            else chat({"role": "assistant", "content": ""}, {"content": "hi"})
        ):
            await reply.chunk(event)
        await reply.end()
    else:
        await reply.whole(json.dumps(whole_answer(received.target)).encode())


def whole_answer(target: str) -> dict[str, Any]:
    if target.startswith("/v1/messages"):
        said = {"type": "message", "content": [{"type": "text", "text": "hi"}]}
        return {**said, "stop_reason": "end_turn", "usage": {"output_tokens": 1}}
    choice = {"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}


@asynccontextmanager
async def asked(served: Gateway, path: str, body: dict[str, Any]) -> AsyncIterator[Answer]:
    """A client that has sent its request and reads nothing yet."""
    async with call(served.port, path, body, SESSION, begin=False) as answer:
        yield answer


async def is_held(served: Gateway, gate: AdmissionGate, number: int = 1) -> None:
    await until(lambda: gate.waiting == number)


def closed(limits: HoldLimits | None = None, patience_s: float = 2.0) -> AdmissionGate:
    gate = AdmissionGate(limits or HoldLimits(), patience_s=patience_s)
    gate.close(WHY)
    return gate


def switched(served: Gateway, gate: AdmissionGate, engine: StubEngine) -> None:
    """Another engine serves."""
    served.state.upstream = engine.upstream
    gate.open()


async def serve_rest(received: Received, reply: Reply) -> None:
    native = received.target.startswith("/v1/messages")
    for event in (
        capture("vllm-messages.sse")
        if native
        else chat({"role": "assistant", "content": ""}, {"content": "hi"})
    ):
        await reply.chunk(event)
    await reply.end()
