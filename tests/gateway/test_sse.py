"""The splitter returns the same bytes whatever the network did to them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.sse import EVENT_LIMIT_BYTES, EventSplitter, data_span

LINE_ENDS = (b"\n", b"\r\n", b"\r")
lines = st.sampled_from(
    [b"data: {}", b"data:", b": ping", b"event: x", b"data: \xff\x00", b"id: 7", b"data: \xc3\xa9"]
)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Events, each with line ends of one kind, as servers write them."""
    events = []
    for _ in range(draw(st.integers(0, 6))):
        end = draw(st.sampled_from(LINE_ENDS))
        events.append(b"".join(line + end for line in draw(st.lists(lines, min_size=1))) + end)
    return events


def cut(text: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[start:end] for start, end in pairwise(edges)]


def fed(chunks: list[bytes]) -> tuple[list[bytes], bytes]:
    splitter = EventSplitter()
    events = [event for chunk in chunks for event in splitter.feed(chunk)]
    return events, splitter.rest()


@given(st.binary(max_size=400), st.lists(st.integers(0, 400)))
def test_any_bytes_cut_anywhere_come_out_the_same(text: bytes, places: list[int]) -> None:
    events, rest = fed(cut(text, places))
    assert b"".join(events) + rest == text


@given(streams(), st.lists(st.integers(0, 1000)))
def test_cut_anywhere_no_data_line_is_torn(events: list[bytes], places: list[int]) -> None:
    text = b"".join(events)
    got, rest = fed(cut(text, places))
    assert b"".join(got) + rest == text
    assert all(event.endswith((b"\n", b"\r")) for event in got)


@given(st.lists(lines, min_size=1), st.lists(st.integers(0, 400)))
def test_the_same_events_however_cut(texts: list[bytes], places: list[int]) -> None:
    events = [text + b"\n\n" for text in texts if not text.startswith(b":")]
    got, rest = fed(cut(b"".join(events), places))
    assert (got, rest) == (events, b"")


def test_a_chunk_that_is_one_event_is_not_even_copied() -> None:
    chunk = b'data: {"a": 1}\n\n'
    assert EventSplitter().feed(chunk)[0] is chunk


def test_a_comment_does_not_wait_for_an_empty_line() -> None:
    assert EventSplitter().feed(b": keep-alive\n") == [b": keep-alive\n"]


def test_an_event_without_end_is_not_held_for_ever() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"x" * EVENT_LIMIT_BYTES) == []
    assert len(splitter.feed(b"y")[0]) == EVENT_LIMIT_BYTES + 1


def test_the_data_of_an_event() -> None:
    event = b"event: error\r\nid: 1\r\ndata: {}\r\n\r\n"
    span = data_span(event)
    assert span is not None
    assert event[slice(*span)] == b"{}"
    assert data_span(b"data: a\ndata: b\n\n") is None
    assert data_span(b": data: no\n\n") is None
