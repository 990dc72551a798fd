"""Asks an engine directly, past the gateway whose gate may be closed: one request, read whole."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import httpx

from a40console.model.engine import Endpoint
from a40console.model.own_request import own_request_id

ANSWER_TIMEOUT_S = 60.0

Route = Literal["completions", "chat/completions"]

_BLOCK = re.compile(r'cache_config_info\{[^}]*\bblock_size="(\d+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an engine answered."""

    status: int = 0
    """Of HTTP; 0 where none came."""

    error: str = ""
    """What went wrong, in the engine's words or the connection's."""

    text: str = ""
    """What it wrote, thoughts included."""

    tool: str = ""
    """The tool that it called."""

    tool_arguments: str = ""
    """As the deltas put together make them."""

    finish_reason: str = ""
    prompt_tokens: int | None = None
    generated_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt; None where the engine does not say."""


def engine_http(
    endpoint: Endpoint, timeout_s: float, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """A client of one engine; each request has a connection of its own.

    A connection that is kept may be closed by the engine in the instant in which it is used again,
    which cannot be told from an engine that died.
    """
    key = endpoint.api_key
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.AsyncClient(
        transport=transport or httpx.AsyncHTTPTransport(uds=endpoint.socket_path, limits=limits),
        base_url=endpoint.base_url,
        headers={} if key is None else {"authorization": f"Bearer {key}"},
        timeout=timeout_s,
        trust_env=False,
    )


class EngineAsk:
    """Sends requests to one engine's OpenAI routes."""

    def __init__(
        self, endpoint: Endpoint, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._http = engine_http(endpoint, ANSWER_TIMEOUT_S, transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def __call__(self, route: Route, body: Mapping[str, Any]) -> Answer:
        """The answer to a request that is streamed; whatever goes wrong is in it."""
        streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
        try:
            async with self._http.stream(
                "POST", f"/v1/{route}", json=streamed, headers=_named()
            ) as response:
                if response.is_error:
                    told = (await response.aread()).decode(errors="replace")
                    return Answer(status=response.status_code, error=_message(told))
                reader = _Reader()
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        reader.take(line[5:].strip())
                return reader.answer(response.status_code)
        except httpx.HTTPError as error:
            return Answer(error=str(error) or type(error).__name__)

    async def block_tokens(self) -> int | None:
        """Tokens of a block of its prefix cache; None where it does not say."""
        try:
            text = (await self._http.get("/metrics")).text
        except httpx.HTTPError:
            return None
        found = _BLOCK.search(text)
        return int(found[1]) if found else None


def _named() -> dict[str, str]:
    """The canary's name, which engines keep: its rows are no client's."""
    return {"X-Request-Id": own_request_id("canary")}


class _Reader:
    """Puts the events of a stream together."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._arguments: list[str] = []
        self._tool = self._finish = self._error = ""
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}
        self._whole = False

    def take(self, data: str) -> None:
        """Read one event."""
        if data == "[DONE]":
            self._whole = True
            return
        try:
            chunk = json.loads(data)
        except ValueError:
            self._error = f"an event that is not JSON: {data[:80]}"
            return
        if not isinstance(chunk, dict):
            return
        if chunk.get("error"):
            self._error = _message(data)
        self._usage = _dict(chunk.get("usage")) or self._usage
        self._timings = _dict(chunk.get("timings")) or self._timings
        for choice in chunk.get("choices") or ():
            self._choice(_dict(choice))

    def _choice(self, choice: dict[str, Any]) -> None:
        delta = _dict(choice.get("delta"))
        for value in (choice.get("text"), delta.get("content")):
            self._text.append(value if isinstance(value, str) else "")
        thought = delta.get("reasoning") or delta.get("reasoning_content")
        self._text.append(thought if isinstance(thought, str) else "")
        for call in delta.get("tool_calls") or ():
            function = _dict(_dict(call).get("function"))
            self._tool = self._tool or str(function.get("name") or "")
            self._arguments.append(str(function.get("arguments") or ""))
        self._finish = choice.get("finish_reason") or self._finish

    def answer(self, status: int) -> Answer:
        """All of it."""
        cut = "" if self._whole else "the stream ended before its end"
        details = _dict(self._usage.get("prompt_tokens_details"))
        cached = details.get("cached_tokens", self._timings.get("cache_n"))
        return Answer(
            status=status,
            error=self._error or cut,
            text="".join(self._text),
            tool=self._tool,
            tool_arguments="".join(self._arguments),
            finish_reason=self._finish,
            prompt_tokens=_count(self._usage.get("prompt_tokens")),
            generated_tokens=_count(self._usage.get("completion_tokens")),
            cached_tokens=_count(cached),
        )


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _message(told: str) -> str:
    """The engine's words for an error, out of its JSON where it is some."""
    try:
        error = _dict(json.loads(told)).get("error")
    except ValueError:
        return told[:200]
    message = _dict(error).get("message")
    return str(message or error or told)[:200]
