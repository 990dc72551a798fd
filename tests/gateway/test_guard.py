"""What goes out is a valid stream: each fault of an engine or a bridge that was seen somewhere.

The numbers are the rows of the faults of such bridges, as they are told in their threads.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from a40console.gateway.anthropic.answer_block import written
from a40console.gateway.anthropic.guard import PARKED_LIMIT_BYTES, Guard
from a40console.gateway.sse import data_of
from tests.gateway.stub import capture
from tests.gateway.wire import Read, read_stream

CUT = "The engine ended this answer."


def start(**message: Any) -> dict[str, Any]:
    told = {"id": "chatcmpl-1", "type": "message", "role": "assistant", "model": "served"}
    usage = {"input_tokens": 37, "output_tokens": 0}
    return {"type": "message_start", "message": {**told, "content": [], "usage": usage, **message}}


def block(index: int, kind: str = "text", **more: Any) -> dict[str, Any]:
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": ""},
        "tool_use": {"input": {}},
    }
    head = {"type": kind, **empty.get(kind, {}), **more}
    return {"type": "content_block_start", "index": index, "content_block": head}


def tool(index: int, identity: str = "t1", name: str = "Bash", **more: Any) -> dict[str, Any]:
    return block(index, "tool_use", id=identity, name=name, **more)


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def text(index: int, words: str) -> dict[str, Any]:
    return delta(index, "text_delta", text=words)


def args(index: int, piece: str) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=piece)


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "end_turn", **usage: int) -> list[dict[str, Any]]:
    told = {"stop_reason": reason, "stop_sequence": None}
    counts = {"output_tokens": 9} | usage
    return [{"type": "message_delta", "delta": told, "usage": counts}, {"type": "message_stop"}]


def guarded(events: list[dict[str, Any]], **settings: Any) -> Read:
    """The client's stream for an engine's, which ends after these events."""
    guard = Guard(**{"model": "asked", "request_id": "a40-1"} | settings)
    out = b"".join([guard.take(event, written(event)) for event in events])
    return read_stream(out + guard.end(CUT))


# --- what is healthy -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["vllm-messages.sse", "vllm-messages-tool.sse", "vllm-messages-thinking.sse",
     "llamacpp-messages.sse"],
)  # fmt: skip
def test_a_healthy_stream_passes_as_the_same_bytes_but_for_its_first_and_last_counts(
    name: str,
) -> None:
    guard = Guard(model=None, request_id="a40-1")
    engines = capture(name)
    out = b""
    for event in engines:
        data = data_of(event)
        assert data is not None
        out += guard.take(data, event)
    got = [part + b"\n\n" for part in out.split(b"\n\n")[:-1]]
    passed = [b"message_start" not in event and b"message_delta" not in event for event in engines]
    same = [event for event, passes in zip(engines, passed, strict=True) if passes]
    ours = [
        event for event in got if b"message_start" not in event and b"message_delta" not in event
    ]
    if name == "vllm-messages-thinking.sse":  # its start lacks the signature
        same, ours = same[1:], ours[1:]
    assert ours == same
    assert read_stream(out).message is not None
    assert guard.dropped == 0


def test_the_event_under_way_is_not_even_copied() -> None:
    guard = Guard(model="m", request_id="a40-1")
    for event in (start(), block(0), text(0, "a")):
        guard.take(event, written(event))
    raw = written(text(0, "b"))
    assert guard.take(text(0, "b"), raw) is raw


def test_46_the_model_is_called_what_the_client_called_it() -> None:
    read = guarded([start(model="served"), *end()], model="claude-sonnet-5")
    assert read.message is not None
    assert read.message["model"] == "claude-sonnet-5"
    assert read.message["id"] == "chatcmpl-1"


# --- the message: 9 to 12, 28, replays 40 and 41 ------------------------------------------------


def test_09_a_message_without_type_or_role_gets_them() -> None:
    bare = {"type": "message_start", "message": {"id": "x", "model": "served"}}
    read = guarded([bare, block(0), text(0, "hi"), stop(0), *end()])
    assert read.events[0]["message"] == {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": "asked",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 0,
        },
    }


def test_10_11_a_prompt_that_is_not_counted_is_estimated_rather_than_nothing() -> None:
    nothing = start(usage={"input_tokens": 0, "output_tokens": 0})
    read = guarded([nothing, *end(input_tokens=4567)], prompt_estimate=4321)
    assert read.events[0]["message"]["usage"]["input_tokens"] == 4321
    assert read.events[-2]["usage"]["input_tokens"] == 4567


def test_12_what_the_cache_gave_stands_in_both_counts() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 31, "output_tokens": 0}
    read = guarded([start(usage=usage), *end(output_tokens=11)])
    counted = {**usage, "cache_creation_input_tokens": 0}
    assert read.events[0]["message"]["usage"] == counted
    assert read.events[-2]["usage"] == {**counted, "output_tokens": 11}


def test_replay_41_an_answer_that_is_not_counted_is_estimated_by_its_characters() -> None:
    events = [block(0), text(0, "x" * 40), stop(0)]
    read = guarded([*events, {"type": "message_stop"}], prompt_estimate=10)
    assert read.events[-2]["usage"]["output_tokens"] == 10
    assert read.events[0]["message"]["usage"]["input_tokens"] == 10


def test_replay_41_counts_never_go_back() -> None:
    first = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 30}}
    read = guarded([start(), first, *end(output_tokens=7)])
    assert read.events[-2]["usage"]["output_tokens"] == 30


@pytest.mark.parametrize("reason", [None, "", "because", 7])
def test_28_a_stop_reason_is_always_given(reason: Any) -> None:
    assert guarded([start(), block(0), text(0, "a"), stop(0), *end(reason)]).reason == "end_turn"
    called = [start(), tool(0), args(0, "{}"), stop(0)]
    assert guarded([*called, *end(reason)]).reason == "tool_use"


def test_29_the_sequence_that_stopped_it_is_named() -> None:
    told = {"stop_reason": "stop_sequence", "stop_sequence": "X"}
    events = [start(), {"type": "message_delta", "delta": told, "usage": {"output_tokens": 1}}]
    read = guarded([*events, {"type": "message_stop"}])
    assert read.events[-2]["delta"] == told


def test_a_second_start_and_what_follows_the_stop_are_nothing() -> None:
    read = guarded([start(), start(id="y"), block(0), text(0, "a"), stop(0), *end(), *end()])
    assert [event["type"] for event in read.events] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip


def test_a_stream_that_lacks_only_its_last_event_is_whole() -> None:
    events = [start(), block(0), text(0, "a"), stop(0), end()[0]]
    assert guarded(events).reason == "end_turn"


# --- the blocks: 18 to 27, 45 -------------------------------------------------------------------


def test_19_20_a_text_without_a_start_and_every_fragment_of_a_call_arrive() -> None:
    pieces = ['{"comm', 'and":', '"ls"}']
    read = guarded([
        start(), text(0, "Let me"), text(0, " see."), tool(1), *[args(1, one) for one in pieces],
        stop(1), *end("tool_use"),
    ])  # fmt: skip
    assert [one["type"] for one in read.content] == ["text", "tool_use"]
    assert read.content[0]["text"] == "Let me see."
    assert read.content[1]["input"] == {"command": "ls"}


def test_20_indexes_are_dense_whatever_the_engine_counts() -> None:
    events = [start(), block(3), text(3, "a"), stop(3), tool(7), args(7, "{}"), stop(7)]
    assert len(guarded([*events, *end()]).content) == 2


def test_21_two_calls_in_a_row_are_two_blocks() -> None:
    first, second = tool(0, "t1", "Read"), tool(1, "t2", "Grep")
    read = guarded([start(), first, args(0, '{"a":1}'), second, args(1, '{"b":2}'), *end()])
    assert [one["input"] for one in read.content] == [{"a": 1}, {"b": 2}]
    assert [one["id"] for one in read.content] == ["t1", "t2"]


def test_21_calls_that_come_interleaved_are_put_in_order() -> None:
    read = guarded([
        start(), tool(0, "t1"), args(0, '{"a":'), tool(1, "t2"), args(1, '{"b":'), args(0, "1}"),
        args(1, "2}"), stop(0), stop(1), *end("tool_use"),
    ])  # fmt: skip
    assert [one["input"] for one in read.content] == [{"a": 1}, {"b": 2}]
    assert read.reason == "tool_use"


def test_22_the_line_end_between_two_calls_is_no_text_of_either() -> None:
    read = guarded([
        start(), tool(0, "t1"), args(0, '{"a":1}'), text(0, "\n"), stop(0), block(1),
        text(1, "\n"), stop(1), tool(2, "t2"), args(2, "{}"), stop(2), *end("tool_use"),
    ])  # fmt: skip
    assert [one["type"] for one in read.content] == ["tool_use", "tool_use"]


def test_22_a_text_inside_of_a_call_follows_it() -> None:
    read = guarded([
        start(), tool(0), args(0, '{"a":'), text(0, "Done"), args(0, "1}"), text(0, "."),
        stop(0), *end("tool_use"),
    ])  # fmt: skip
    assert [one["type"] for one in read.content] == ["tool_use", "text"]
    assert (read.content[0]["input"], read.content[1]["text"]) == ({"a": 1}, "Done.")


@pytest.mark.parametrize(
    "pieces", [[], [""], ["", " \n"], ["null"], ["nu", "ll"], ["{}"], ["{", "}"]]
)
def test_24_a_call_without_arguments_has_an_empty_object(pieces: list[str]) -> None:
    events = [start(), tool(0), *[args(0, one) for one in pieces], stop(0)]
    following = [tool(1, "t2"), args(1, '{"b":2}'), stop(1)]
    read = guarded([*events, *following, *end("tool_use")])
    assert [one["input"] for one in read.content] == [{}, {"b": 2}]


def test_24_arguments_that_come_with_the_start_are_not_lost() -> None:
    read = guarded([start(), tool(0, input={"a": 1}), stop(0), *end()])
    assert read.content[0]["input"] == {"a": 1}
    read = guarded([start(), tool(0, input={"a": 1}), args(0, '{"a":1}'), stop(0), *end()])
    assert read.content[0]["input"] == {"a": 1}


@pytest.mark.parametrize(
    ("said", "called", "told"),
    [("end_turn", True, "tool_use"), ("stop", True, "tool_use"), ("tool_use", False, "end_turn"),
     ("max_tokens", True, "max_tokens"), ("length", True, "max_tokens"),
     ("stop_sequence", True, "tool_use"), ("tool_calls", True, "tool_use")],
)  # fmt: skip
def test_26_the_reason_is_a_call_exactly_if_one_went_out(
    said: str, called: bool, told: str
) -> None:
    spoken = [block(0), text(0, "I call"), stop(0)]
    calls = [tool(1), args(1, "{}"), stop(1)] if called else []
    assert guarded([start(), *spoken, *calls, *end(said)]).reason == told


def test_26_a_call_that_a_stop_sequence_cut_must_not_run() -> None:
    read = guarded([start(), tool(0), args(0, '{"a":'), stop(0), *end("stop_sequence")])
    assert read.reason == "stop_sequence"


def test_27_no_empty_text_stands_before_a_call() -> None:
    for words in ([], [text(0, "")], [text(0, "\n\n")]):
        read = guarded(
            [start(), block(0), *words, stop(0), tool(1), args(1, "{}"), stop(1), *end()]
        )
        assert [one["type"] for one in read.content] == ["tool_use"]


def test_27_white_space_before_a_text_is_part_of_it() -> None:
    read = guarded([start(), block(0), text(0, "\n\n"), text(0, "Hello"), stop(0), *end()])
    assert read.content[0]["text"] == "\n\nHello"


def test_45_arguments_that_are_no_json_pass_for_the_client_to_answer() -> None:
    read = guarded([start(), tool(0), args(0, '{"a":tru'), stop(0), *end("tool_use")])
    assert (read.content[0]["input"], read.reason) == ('{"a":tru', "tool_use")


def test_a_thought_has_its_signature_last() -> None:
    signed = delta(0, "signature_delta", signature="s")
    read = guarded([
        start(), block(0, "thinking"), delta(0, "thinking_delta", thinking="a"), signed,
        delta(0, "thinking_delta", thinking="b"), signed, stop(0), *end(),
    ])  # fmt: skip
    assert read.content == [{"type": "thinking", "thinking": "ab", "signature": "s"}]
    assert read.events[-4]["delta"]["type"] == "signature_delta"


def test_what_no_client_knows_is_left_out() -> None:
    read = guarded([
        start(), block(0, "x_video"), delta(0, "x_delta", frame=1), stop(0), {"type": "x_meter"},
        {"type": 7}, block(1), text(1, "a"), delta(1, "x_delta"), stop(1), *end(),
    ])  # fmt: skip
    assert [one["text"] for one in read.content] == ["a"]


def test_two_calls_never_share_an_id() -> None:
    read = guarded([
        start(), tool(0, "t1"), args(0, "{}"), stop(0), tool(1, "t1"), args(1, "{}"), stop(1),
        *end(),
    ])  # fmt: skip
    assert read.content[0]["id"] != read.content[1]["id"]


def test_a_call_is_told_of_when_it_went_out_whole() -> None:
    told: list[tuple[str, str]] = []
    guarded(
        [start(), tool(0, "t1", "Read"), args(0, "{}"), stop(0), tool(1, "t2"), args(1, '{"a'),
         *end("max_tokens")],
        called=lambda name, identity: told.append((name, identity)),
    )  # fmt: skip
    assert told == [("Read", "t1")]


def test_what_waits_for_a_call_that_never_ends_does_not_wait_for_ever() -> None:
    guard = Guard(model="m", request_id="a40-1")
    words = "x" * (PARKED_LIMIT_BYTES // 4)
    parts = [guard.take(one) for one in (start(), tool(0), args(0, '{"a'), tool(1, "t2"))]
    waiting = [guard.take(args(1, words)) for _ in range(6)]
    assert waiting[:3] == [b""] * 3
    assert sum(map(len, waiting)) > PARKED_LIMIT_BYTES
    ended = [guard.take(one) for one in (stop(1), tool(2, "t3"), stop(2), *end("max_tokens"))]
    read = read_stream(b"".join([*parts, *waiting, *ended]))
    assert [(one["id"], len(one["input"])) for one in read.content] == [
        ("t1", 3), ("t2", 6 * len(words)), ("t3", 0),
    ]  # fmt: skip


# --- the end: 30 to 32 --------------------------------------------------------------------------


def test_30_32_an_engine_that_dies_is_an_error_and_never_a_bare_end() -> None:
    read = guarded([start(), block(0), text(0, "half of")])
    assert read.error == {"type": "api_error", "message": CUT}
    assert guarded([start()]).error == {"type": "overloaded_error", "message": CUT}
    assert guarded([]).error == {"type": "overloaded_error", "message": CUT}


@pytest.mark.parametrize(
    ("kind", "begun", "told"),
    [("internal_error", True, "api_error"), ("overloaded_error", True, "overloaded_error"),
     ("internal_error", False, "overloaded_error"), (None, False, "overloaded_error"),
     ("invalid_request_error", False, "invalid_request_error")],
)  # fmt: skip
def test_31_an_error_inside_a_stream_is_told_in_the_clients_words(
    kind: str | None, begun: bool, told: str
) -> None:
    before = [start(), block(0), text(0, "a")] if begun else [start()]
    error = {"type": "error", "error": {"type": kind, "message": "why"}}
    read = guarded([*before, error, *end()])
    assert read.error == {"type": told, "message": "why"}


def test_an_overflow_found_inside_a_stream_sends_the_client_to_ask_again_without_one() -> None:
    words = "This model's maximum context length is 2048 tokens. However, your prompt contains "
    error = {"message": f"{words}5031 input tokens, which exceeds this limit", "type": "x"}
    read = guarded([{"type": "error", "error": error}])
    assert read.error == {
        "type": "invalid_request_error",
        "message": "prompt is too long: 5031 tokens > 2048 maximum",
    }


def test_replay_39_one_delta_may_hold_many_tokens_and_any_characters() -> None:
    piece = json.dumps({"code": '</think><tool_call>{"name"\n\u2028\U0001f600'})
    read = guarded([start(), tool(0), args(0, piece), stop(0), *end()])
    assert read.content[0]["input"] == json.loads(piece)


def test_blank_words_of_another_kind_do_not_divide_a_block() -> None:
    blank = delta(0, "thinking_delta", thinking="\n")
    signed = delta(0, "signature_delta", signature="s")
    read = guarded([start(), block(0), text(0, "a"), blank, signed, text(0, "b"), stop(0), *end()])
    assert read.content == [{"type": "text", "text": "ab"}]
