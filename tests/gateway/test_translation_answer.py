"""A chat answer is the same message whatever its chunks are, and its stream is always valid."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.translation import ChatToMessages
from a40console.gateway.translation.pieces import UNPARSED
from tests.gateway.chat_answers import ARGUMENTS, BROKEN_ARGUMENTS, GARBAGE, answers, chunkings
from tests.gateway.grammar import message_of

ID = "msg_1"


def machine() -> ChatToMessages:
    return ChatToMessages("claude-local", ID)


def streamed(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made = machine()
    events = [event for chunk in chunks for event in made.feed(chunk)]
    return [*events, *made.end()]


def said(*deltas: dict[str, Any], **choice: Any) -> list[dict[str, Any]]:
    """Chunks with these deltas; the last one says why it ends."""
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    ended = {"index": 0, "delta": {}, "finish_reason": "stop", **choice}
    return [*chunks, {"choices": [ended]}]


def call(index: int, arguments: str, **first: str) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments}
    if "name" in first:
        function["name"] = first.pop("name")
    return {"index": index, "function": function, **first}


def content(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return message_of(streamed(chunks))["content"]  # type: ignore[no-any-return]


@given(st.data())
def test_any_chunking_is_the_whole_answer(data: st.DataObject) -> None:
    answer = data.draw(answers())
    message = message_of(streamed(data.draw(chunkings(answer))))
    assert message == machine().whole(answer)


@given(st.data())
def test_whatever_the_arguments_are_the_stream_is_valid(data: st.DataObject) -> None:
    answer = data.draw(answers(ARGUMENTS | BROKEN_ARGUMENTS))
    message = message_of(streamed(data.draw(chunkings(answer))))
    whole = machine().whole(answer)
    assert [block["type"] for block in message["content"]] == [
        block["type"] for block in whole["content"]
    ]
    assert message["stop_reason"] == whole["stop_reason"]


@given(st.lists(GARBAGE, max_size=5))
def test_garbage_ends_as_a_valid_stream_or_an_error(chunks: list[dict[str, Any]]) -> None:
    events = streamed(chunks)
    if events[-1]["type"] != "error":
        message_of(events)
    for chunk in chunks:
        json.dumps(machine().whole(chunk))


def test_the_arguments_of_a_call_that_is_not_the_open_one_are_kept() -> None:
    events = said(
        {"tool_calls": [call(0, "", id="a", name="Bash"), call(1, '{"x": ', id="b", name="Read")]},
        {"tool_calls": [call(0, '{"y": '), call(1, "1}"), call(0, "2}")]},
        finish_reason="tool_calls",
    )
    assert content(events) == [
        {"type": "tool_use", "id": "a", "name": "Bash", "input": {"y": 2}},
        {"type": "tool_use", "id": "b", "name": "Read", "input": {"x": 1}},
    ]


def test_a_call_flows_as_soon_as_the_one_before_it_is_complete() -> None:
    made = machine()
    made.feed(said({"tool_calls": [call(0, '{"a": 1}', id="a", name="Bash")]})[0])
    events = made.feed(said({"tool_calls": [call(1, '{"b"', id="b", name="Read")]})[0])
    assert [event["type"] for event in events] == [
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
    ]
    assert events[-1]["delta"]["partial_json"] == '{"b"'


@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}", '"{}"'])
def test_a_call_without_arguments_has_an_empty_object(arguments: str) -> None:
    chunks = said({"tool_calls": [call(0, arguments, id="a", name="Now")]}, {"tool_calls": []})
    assert content(chunks) == [{"type": "tool_use", "id": "a", "name": "Now", "input": {}}]


def test_calls_at_one_index_with_ids_of_their_own_are_two() -> None:
    chunks = said(
        {"tool_calls": [call(0, '{"a": 1}', id="a", name="Bash")]},
        {"tool_calls": [call(0, '{"b": 2}', id="b", name="Bash")]},
    )
    assert [block["id"] for block in content(chunks)] == ["a", "b"]


def test_thought_text_and_call_in_one_delta() -> None:
    chunks = said(
        {"reasoning": "I must look."},
        {
            "reasoning": " Now.",
            "content": "Looking",
            "tool_calls": [call(0, '{"path": "a"}', id="a", name="Read")],
        },
        finish_reason="tool_calls",
    )
    assert content(chunks) == [
        {"type": "thinking", "thinking": "I must look. Now.", "signature": ID},
        {"type": "text", "text": "Looking"},
        {"type": "tool_use", "id": "a", "name": "Read", "input": {"path": "a"}},
    ]


def test_white_space_between_calls_is_no_text() -> None:
    chunks = said(
        {"content": "\n", "tool_calls": [call(0, "{}", id="a", name="Bash")]},
        {"content": "\n\n"},
        {"tool_calls": [call(1, "{}", id="b", name="Bash")]},
        {"content": "\n"},
    )
    assert [block["type"] for block in content(chunks)] == ["tool_use", "tool_use"]


def test_white_space_alone_and_before_words_stays() -> None:
    assert content(said({"content": " \n"})) == [{"type": "text", "text": " \n"}]
    chunks = said({"content": "\n"}, {"content": "\n"}, {"content": "Hi "}, {"content": "\n"})
    assert content(chunks) == [{"type": "text", "text": "\n\nHi \n"}]


def test_an_empty_list_of_calls_is_none() -> None:
    chunks = said({"content": "a", "tool_calls": []}, {"content": "b", "tool_calls": []})
    assert content(chunks) == [{"type": "text", "text": "ab"}]


def test_a_thought_that_no_parser_took_out_stays_text() -> None:
    chunks = said({"content": "<think>Hm"}, {"content": "</think>Yes"})
    assert content(chunks) == [{"type": "text", "text": "<think>Hm</think>Yes"}]


CALLED = {"tool_calls": [call(0, "{}", id="a", name="Bash")]}
HALF_CALLED = {"tool_calls": [call(0, '{"a', id="a", name="Bash")]}


@pytest.mark.parametrize(
    ("delta", "choice", "expected"),
    [
        ({"content": "a"}, {"finish_reason": "stop"}, ("end_turn", None)),
        ({"content": "a"}, {"finish_reason": "length"}, ("max_tokens", None)),
        ({"content": "a"}, {"stop_reason": "END"}, ("stop_sequence", "END")),
        ({"content": "a"}, {"stop_reason": 2}, ("end_turn", None)),
        ({"content": "a"}, {"finish_reason": "content_filter"}, ("refusal", None)),
        (CALLED, {"finish_reason": "tool_calls"}, ("tool_use", None)),
        (CALLED, {"finish_reason": "stop"}, ("tool_use", None)),
        (CALLED, {"finish_reason": "length"}, ("max_tokens", None)),
        (CALLED, {"stop_reason": "END"}, ("tool_use", None)),
        (HALF_CALLED, {"stop_reason": "END"}, ("stop_sequence", "END")),
        (HALF_CALLED, {"finish_reason": "tool_calls"}, ("tool_use", None)),
    ],
)
def test_why_it_stopped(
    delta: dict[str, Any], choice: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    message = message_of(streamed(said(delta, **choice)))
    assert (message["stop_reason"], message["stop_sequence"]) == expected


def test_usage_at_the_start_and_at_the_end() -> None:
    first = {"prompt_tokens": 50, "completion_tokens": 0}
    last = {
        "prompt_tokens": 50,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 32},
    }
    start, *chunks = said({"content": "a"})
    events = streamed([{**start, "usage": first}, *chunks, {"choices": [], "usage": last}])
    assert events[0]["message"]["usage"] == {"input_tokens": 50, "output_tokens": 0}
    assert events[-2]["usage"] == {
        "input_tokens": 18,
        "cache_read_input_tokens": 32,
        "output_tokens": 7,
    }


def test_llamacpp_counts_in_timings() -> None:
    start, *chunks = said({"content": "a"})
    timings = {"prompt_n": 5, "cache_n": 40, "predicted_n": 3}
    events = streamed([start, {**chunks[0], "timings": timings}])
    assert events[-2]["usage"] == {
        "input_tokens": 5,
        "cache_read_input_tokens": 40,
        "output_tokens": 3,
    }


def test_without_usage_the_answer_is_estimated() -> None:
    events = streamed(said({"content": "a" * 41}))
    assert events[-2]["usage"] == {"output_tokens": 11}


def test_an_error_in_the_stream_ends_it() -> None:
    made = machine()
    made.feed(said({"content": "a"})[0])
    events = made.feed({"error": {"message": "EngineCore died", "code": 500}})
    assert events == [
        {"type": "error", "error": {"type": "api_error", "message": "EngineCore died"}}
    ]
    assert made.end() == []


def test_an_answer_that_the_engine_aborts_is_an_error() -> None:
    made = machine()
    events = [
        event
        for chunk in said({"content": "a"}, finish_reason="abort")
        for event in made.feed(chunk)
    ]
    assert events[-1]["type"] == "error"


def test_it_says_nothing_of_an_end_that_the_engine_did_not_tell() -> None:
    made = machine()
    made.feed(said({"content": "a"})[0])
    assert not made.finished


def test_a_whole_answer_keeps_arguments_that_are_no_json() -> None:
    function = {"name": "Write", "arguments": '{"path": "a", "text": "b'}
    message = {"content": None, "tool_calls": [{"id": "a", "function": function}]}
    answer = {"choices": [{"message": message, "finish_reason": "length"}]}
    made = machine().whole(answer)
    raw = function["arguments"]
    assert made["content"][0]["input"] == {UNPARSED: {"raw": raw, "len": len(raw)}}
    assert made["stop_reason"] == "max_tokens"
    json.dumps(made)


def test_a_whole_answer_that_is_an_error_stays_one() -> None:
    assert machine().whole({"error": {"message": "no"}}) == {
        "type": "error",
        "error": {"type": "api_error", "message": "no"},
    }


def test_a_long_call_costs_no_more_for_each_chunk_than_a_short_one() -> None:
    def per_chunk_s(chunks: int) -> float:
        made = machine()
        made.feed({"choices": [{"delta": {"tool_calls": [call(0, '{"a": "', id="a", name="W")]}}]})
        piece = {"choices": [{"delta": {"tool_calls": [call(0, "word} " * 4)]}}]}
        began_s = time.process_time()
        for _ in range(chunks):
            made.feed(piece)
        return (time.process_time() - began_s) / chunks

    short_s = min(per_chunk_s(500) for _ in range(3))
    long_s = min(per_chunk_s(20_000) for _ in range(2))
    assert long_s < 4 * short_s, (short_s, long_s)


def test_a_long_call_beside_a_text_comes_out_whole() -> None:
    pieces = ["  ", '{"text": "', *(f"line {n}}} " for n in range(2000)), '"', "}", " \n"]
    deltas = [{"tool_calls": [call(0, "", id="a", name="Write")]}]
    deltas += [{"tool_calls": [call(0, piece)]} for piece in pieces]
    (block,) = content(said(*deltas, finish_reason="tool_calls"))
    assert block["input"] == {"text": "".join(pieces[2:-3])}
