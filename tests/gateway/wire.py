"""A stream of the Messages API as a strict client reads it from the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.gateway.grammar import message_of

USAGE = {
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
}
KINDS = {
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "rate_limit_error",
    "timeout_error",
    "api_error",
    "overloaded_error",
}
REASONS = {
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
}


@dataclass(frozen=True)
class Read:
    """What a client has of a stream."""

    events: list[dict[str, Any]]
    """All but the pings."""

    pings: int
    error: dict[str, Any] | None
    message: dict[str, Any] | None
    """None where the stream ended with an error."""

    @property
    def content(self) -> Any:
        assert self.message is not None
        return self.message["content"]

    @property
    def reason(self) -> Any:
        assert self.message is not None
        return self.message["stop_reason"]


def parsed(text: bytes) -> list[dict[str, Any]]:
    """Every event; each is two lines, and named by its type."""
    assert text.endswith(b"\n\n") or not text
    events = []
    for part in text.decode().split("\n\n")[:-1]:
        name, _, data = part.partition("\n")
        assert data.startswith("data: {"), part
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def read_stream(text: bytes) -> Read:
    """Read a whole stream; fails on whatever a stream may not do."""
    everything = parsed(text)
    events = [event for event in everything if event["type"] != "ping"]
    pings = len(everything) - len(events)
    assert all(event == {"type": "ping"} for event in everything if event["type"] == "ping")
    if events[-1]["type"] == "error":
        error = events[-1]["error"]
        assert error["type"] in KINDS
        assert isinstance(error["message"], str)
        assert error["message"]
        assert isinstance(events[-1]["request_id"], str)
        check_part(events[:-1])
        return Read(events, pings, error, None)
    message = message_of(events)
    first, last = events[0]["message"]["usage"], events[-2]["usage"]
    assert set(first) == set(last) == USAGE
    assert all(type(count) is int and count >= 0 for count in (*first.values(), *last.values()))
    assert last["output_tokens"] >= first["output_tokens"]
    assert message["stop_reason"] in REASONS
    called = any(block["type"] == "tool_use" for block in message["content"])
    if message["stop_reason"] == "tool_use":
        assert called
    if message["stop_reason"] == "end_turn":
        assert not called
    return Read(events, pings, None, message)


def check_part(events: list[dict[str, Any]]) -> None:
    """A stream up to an error is one that could have gone on: ended here, it is valid."""
    if not events:
        return
    open_index = None
    for event in events:
        if event["type"] == "content_block_start":
            open_index = event["index"]
        elif event["type"] == "content_block_stop":
            open_index = None
    stop = [] if open_index is None else [{"type": "content_block_stop", "index": open_index}]
    if stop and events[-1]["type"] == "content_block_start":
        block = events[-1]["content_block"]
        empty = {"tool_use": ("input_json_delta", "partial_json"), "text": ("text_delta", "text"),
                 "thinking": ("thinking_delta", "thinking")}  # fmt: skip
        kind, key = empty.get(block["type"], ("", ""))
        if kind:
            delta = {"type": kind, key: ""}
            stop = [{"type": "content_block_delta", "index": open_index, "delta": delta}, *stop]
    told = {"stop_reason": "end_turn", "stop_sequence": None}
    end = {"type": "message_delta", "delta": told, "usage": {}}
    message_of([*events, *stop, end, {"type": "message_stop"}])
