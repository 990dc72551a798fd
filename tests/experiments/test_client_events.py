"""Events out of bytes: however they are cut and ended, they are the same; noise is an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.experiments.response_reading import ResponseReading, StreamEvents
from tests.experiments.stream_server import CHAT, MESSAGES

EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["", "message_start", "error"]),
        st.lists(st.binary().map(lambda data: data.hex().encode()), min_size=1, max_size=3),
    )
)
HEAD = {"content-type": "text/event-stream; charset=utf-8"}


def pieces_of(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


@given(EVENTS, st.lists(st.integers(0, 10_000)), st.sampled_from([b"\n", b"\r\n"]), st.booleans())
def test_events_are_the_same_however_they_are_cut(
    events: list[tuple[str, list[bytes]]], cuts: list[int], end: bytes, closed: bool
) -> None:
    written = [b": a comment", b""]
    for name, lines in events:
        written += [b"event: " + name.encode()] if name else []
        written += [b"data: " + line for line in lines]
        written += [b""]
    data = end.join(written) + (end if closed else b"")
    reader = StreamEvents()
    found = [event for piece in pieces_of(data, cuts) for event in reader.feed(piece)]
    found += reader.rest()
    assert found == [(name, b"\n".join(lines)) for name, lines in events]


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text()))
LOOSE: st.SearchStrategy[object] = st.one_of(
    PLAIN, st.dictionaries(st.sampled_from(["index", "function", "name", "arguments"]), PLAIN)
)


def loosely(*names: str) -> st.SearchStrategy[dict[str, object]]:
    """An object that has some of these, of whatever type."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, LOOSE))


DELTA = loosely("content", "reasoning", "tool_calls", "role") | st.fixed_dictionaries(
    {"tool_calls": st.lists(loosely("index", "id", "function"))}
)
CHOICE = st.fixed_dictionaries(
    {"delta": DELTA | LOOSE},
    optional={
        "index": LOOSE,
        "finish_reason": LOOSE,
        "logprobs": loosely("tokens", "token_logprobs", "top_logprobs", "content"),
    },
)
CHUNK = st.fixed_dictionaries(
    {"choices": st.lists(CHOICE) | LOOSE},
    optional={"usage": loosely("prompt_tokens", "prompt_tokens_details") | LOOSE, "error": LOOSE},
)
PART = loosely("text", "thinking", "partial_json", "name", "id", "usage", "stop_reason", "input")
TYPES = st.sampled_from(["text_delta", "input_json_delta", "thinking_delta", "tool_use", "text"])
TYPED = st.tuples(TYPES, PART).map(lambda both: {"type": both[0], **both[1]})
EVENT = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["message_start", "content_block_start", "content_block_delta", "message_delta"]
        ),
        "delta": TYPED,
        "content_block": TYPED,
        "message": PART,
    },
    optional={"index": LOOSE, "usage": loosely("input_tokens", "output_tokens") | LOOSE},
)
BODY = st.fixed_dictionaries({"content": st.lists(TYPED) | LOOSE}, optional={"usage": LOOSE})
SAID = st.tuples(st.just(CHAT), CHUNK) | st.tuples(st.just(MESSAGES), EVENT | BODY)


@settings(max_examples=300)
@given(SAID, st.booleans())
def test_whatever_a_server_says_is_an_answer_or_an_error(
    said: tuple[str, dict[str, object]], streamed: bool
) -> None:
    path, body = said
    reading = ResponseReading(path, streamed=streamed)
    reading.head(200, HEAD if streamed else {})
    data = json.dumps(body).encode()
    reading.piece(1.0, b"data: " + data + b"\n\n" if streamed else data)
    reading.end(200, 1.0)
    answer = reading.answer
    assert answer.ended or answer.error
    assert isinstance(answer.text, str)
    assert isinstance(answer.stop_reason, str)
    assert all(isinstance(block["type"], str) for block in answer.whole_blocks())


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirection_says_where_to(status: int) -> None:
    reading = ResponseReading(CHAT, streamed=True)
    reading.head(status, {"location": "https://elsewhere/v1"})
    reading.end(status, 0.0)
    assert reading.answer.error == f"HTTP {status}: it is at https://elsewhere/v1"
