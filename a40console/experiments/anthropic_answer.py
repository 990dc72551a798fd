"""The Anthropic dialect: `/v1/messages`, streamed or whole, and the count of tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from a40console.experiments.answer import NO_CACHE_FIGURE, Answer, count, error_text, said
from a40console.model.figures import total
from a40console.model.run_record import NO_USAGE

_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
_KINDS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("tool_use", "partial_json"),
}


def read_event(answer: Answer, at_s: float, event: Mapping[str, Any]) -> None:
    """One event of a stream."""
    kind = said(event.get("type"))
    answer.happened(kind)
    match kind:
        case "content_block_delta":
            _read_delta(answer, at_s, event.get("index", 0), event["delta"])
        case "content_block_start":
            _read_start(answer, at_s, event.get("index", 0), event["content_block"])
        case "message_start":
            _read_prompt(answer, event["message"].get("usage") or {})
        case "message_delta":
            answer.stop_reason = said(event["delta"].get("stop_reason")) or answer.stop_reason
            _read_usage(answer, event.get("usage") or {})
        case "message_stop":
            answer.ended = True
        case "error":
            answer.fail(f"the server reported in its answer: {error_text(event.get('error'))}")


def read_whole(answer: Answer, body: Mapping[str, Any]) -> None:
    """A body that was not streamed."""
    for index, content in enumerate(body.get("content") or ()):
        kind = said(content.get("type")) or "text"
        block = answer.block(kind, index)
        block.name, block.id = said(content.get("name")), said(content.get("id"))
        asked = content.get("input")
        words = said(content.get("text")) or said(content.get("thinking"))
        block.pieces.append(words if asked is None else json.dumps(asked, ensure_ascii=False))
    answer.stop_reason = said(body.get("stop_reason"))
    _read_usage(answer, body.get("usage") or {})
    answer.ended = True


def read_count(answer: Answer, body: Mapping[str, Any]) -> None:
    """The answer of `count_tokens`."""
    answer.prompt_tokens = count(body.get("input_tokens"), answer.prompt_tokens)
    answer.ended = True


def _read_start(answer: Answer, at_s: float, index: int, begun: Mapping[str, Any]) -> None:
    kind = said(begun.get("type")) or "text"
    block = answer.block(kind, index)
    if kind == "tool_use":
        block.name, block.id = said(begun.get("name")), said(begun.get("id"))
        answer.arrived(at_s, content=bool(block.name))
        return
    words = said(begun.get(kind))
    if words:
        block.pieces.append(words)
        answer.arrived(at_s, content=True)


def _read_delta(answer: Answer, at_s: float, index: int, delta: Mapping[str, Any]) -> None:
    known = _KINDS.get(delta.get("type", ""))
    if known is None:  # signatures and citations are not generated content
        return
    kind, field = known
    words = said(delta.get(field))
    answer.block(kind, index).pieces.append(words)
    answer.arrived(at_s, content=bool(words))


def _read_usage(answer: Answer, usage: Mapping[str, Any]) -> None:
    _read_prompt(answer, usage)
    answer.generated_tokens = count(usage.get("output_tokens"), answer.generated_tokens)


def _read_prompt(answer: Answer, usage: Mapping[str, Any]) -> None:
    """What was read; the cached part stands beside `input_tokens`, not in it."""
    if "input_tokens" not in usage:
        return
    computed = count(usage["input_tokens"], NO_USAGE)
    answer.prompt_tokens = total((computed, *(count(usage.get(name), 0) for name in _CACHED)))
    answer.cached_tokens = count(usage.get("cache_read_input_tokens"), NO_CACHE_FIGURE)
