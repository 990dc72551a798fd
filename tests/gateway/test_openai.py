"""What is added to be counted is taken off again, to the byte, on recorded streams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.meter import Meter, Passage
from a40console.gateway.openai import NOTHING, Additions, OpenAIReader, additions_for
from a40console.gateway.upstream import Upstream
from a40console.model.engine import Endpoint, EngineKind
from tests.gateway.stub import capture

BOTH = {"include_usage": True, "continuous_usage_stats": True}
ALL_OURS = Additions(chunk_usage=True, final_usage=True)


def engine(kind: EngineKind, *, plugin: bool = False) -> Upstream:
    return Upstream(Endpoint("http://engine"), kind, "m", plugin, "run")


def reader(additions: Additions = NOTHING) -> tuple[OpenAIReader, Passage]:
    meter = Meter()
    passage = meter.accept("chat", "a40-1")
    return OpenAIReader(meter, passage, additions), passage


def data(event: bytes) -> Any:
    return json.loads(event.removeprefix(b"data: "))


@pytest.mark.parametrize(
    ("asked", "options", "final_is_ours"),
    [
        ({}, BOTH, True),
        ({"stream_options": None}, BOTH, True),
        ({"stream_options": {}}, BOTH, True),
        ({"stream_options": {"include_usage": False}}, BOTH, True),
        ({"stream_options": {"include_usage": True}}, BOTH, False),
        ({"stream_options": {"continuous_usage_stats": True}}, BOTH, True),
        ({"stream_options": {"include_usage": True, "x": 1}}, {**BOTH, "x": 1}, False),
    ],
)
def test_vllm_is_asked_for_its_count_on_each_chunk(
    asked: dict[str, Any], options: dict[str, Any], final_is_ours: bool
) -> None:
    added = additions_for(engine("vllm"), {"stream": True, **asked})
    assert added == Additions(("stream_options", options), True, final_is_ours)


@pytest.mark.parametrize(
    "asked",
    [{}, {"stream": False}, {"stream": "true"}, {"stream": True, "stream_options": BOTH},
     {"stream": True, "stream_options": 5}],
)  # fmt: skip
def test_nothing_is_added_where_it_is_asked_for_or_not_understood(asked: dict[str, Any]) -> None:
    assert additions_for(engine("vllm"), asked) is NOTHING


def test_each_engine_is_asked_in_its_own_way() -> None:
    stream = {"stream": True}
    timings = Additions(("timings_per_token", True), chunk_timings=True)
    assert additions_for(engine("llamacpp"), stream) == timings
    assert additions_for(engine("llamacpp"), {**stream, "timings_per_token": False}) == timings
    assert additions_for(engine("llamacpp"), {**stream, "timings_per_token": True}) is NOTHING
    foreign = Additions(("stream_options", {"include_usage": True}), True, True)
    assert additions_for(engine("foreign"), stream) == foreign
    assert additions_for(engine("vllm", plugin=True), stream) is NOTHING


def test_vllms_chunks_are_what_they_are_without_usage() -> None:
    read, passage = reader(ALL_OURS)
    passed = [read.event(event) for event in capture("vllm-chat-usage.sse")]
    assert passed.pop() == b"data: [DONE]\n\n"
    assert passed.pop() == b""
    for event, original in zip(passed, capture("vllm-chat-usage.sse"), strict=False):
        expected = data(original)
        usage = expected.pop("usage")
        assert data(event) == expected
        cut = json.dumps(usage, separators=(",", ":"))
        assert event == original.replace(f',"usage":{cut}'.encode(), b"")
    assert passage.generated_tokens == 77
    assert (passage.prompt_tokens, passage.cached_tokens) == (37, None)
    assert (passage.finish_reason, read.complete) == ("stop", True)
    assert passage.row().method == "usage"
    assert passage.row().marks[-1].tokens == 77


def test_without_usage_vllms_recorded_chunks_are_the_same_in_form() -> None:
    plain, stripped = capture("vllm-chat-plain.sse"), capture("vllm-chat-usage.sse")
    read, _ = reader(ALL_OURS)
    for theirs, event in zip(plain[:20], stripped[:20], strict=True):
        assert data(read.event(event)).keys() == data(theirs).keys()


def test_a_client_that_asked_for_the_last_usage_gets_it() -> None:
    read, _ = reader(Additions(chunk_usage=True))
    events = capture("vllm-chat-usage.sse")
    passed = [read.event(event) for event in events]
    assert passed[-2:] == events[-2:]
    assert not any(b'"usage"' in event for event in passed[:-2])


@pytest.mark.parametrize(
    "name", ["vllm-chat-usage.sse", "vllm-chat-plain.sse", "vllm-chat-reasoning.sse",
             "llamacpp-chat-usage.sse", "llamacpp-completions-plain.sse"],
)  # fmt: skip
def test_without_additions_every_event_is_the_same_object(name: str) -> None:
    read, passage = reader()
    assert all(read.event(event) is event for event in capture(name))
    assert (read.complete, read.failed) == (True, False)
    assert passage.characters > 0


def test_llamacpps_timings_are_cut_except_where_they_always_stand() -> None:
    read, passage = reader(Additions(chunk_timings=True))
    events = capture("llamacpp-completions-timings.sse")
    passed = [read.event(event) for event in events]
    assert not any(b"timings" in event for event in passed[:3])
    assert passed[3:] == events[3:]
    assert (passage.generated_tokens, passage.prompt_tokens, passage.cached_tokens) == (3, 5, 4)
    assert passage.row().marks[-1].tokens == 3


def test_reasoning_is_content_and_the_role_is_not() -> None:
    read, passage = reader()
    role, first, *_ = capture("vllm-chat-reasoning.sse")
    read.event(role)
    assert passage.first_token_at_s is None
    read.event(first)
    assert passage.first_token_at_s is not None


def test_tool_calls_are_content() -> None:
    read, passage = reader()
    call = {"index": 0, "function": {"name": "get", "arguments": '{"a"'}}
    chunk = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    read.event(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    assert (passage.characters, passage.finish_reason) == (7, "tool_use")


def test_tokens_of_several_choices_add_up() -> None:
    read, passage = reader(ALL_OURS)
    for index, tokens in ((0, 1), (1, 1), (0, 2), (1, 3)):
        choice = {"index": index, "delta": {"content": "x"}, "finish_reason": None}
        chunk = {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": tokens}}
        read.event(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    assert passage.generated_tokens == 5


def test_an_error_inside_the_stream_is_a_failure_and_passes() -> None:
    read, _ = reader(ALL_OURS)
    *_, error, done = events = capture("vllm-chat-killed.sse")
    passed = [read.event(event) for event in events]
    assert passed[-2:] == [error, done]
    assert (read.failed, read.complete) == (True, True)


def test_an_answer_that_is_no_stream() -> None:
    read, passage = reader()
    usage = {
        "prompt_tokens": 5,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    choice = {"message": {"content": "abc"}, "finish_reason": "length"}
    read.whole(json.dumps({"choices": [choice], "usage": usage}).encode())
    row = passage.row()
    assert (row.prompt_tokens, row.cached_tokens, row.generated_tokens) == (5, 4, 7)
    assert (row.finish_reason, row.characters, row.method) == ("length", 3, "usage")
    assert row.first_token_at_s is None


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["choices", "usage", "delta", "index", "timings", "error", "content",
                         "tool_calls", "function", "finish_reason", "completion_tokens"]),
        inner, max_size=4),
    max_leaves=15,
)  # fmt: skip


@given(ODD | st.binary(max_size=60))
def test_nothing_in_a_stream_can_break_it(value: Any) -> None:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    event = b"data: " + body + b"\n\n"
    for additions in (NOTHING, ALL_OURS, Additions(chunk_timings=True)):
        read, _ = reader(additions)
        passed = read.event(event)
        read.whole(body)
        assert passed == b"" or passed.startswith(b"data:")


def test_a_chunk_nested_without_end_passes_untouched() -> None:
    read, _ = reader(ALL_OURS)
    event = b"data: " + b'{"a":' * 100_000 + b"\n\n"
    assert read.event(event) is event
