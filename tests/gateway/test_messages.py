"""The Messages API's answers are read for the meter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.anthropic.stream import MessagesReader
from a40console.gateway.meter import Meter, Passage
from a40console.gateway.sse import data_of
from tests.gateway.stub import capture


def reader() -> tuple[MessagesReader, Passage]:
    meter = Meter()
    passage = meter.accept("messages", "a40-1")
    return MessagesReader(meter, passage), passage


def take(read: MessagesReader, event: bytes) -> None:
    data = data_of(event)
    if data is not None:
        read.read(data)


@pytest.mark.parametrize(
    ("name", "generated", "prompt", "cached", "reason"),
    [
        ("vllm-messages.sse", 27, 37, 0, "stop"),
        ("llamacpp-messages.sse", 11, 32, 31, "stop"),
        ("vllm-messages-tool.sse", 52, 37, 0, "tool_use"),
    ],
)
def test_recorded_streams(name: str, generated: int, prompt: int, cached: int, reason: str) -> None:
    read, passage = reader()
    for event in capture(name):
        take(read, event)
        if not passage.finish_reason:
            assert passage.generated_tokens is None
            assert passage.row().method == "apportioned"
    row = passage.row()
    assert (row.generated_tokens, row.method) == (generated, "usage")
    assert (row.prompt_tokens, row.cached_tokens, row.finish_reason) == (prompt, cached, reason)
    assert row.characters > 0


def test_thinking_counts_and_the_start_of_a_message_does_not() -> None:
    read, passage = reader()
    start, block, first, *_ = capture("vllm-messages-thinking.sse")
    take(read, start)
    take(read, block)
    assert (passage.prompt_tokens, passage.first_token_at_s) == (23, None)
    take(read, first)
    assert passage.characters == 3
    assert passage.first_token_at_s is not None


def test_an_answer_that_is_no_stream() -> None:
    read, passage = reader()
    usage = {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 32}
    content = [{"type": "text", "text": "abc"}, {"type": "tool_use", "name": "ls", "input": {}}]
    read.whole({"content": content, "stop_reason": "tool_use", "usage": usage})
    row = passage.row()
    assert (row.prompt_tokens, row.cached_tokens, row.generated_tokens) == (37, 32, 7)
    assert (row.finish_reason, row.characters) == ("tool_use", 5)


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["message", "usage", "delta", "type", "content_block", "error", "text",
                         "output_tokens", "input_tokens", "stop_reason", "content", "input"]),
        inner | st.sampled_from(["message_start", "message_delta", "content_block_start",
                                 "content_block_delta", "error", "text_delta"]),
        max_size=4),
    max_leaves=15,
)  # fmt: skip


@given(ODD)
def test_nothing_in_a_stream_can_break_it(value: Any) -> None:
    read, passage = reader()
    take(read, b"event: x\ndata: " + json.dumps(value).encode() + b"\n\n")
    if isinstance(value, dict):
        read.whole(value)
    told = passage.row()
    for count in (told.prompt_tokens, told.cached_tokens, told.generated_tokens):
        assert count is None or (type(count) is int and count >= 0)
