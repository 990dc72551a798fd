"""Streams that the tests of the gateway ask for."""

from __future__ import annotations

from typing import Any

from tests.gateway.stub import Received, Reply

CHAT, COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"
STREAM: dict[str, Any] = {
    "model": "smollm2",
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
    "max_tokens": 80,
}


async def silent(received: Received, reply: Reply) -> None:
    await reply.gone.wait()
