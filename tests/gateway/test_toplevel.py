"""A body's members are found in pieces of any size, and garbage has none."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.toplevel import Members, MemberScanner

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
spaces = st.sampled_from([None, 0, 1, "\t"])


def scan(body: bytes, places: list[int] | None = None) -> Members | None:
    scanner = MemberScanner()
    edges = sorted({0, len(body), *(place % (len(body) + 1) for place in places or ())})
    for start, end in pairwise(edges):
        scanner.feed(body[start:end])
    return scanner.finish()


@given(
    st.dictionaries(st.text(max_size=20), values),
    spaces,
    st.booleans(),
    st.lists(st.integers(0, 2000)),
)
def test_each_place_holds_its_value(
    body: dict[str, Any], indent: int | str | None, ascii_only: bool, places: list[int]
) -> None:
    text = json.dumps(body, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    members = scan(text, places)
    assert members is not None
    found = {key: text[start:end] for key, (start, end) in members.spans.items()}
    assert found.keys() == body.keys()
    assert all(repr(json.loads(found[key])) == repr(body[key]) for key in found)
    assert text[members.close :].strip() == b"}"


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_garbage_never_fails_and_cutting_never_matters(body: bytes, places: list[int]) -> None:
    assert scan(body, places) == scan(body)


@given(
    st.dictionaries(st.text(max_size=5), values, min_size=1, max_size=3),
    st.integers(0, 300),
    st.sampled_from(list(b'"\\{}[],: x')),
)
def test_a_damaged_body_is_cut_the_same_however_it_comes(
    body: dict[str, Any], place: int, sign: int
) -> None:
    text = bytearray(json.dumps(body).encode())
    text[place % len(text)] = sign
    assert scan(bytes(text), list(range(len(text)))) == scan(bytes(text))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"  ", b"null", b"[]", b'"{}"', b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,}',
        b"{,}", b"{1:2}", b'{"a":[}', b'{"a":{]}', b'{"a" 1}', b'{"a":}', b'{"a":1}x', b'{"a":"x}',
        b'{"a":1}{"b":2}', b'{"a\\q":1}', b"{'a':1}", b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)  # fmt: skip
def test_what_is_not_one_object_has_no_members(body: bytes) -> None:
    assert scan(body) is None


def test_of_a_repeated_key_the_last_counts() -> None:
    members = scan(b'{"a":1,"a":22}')
    assert members is not None
    assert members.spans == {"a": (11, 13)}


def test_a_name_written_with_escapes_is_the_same_name() -> None:
    members = scan(rb'{"str\u0065am":true}')
    assert members is not None
    assert members.spans == {"stream": (15, 19)}


def test_a_name_too_long_to_matter_is_passed_over() -> None:
    name = b"x" * 1000
    for body in (b'{"%b":1,"b":2}' % name, b'{"%b":[1],"b":2}' % name):
        members = scan(body)
        assert members is not None
        assert list(members.spans) == ["b"]
