"""An answer in one piece, made whole in the same way as a stream is by the guard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from a40console.gateway.anthropic.guard import Called
from a40console.gateway.anthropic.shape import Usage, message_head, stop_reason, stop_sequence
from a40console.gateway.translation.pieces import input_of, settled


def whole_message(
    message: Mapping[str, Any],
    *,
    model: str | None,
    request_id: str,
    prompt_estimate: int | None = None,
    called: Called | None = None,
) -> dict[str, Any] | None:
    """The message as a client can read it; None for what is no message."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return None
    blocks: list[dict[str, Any]] = []
    for block in content:
        read = _read(block, f"toolu_{request_id}_{len(blocks)}")
        if read is not None:
            blocks.append(read)
    spoken = [block for block in blocks if not _is_blank(block)]
    usage = Usage(prompt_estimate)
    usage.take(message.get("usage"))
    calls = [block for block in spoken if block["type"] == "tool_use"]
    for call in calls:
        if called is not None:
            called(call["name"], call["id"])
    reason = stop_reason(message.get("stop_reason"), called=bool(calls), complete=True)
    told = usage.told(sum(map(_characters, blocks)))
    return {
        **message_head(message, model, f"msg_{request_id}", told),
        "content": spoken or blocks[:1],
        "stop_reason": reason,
        "stop_sequence": stop_sequence(reason, message.get("stop_sequence")),
    }


def _read(block: object, spare_id: str) -> dict[str, Any] | None:
    """One block, complete; None for a kind that no client of ours understands."""
    if not isinstance(block, dict):
        return None
    match block.get("type"):
        case "text":
            return {**block, "text": _text(block.get("text"))}
        case "thinking":
            thinking, signature = _text(block.get("thinking")), _text(block.get("signature"))
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case "redacted_thinking":
            return {"type": "redacted_thinking", "data": _text(block.get("data"))}
        case "tool_use" if block.get("name") and isinstance(block["name"], str):
            identity = _text(block.get("id")) or spare_id
            called = {"type": "tool_use", "id": identity, "name": block["name"]}
            return {**called, "input": _input(block.get("input"))}
    return None


def _input(value: object) -> dict[str, Any]:
    """A call's arguments, an object whatever came: none are an empty one, a text is read."""
    if isinstance(value, dict):
        return value
    return input_of(settled(value if isinstance(value, str) else json.dumps(value)))


def _is_blank(block: Mapping[str, Any]) -> bool:
    return block["type"] == "text" and not block["text"].strip()


def _characters(block: dict[str, Any]) -> int:
    arguments = len(json.dumps(block.get("input"))) if "input" in block else 0
    return len(block.get("text", "")) + len(block.get("thinking", "")) + arguments


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
