"""Chat completions and completions: an order's outputs as vLLM writes them for OpenAI's clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from a40console.sim.asked import Asked
from a40console.sim.core import Core
from a40console.sim.requests import Output

FINGERPRINT = "vllm-0.33.0-sim"


class Answer:
    """One answer, on the chat route or the plain one."""

    def __init__(self, core: Core, asked: Asked, *, chat: bool, created_unix_s: float) -> None:
        self._core = core
        self._asked = asked
        self._chat = chat
        self._created = int(created_unix_s)
        self._id = asked.order.external_id.removesuffix("-0")
        self._generated = 0
        self._said: tuple[str, ...] = ()
        self._reason: str | None = None

    async def events(self, outputs: AsyncIterator[Output]) -> AsyncIterator[str]:
        """The stream, event by event."""
        if self._chat:
            yield self._event([self._choice({"role": "assistant", "content": ""})])
        async for output in outputs:
            self._take(output)
            for delta in self._deltas(output):
                yield self._event([self._choice(delta)])
            if self._reason is not None:
                yield self._event([self._choice({} if self._chat else "", self._reason)])
        if self._asked.include_usage:
            yield _data({**self._head(), "choices": [], "usage": self._usage(whole=True)})
        yield "data: [DONE]\n\n"

    async def whole(self, outputs: AsyncIterator[Output]) -> dict[str, Any]:
        """The answer in one piece."""
        async for output in outputs:
            self._take(output)
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": self._reason}
        if self._chat:
            choice["message"] = self._message()
        else:
            choice["text"] = self._text
        kind = "chat.completion" if self._chat else "text_completion"
        usage = self._usage(whole=True)
        return {**self._head(), "object": kind, "choices": [choice], "usage": usage}

    @property
    def _text(self) -> str:
        return "".join(self._said)

    def _take(self, output: Output) -> None:
        self._generated += len(output.tokens)
        self._said += output.tokens
        if output.finish_reason is not None:
            stop = output.finish_reason == "stop"
            self._reason = "tool_calls" if stop and self._asked.calls else output.finish_reason

    def _message(self) -> dict[str, Any]:
        if self._asked.tool is None:
            return {"role": "assistant", "content": self._text, "reasoning": None}
        call = self._call(json.dumps({"command": self._text}), first=True)
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _deltas(self, output: Output) -> Iterator[dict[str, Any] | str]:
        """What one pass brought; its tokens are taken already."""
        if output.tokens:
            started = self._generated > len(output.tokens)
            yield self._delta("".join(output.tokens), started)

    def _delta(self, text: str, started: bool) -> dict[str, Any] | str:
        if not self._chat:
            return text
        if self._asked.tool is None:
            return {"content": text}
        piece = json.dumps(text)[1:-1]
        piece = piece if started else '{"command": "' + piece
        if self._reason is not None:
            piece += '"}'
        return {"tool_calls": [self._call(piece, first=not started)]}

    def _call(self, arguments: str, *, first: bool) -> dict[str, Any]:
        function: dict[str, Any] = {"arguments": arguments}
        call: dict[str, Any] = {"index": 0, "function": function}
        if first:
            function["name"] = self._asked.tool
            call |= {"id": f"chatcmpl-tool-{self._asked.order.seed:08x}", "type": "function"}
        return call

    def _choice(self, delta: dict[str, Any] | str, reason: str | None = None) -> dict[str, Any]:
        content = {"delta": delta} if self._chat else {"text": delta}
        return {"index": 0, **content, "logprobs": None, "finish_reason": reason}

    def _event(self, choices: list[dict[str, Any]]) -> str:
        chunk = {**self._head(), "choices": choices}
        if self._asked.continuous_usage:
            chunk["usage"] = self._usage(whole=False)
        return _data(chunk)

    def _head(self) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._asked.model,
            "system_fingerprint": FINGERPRINT,
        }

    def _usage(self, *, whole: bool) -> dict[str, Any]:
        prompt = len(self._asked.order.prompt)
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "completion_tokens": self._generated,
            "total_tokens": prompt + self._generated,
        }
        if whole:
            cached = cached_tokens(self._core, self._asked.order.request_id)
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        return usage


def cached_tokens(core: Core, request_id: str) -> int:
    """Prompt tokens of a request, live or ended, that the cache held."""
    request = core.find(request_id)
    if request is None:
        ended = (each for _, each in reversed(core.ended))
        request = next((each for each in ended if each.order.request_id == request_id), None)
    return (request.cached or 0) if request is not None else 0


def _data(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"
