"""Answers of Anthropic's Messages API, read for the meter."""

from __future__ import annotations

import json
from typing import Any

from a40console.gateway.answer import finish_reason, text_length, tokens
from a40console.gateway.meter import Meter, Passage

_DELTA_TEXTS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}


class MessagesReader:
    """Reads the engine's answers of /v1/messages, before the guard has put anything right.

    The stream counts no tokens before its last usage: until then only characters are known.
    """

    def __init__(self, meter: Meter, passage: Passage) -> None:
        self.passage = passage
        self._meter = meter
        self._usage: dict[str, Any] = {}

    def whole(self, message: dict[str, Any]) -> None:
        """Read an answer that is not a stream: its usage and why it stopped."""
        self.passage.finish_reason = finish_reason(message.get("stop_reason"))
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            self.passage.characters += _block_length(block)
        self._take(message.get("usage"), final=True)

    def read(self, data: dict[str, Any]) -> None:
        """Read one event of a stream."""
        match data.get("type"):
            case "content_block_delta":
                self._content(_delta_length(data.get("delta")))
            case "content_block_start":
                self._content(_block_length(data.get("content_block")))
            case "message_start":
                message = data.get("message")
                self._take(message.get("usage") if isinstance(message, dict) else None, final=False)
            case "message_delta":
                delta = data.get("delta")
                reason = delta.get("stop_reason") if isinstance(delta, dict) else None
                self.passage.finish_reason = finish_reason(reason) or self.passage.finish_reason
                self._take(data.get("usage"), final=True)

    def _content(self, length: int) -> None:
        if length:
            self._meter.content(self.passage, length)

    def _take(self, usage: object, *, final: bool) -> None:
        """Usage so far: the prompt is what was computed, read from the cache and written to it."""
        if not isinstance(usage, dict):
            return
        self._usage |= usage
        parts = [
            tokens(self._usage, key)
            for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        ]
        if parts[0] is not None:
            self.passage.prompt_tokens = sum(part or 0 for part in parts)
        self.passage.cached_tokens = parts[1]
        generated = tokens(usage, "output_tokens")
        if final and generated is not None:
            self.passage.totalled(generated)


def _delta_length(delta: object) -> int:
    if not isinstance(delta, dict):
        return 0
    kind = delta.get("type")
    return text_length(delta.get(_DELTA_TEXTS.get(kind, ""))) if isinstance(kind, str) else 0


def _block_length(block: object) -> int:
    """The characters of a block: its text or thinking, or the name of the tool that is called."""
    if not isinstance(block, dict):
        return 0
    length = sum(text_length(block.get(key)) for key in ("text", "thinking", "name"))
    arguments = block.get("input")
    return length + (len(json.dumps(arguments)) if arguments else 0)
