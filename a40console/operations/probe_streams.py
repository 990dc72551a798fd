"""Streams of the idle-silicon probe: asked of the engine itself, each with a prompt of its own."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import httpx

from a40console.errors import NotServingError
from a40console.model.engine import Endpoint
from a40console.model.own_request import own_request_id
from a40console.model.profile import Profile
from a40console.operations.asking import engine_http

LONGEST_TOKENS = 4096
SILENCE_TIMEOUT_S = 30.0
_SUBJECTS = ("a harbour", "a mill", "a clockmaker", "a desert", "a mountain pass", "an orchard")


class ProbeStreams:
    """Begins streams that go on until they are no longer read."""

    def __init__(
        self,
        endpoint: Endpoint,
        profile: Profile,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._profile = profile
        self._nonce = secrets.token_hex(4)
        self._http = engine_http(endpoint, SILENCE_TIMEOUT_S, transport)

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def stream(self, number: int) -> AsyncIterator[int]:
        """How many tokens this stream has generated; an answer that ends is asked for anew.

        Raises:
            NotServingError: If the engine refuses or breaks off, or does not count as it goes.
        """
        total, turn = 0, 0
        while True:
            turn += 1
            newest = 0
            async for newest in self._answer(number, turn):
                yield total + newest
            if not newest:
                raise NotServingError("The engine does not count tokens while it generates them")
            total += newest

    async def _answer(self, number: int, turn: int) -> AsyncIterator[int]:
        body, named = self._body(number, turn), {"X-Request-Id": own_request_id("probe")}
        try:
            async with self._http.stream(
                "POST", "/v1/chat/completions", json=body, headers=named
            ) as response:
                if response.is_error:
                    told = (await response.aread()).decode(errors="replace")[:200]
                    raise NotServingError("The engine refuses the probe", evidence=told)
                async for line in response.aiter_lines():
                    if count := _tokens(line):
                        yield count
        except httpx.HTTPError as error:
            raise NotServingError(
                "A stream of the probe broke off", evidence=str(error) or type(error).__name__
            ) from error

    def _body(self, number: int, turn: int) -> dict[str, Any]:
        """A prompt that differs from its first words on: no cache serves one for another."""
        profile = self._profile
        longest = min(LONGEST_TOKENS, (profile.max_model_len or LONGEST_TOKENS) // 2)
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        text = f"{self._nonce} {number} {turn}: tell a long story about {subject}."
        body: dict[str, Any] = {
            "model": profile.public_name,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": longest,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        if profile.kind == "llamacpp":
            return {**body, "timings_per_token": True}
        if profile.kind == "sim":
            return {**body, "vllm_xargs": {"answer_tokens": longest, "regime": "prose"}}
        return body


def _tokens(line: str) -> int:
    """Tokens so far by an event's usage or timings; 0 where it tells none."""
    if not line.startswith("data: {"):
        return 0
    try:
        chunk = json.loads(line[6:])
    except ValueError:
        return 0
    if chunk.get("error"):
        raise NotServingError("The engine broke off", evidence=str(chunk["error"])[:200])
    usage, timings = chunk.get("usage") or {}, chunk.get("timings") or {}
    count = usage.get("completion_tokens") or timings.get("predicted_n") or 0
    return count if isinstance(count, int) else 0
