"""The Messages route: an order's outputs as vLLM writes them for Claude Code."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from a40console.sim.asked import Asked, call_id
from a40console.sim.core import Core
from a40console.sim.openai import cached_tokens
from a40console.sim.requests import Output

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "abort": "end_turn"}


class Message:
    """One answer: a text, or a call of the tool that was asked for."""

    def __init__(self, core: Core, asked: Asked) -> None:
        self._core = core
        self._asked = asked
        self._generated = 0
        self._text = ""
        self._finish: str | None = None

    async def events(self, outputs: AsyncIterator[Output]) -> AsyncIterator[str]:
        """The stream, event by event; the first one comes with the first token, as vLLM's does."""
        async for output in outputs:
            if not self._generated:
                for opening in self._opening():
                    yield opening
            self._take(output)
            if output.tokens:
                yield self._delta("".join(output.tokens))
        yield event({"type": "content_block_stop", "index": 0})
        for closing in self._closing():
            yield closing

    async def whole(self, outputs: AsyncIterator[Output]) -> dict[str, Any]:
        """The answer in one piece."""
        async for output in outputs:
            self._take(output)
        block = {**self._block(), "text": self._text}
        if self._asked.tool is not None:
            block = {**self._block(), "input": {"command": self._text}}
        return {**self._head(), "content": [block], **self._end()}

    def _take(self, output: Output) -> None:
        self._generated += len(output.tokens)
        self._text += "".join(output.tokens)
        self._finish = output.finish_reason or self._finish

    def _closing(self) -> tuple[str, str]:
        """What ends a stream: why it stopped, with its usage."""
        end = self._end()
        usage = end.pop("usage")
        return (
            event({"type": "message_delta", "delta": end, "usage": usage}),
            event({"type": "message_stop"}),
        )

    def _end(self) -> dict[str, Any]:
        return {
            "stop_reason": self._stop_reason(),
            "stop_sequence": None,
            "usage": self._usage(),
        }

    def _opening(self) -> tuple[str, str]:
        start = {"type": "content_block_start", "content_block": self._block(), "index": 0}
        return self._start(), event(start)

    def _start(self) -> str:
        message = {
            **self._head(),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": len(self._asked.order.prompt), "output_tokens": 0},
        }
        return event({"type": "message_start", "message": message})

    def _delta(self, text: str) -> str:
        delta = {"type": "text_delta", "text": text}
        if self._asked.tool is not None:
            first = self._text == text
            piece = json.dumps(text)[1:-1]
            piece = ('{"command": "' if first else "") + piece
            piece += '"}' if self._finish is not None else ""
            delta = {"type": "input_json_delta", "partial_json": piece}
        return event({"type": "content_block_delta", "delta": delta, "index": 0})

    def _head(self) -> dict[str, Any]:
        return {
            "id": self._asked.order.external_id,
            "type": "message",
            "role": "assistant",
            "model": self._asked.model,
        }

    def _block(self) -> dict[str, Any]:
        if self._asked.tool is None:
            return {"type": "text", "text": ""}
        identity = call_id(self._asked.order)
        return {"type": "tool_use", "id": identity, "name": self._asked.tool, "input": {}}

    def _stop_reason(self) -> str:
        if self._asked.tool is not None and self._finish == "stop":
            return "tool_use"
        return _STOP_REASONS[self._finish or "stop"]

    def _usage(self) -> dict[str, int]:
        cached = cached_tokens(self._core, self._asked.order.request_id)
        return {
            "input_tokens": len(self._asked.order.prompt) - cached,
            "output_tokens": self._generated,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
        }


def event(value: dict[str, Any]) -> str:
    """One event of a stream, as vLLM frames it."""
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n"
