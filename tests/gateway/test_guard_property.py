"""Whatever an engine sends, cut wherever the network cuts it, the client's stream is valid."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from a40console.gateway.anthropic.answer_block import written
from a40console.gateway.anthropic.answers import NativeAnswer, TranslatedAnswer
from a40console.gateway.anthropic.guard import Guard
from a40console.gateway.anthropic.stream import MessagesReader
from a40console.gateway.meter import Meter
from a40console.gateway.openai import OpenAIReader
from a40console.gateway.translation import ChatToMessages
from tests.gateway.stub import capture
from tests.gateway.wire import read_stream

CUT = "The engine ended this answer."
WORDS = st.sampled_from(
    ["", " ", "\n", "Hi", "{", "}", '{"a":1}', "null", "é", "\U0001f600", "x\ny"]
)
ODD = st.none() | st.booleans() | st.integers(-2, 5) | st.text(max_size=3) | st.floats()
INDEX = st.integers(0, 3) | ODD
COUNTS = st.dictionaries(
    st.sampled_from(["input_tokens", "output_tokens", "cache_read_input_tokens", "x"]),
    st.integers(0, 99) | ODD,
)
HEADS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "x"]) | ODD},
    optional={
        "text": WORDS | ODD, "thinking": WORDS | ODD, "id": st.sampled_from(["t1", "t2"]) | ODD,
        "name": st.sampled_from(["Bash", "Read"]) | ODD, "input": st.just({"a": 1}) | WORDS | ODD,
        "data": WORDS | ODD, "signature": WORDS | ODD,
    },
)  # fmt: skip
DELTAS = st.fixed_dictionaries(
    {"type": st.sampled_from(["text_delta", "thinking_delta", "signature_delta",
                              "input_json_delta", "citations_delta", "x"]) | ODD},
    optional={"text": WORDS | ODD, "thinking": WORDS | ODD, "partial_json": WORDS | ODD,
              "signature": WORDS | ODD},
)  # fmt: skip
REASONS = st.sampled_from(["end_turn", "max_tokens", "tool_use", "stop_sequence", "stop"]) | ODD


def event(kind: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=members)


EVENTS = st.one_of(
    event("message_start", message=ODD | st.fixed_dictionaries({}, optional={
        "id": ODD, "model": ODD, "usage": COUNTS | ODD, "content": ODD})),
    event("content_block_start", index=INDEX, content_block=HEADS | ODD),
    event("content_block_delta", index=INDEX, delta=DELTAS | ODD),
    event("content_block_stop", index=INDEX),
    event("message_delta", usage=COUNTS | ODD, delta=ODD | st.fixed_dictionaries(
        {}, optional={"stop_reason": REASONS, "stop_sequence": ODD | WORDS})),
    event("message_stop"),
    event("ping"),
    event("error", error=ODD | st.fixed_dictionaries({}, optional={"type": ODD, "message": ODD})),
    st.dictionaries(st.sampled_from(["type", "index", "delta"]), ODD, max_size=2),
)  # fmt: skip
RAW = EVENTS.map(lambda one: b"data: " + json.dumps(one).encode() + b"\n\n")
NAMED = EVENTS.map(lambda one: written({"type": "x"} | one))
CRLF = EVENTS.map(lambda one: b"data: " + json.dumps(one).encode() + b"\r\n\r\n")
GARBAGE = st.binary(max_size=20) | st.sampled_from(
    [b": hi\n", b"\n\n",
     b"data: [DONE]\n\n", b"<html>\n\n", b'data: {"type":\n\n', b"data: {\xff}\n\n",
     b'data: {"type":\ndata: "ping"}\n\n', b"event: error\n\n", b'event: ping\ndata: {}\n\n']
)  # fmt: skip
WIRE = st.lists(NAMED | NAMED | RAW | CRLF | GARBAGE, max_size=25).map(b"".join)
PLACES = st.lists(st.integers(0, 4000), max_size=6)


def cut(text: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(edges)]


def native(**settings: Any) -> NativeAnswer:
    meter = Meter()
    reader = MessagesReader(meter, meter.accept("messages", "a40-1"))
    return NativeAnswer(reader, Guard(**{"model": "m", "request_id": "a40-1"} | settings))


def translated() -> TranslatedAnswer:
    meter = Meter()
    reader = OpenAIReader(meter, meter.accept("messages", "a40-1"))
    chat = ChatToMessages("m", "msg_1")
    return TranslatedAnswer(reader, Guard(model="m", request_id="a40-1"), chat)


def passed(answer: NativeAnswer | TranslatedAnswer, chunks: list[bytes], *, broken: bool) -> bytes:
    return b"".join([answer.feed(chunk) for chunk in chunks]) + answer.end(CUT, broken=broken)


@settings(max_examples=400, deadline=None)
@given(WIRE, PLACES, st.booleans())
def test_replay_40_nothing_that_an_engine_sends_breaks_the_grammar(
    text: bytes, places: list[int], broken: bool
) -> None:
    read = read_stream(passed(native(), cut(text, places), broken=broken))
    assert (read.error is None) is (read.message is not None)


@settings(max_examples=200, deadline=None)
@given(st.lists(EVENTS, max_size=25))
def test_events_without_their_bytes_end_as_well(events: list[dict[str, Any]]) -> None:
    guard = Guard(model="m", request_id="a40-1")
    read_stream(b"".join([guard.take(one) for one in events]) + guard.end(CUT))


@st.composite
def healthy(draw: st.DrawFn) -> list[dict[str, Any]]:
    """An answer as an engine in good order sends it."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {
        "id": "1", "type": "message", "role": "assistant", "model": "s", "content": [],
        "usage": {"input_tokens": 3, "output_tokens": 0}}}]  # fmt: skip
    kinds = draw(st.lists(st.sampled_from(["text", "thinking", "tool_use"]), max_size=4))
    for index, kind in enumerate(kinds):
        said = draw(st.lists(st.text(min_size=1, max_size=9), min_size=1, max_size=5))
        assume("".join(said).strip())
        head: dict[str, Any] = {"type": kind, "text": ""}
        key, name = "text", "text_delta"
        if kind == "thinking":
            head = {"type": kind, "thinking": "", "signature": ""}
            key, name = "thinking", "thinking_delta"
        if kind == "tool_use":
            head = {"type": kind, "id": f"t{index}", "name": "Bash", "input": {}}
            whole = json.dumps({"command": "".join(said)}, ensure_ascii=False)
            places = draw(st.lists(st.integers(0, len(whole)), max_size=4))
            edges = sorted({0, len(whole), *places})
            said = [whole[start:end] for start, end in pairwise(edges)]
            key, name = "partial_json", "input_json_delta"
        events.append({"type": "content_block_start", "index": index, "content_block": head})
        events += [
            {"type": "content_block_delta", "index": index, "delta": {"type": name, key: one}}
            for one in said
        ]
        events.append({"type": "content_block_stop", "index": index})
    reason = "tool_use" if "tool_use" in kinds else "end_turn"
    told = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": told, "usage": {"output_tokens": 9}})
    return [*events, {"type": "message_stop"}]


def as_utf8(data: dict[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=False).encode()
    return f"event: {data['type']}\ndata: ".encode() + text + b"\n\n"


@settings(max_examples=200, deadline=None)
@given(healthy(), PLACES)
def test_a_healthy_answers_deltas_arrive_to_the_byte_however_cut(
    events: list[dict[str, Any]], places: list[int]
) -> None:
    wire = [as_utf8(one) for one in events]
    out = passed(native(), cut(b"".join(wire), places), broken=False)
    deltas = [one for one in wire if one.startswith(b"event: content_block_delta")]
    got = [part + b"\n\n" for part in out.split(b"\n\n") if b"event: content_block_delta" in part]
    assert got == deltas
    assert read_stream(out).message is not None


@settings(max_examples=200, deadline=None)
@given(healthy(), st.randoms(use_true_random=False), st.integers(0, 3), PLACES)
def test_lost_repeated_and_moved_events_still_make_a_stream(
    events: list[dict[str, Any]], random: Any, faults: int, places: list[int]
) -> None:
    for _ in range(faults):
        place = random.randrange(len(events))
        match random.randrange(3):
            case 0 if len(events) > 1:
                del events[place]
            case 1:
                events.insert(random.randrange(len(events)), events[place])
            case _:
                events.insert(random.randrange(len(events)), events.pop(place))
    wire = b"".join(map(as_utf8, events))
    read_stream(passed(native(), cut(wire, places), broken=False))


CHUNKS = st.lists(
    st.fixed_dictionaries({}, optional={
        "choices": ODD | st.lists(st.fixed_dictionaries({}, optional={
            "index": ODD, "finish_reason": REASONS | st.sampled_from(["length", "abort"]),
            "delta": ODD | st.fixed_dictionaries({}, optional={
                "content": WORDS | ODD, "reasoning": WORDS | ODD,
                "tool_calls": ODD | st.lists(st.fixed_dictionaries({}, optional={
                    "index": ODD, "id": st.sampled_from(["a", "b"]) | ODD,
                    "function": ODD | st.fixed_dictionaries({}, optional={
                        "name": st.just("Bash") | ODD, "arguments": WORDS | ODD})}), max_size=2)}),
        }), max_size=2),
        "usage": ODD | COUNTS, "error": ODD}),
    max_size=15,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(CHUNKS, PLACES, st.booleans(), st.booleans())
def test_the_translated_route_is_valid_as_well(
    chunks: list[dict[str, Any]], places: list[int], done: bool, broken: bool
) -> None:
    wire = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks)
    wire += b"data: [DONE]\n\n" if done else b""
    read_stream(passed(translated(), cut(wire, places), broken=broken))


def test_a_recorded_answer_is_the_same_however_cut() -> None:
    text = b"".join(capture("vllm-messages-tool.sse"))
    whole = passed(native(), [text], broken=False)
    assert passed(native(), [text[at : at + 1] for at in range(len(text))], broken=False) == whole
    bare = text.replace(b"\n", b"\r\n")
    crlf = read_stream(passed(native(), cut(bare, [7, 90, 91, 300]), broken=False))
    assert crlf == read_stream(whole)
