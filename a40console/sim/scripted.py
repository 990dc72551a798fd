"""Answers of several pieces, as a script has them: text, thinking and calls of tools, in order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from a40console.sim.anthropic import Message, event
from a40console.sim.asked import Asked
from a40console.sim.core import Core
from a40console.sim.openai import Answer
from a40console.sim.requests import Output
from a40console.sim.script import Part, Piece, Reader


class ScriptedMessage(Message):
    """On the Messages route: a block for each piece."""

    def __init__(self, core: Core, asked: Asked) -> None:
        super().__init__(core, asked)
        self._reader = Reader(asked.pieces)

    async def events(self, outputs: AsyncIterator[Output]) -> AsyncIterator[str]:
        """The stream, event by event."""
        open_index: int | None = None
        async for output in outputs:
            if not self._generated:
                yield self._start()
            self._take(output)
            for part in self._reader.parts(output.tokens):
                if part.first:
                    block = _block(part.piece, self._call_id(part.index))
                    start = {"type": "content_block_start", "index": part.index}
                    yield event({**start, "content_block": block})
                    open_index = part.index
                yield _delta(part)
                if part.last:
                    yield event({"type": "content_block_stop", "index": part.index})
                    open_index = None
        if open_index is not None:  # the limit came before the piece's end
            yield event({"type": "content_block_stop", "index": open_index})
        for closing in self._closing():
            yield closing

    async def whole(self, outputs: AsyncIterator[Output]) -> dict[str, Any]:
        """The answer in one piece."""
        texts: dict[int, str] = {}
        async for output in outputs:
            self._take(output)
            for part in self._reader.parts(output.tokens):
                texts[part.index] = texts.get(part.index, "") + part.text
        content = [
            _filled(self._asked.pieces[index], text, self._call_id(index))
            for index, text in texts.items()
        ]
        return {**self._head(), "content": content, **self._end()}

    def _stop_reason(self) -> str:
        calls = any(piece.kind == "tool" for piece in self._asked.pieces)
        return "tool_use" if calls and self._finish == "stop" else super()._stop_reason()

    def _call_id(self, index: int) -> str:
        return f"chatcmpl-tool-{self._asked.order.seed:08x}{index:02x}"


class ScriptedAnswer(Answer):
    """On the chat route: content, reasoning and tool calls by their index."""

    def __init__(self, core: Core, asked: Asked, *, created_unix_s: float) -> None:
        super().__init__(core, asked, chat=True, created_unix_s=created_unix_s)
        self._reader = Reader(asked.pieces)

    def _deltas(self, output: Output) -> Iterator[dict[str, Any]]:
        for part in self._reader.parts(output.tokens):
            match part.piece.kind:
                case "text":
                    yield {"content": part.text}
                case "thinking":
                    yield {"reasoning": part.text, "reasoning_content": part.text}
                case "tool":
                    yield {"tool_calls": [self._piece_call(part)]}

    def _piece_call(self, part: Part) -> dict[str, Any]:
        calls = [index for index, piece in enumerate(self._asked.pieces) if piece.kind == "tool"]
        number = calls.index(part.index)
        function: dict[str, Any] = {"arguments": part.text}
        call: dict[str, Any] = {"index": number, "function": function}
        if part.first:
            function["name"] = part.piece.tool
            call |= {
                "id": f"chatcmpl-tool-{self._asked.order.seed:08x}{part.index:02x}",
                "type": "function",
            }
        return call

    def _message(self) -> dict[str, Any]:
        texts: dict[str, str] = {"text": "", "thinking": ""}
        calls: list[dict[str, Any]] = []
        for part in Reader(self._asked.pieces).parts(self._said):
            if part.piece.kind == "tool":
                calls.append(self._piece_call(part))
            else:
                texts[part.piece.kind] += part.text
        message: dict[str, Any] = {"role": "assistant", "content": texts["text"] or None}
        message["reasoning"] = texts["thinking"] or None
        return {**message, "tool_calls": calls} if calls else message


def _block(piece: Piece, call_id: str) -> dict[str, Any]:
    match piece.kind:
        case "tool":
            return {"type": "tool_use", "id": call_id, "name": piece.tool, "input": {}}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}


def _delta(part: Part) -> str:
    kinds = {
        "text": ("text_delta", "text"),
        "thinking": ("thinking_delta", "thinking"),
        "tool": ("input_json_delta", "partial_json"),
    }
    kind, name = kinds[part.piece.kind]
    delta = {"type": kind, name: part.text}
    return event({"type": "content_block_delta", "index": part.index, "delta": delta})


def _filled(piece: Piece, text: str, call_id: str) -> dict[str, Any]:
    block = _block(piece, call_id)
    if piece.kind != "tool":
        return {**block, piece.kind: text}
    try:
        return {**block, "input": json.loads(text)}
    except ValueError:  # cut by the limit
        return {**block, "input": {}}
