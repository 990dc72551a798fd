"""The Messages API's rules of a stream, and the message that a client makes of one."""

from __future__ import annotations

import json
from typing import Any

DELTAS = {
    "text": {"text_delta": "text"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "tool_use": {"input_json_delta": "partial_json"},
}


def message_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What a client has in the end; fails on whatever no stream may do."""
    assert events[0]["type"] == "message_start"
    message: dict[str, Any] = dict(events[0]["message"])
    assert {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"} <= (
        message.keys()
    )
    assert (message["type"], message["role"], message["content"]) == ("message", "assistant", [])
    assert {"input_tokens", "output_tokens"} <= message["usage"].keys()
    content: list[dict[str, Any]] = []
    opened = False
    for event in events[1:-2]:
        assert event["index"] == len(content) - (0 if event["type"] == "content_block_start" else 1)
        match event["type"]:
            case "content_block_start":
                assert not opened
                opened = True
                content.append({**event["content_block"], "pieces": []})
            case "content_block_delta":
                assert opened
                key = DELTAS[content[-1]["type"]][event["delta"]["type"]]
                content[-1]["pieces"].append((key, event["delta"][key]))
            case "content_block_stop":
                assert opened
                opened = False
            case other:
                raise AssertionError(other)
    assert not opened
    assert events[-2]["type"] == "message_delta"
    assert events[-2]["delta"]["stop_reason"] is not None
    assert events[-1] == {"type": "message_stop"}
    usage = message["usage"] | events[-2]["usage"]
    return {
        **message,
        **events[-2]["delta"],
        "usage": usage,
        "content": [_closed(block) for block in content],
    }


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    joined: dict[str, str] = {}
    for key, piece in block.pop("pieces"):
        joined[key] = joined.get(key, "") + piece
    if block["type"] == "tool_use":
        assert block["input"] == {}
        raw = joined["partial_json"]
        try:
            block["input"] = json.loads(raw)
        except ValueError:
            block["input"] = raw
        return block
    return block | joined
