"""One member is cut out of an object, and every other character stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.members import without

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
tricky = st.sampled_from(['"usage":', '\\"usage":{', "usage", '{"usage": 1}', ',"usage"'])


@given(
    st.dictionaries(st.text() | tricky, values | tricky, max_size=4),
    values,
    st.dictionaries(st.text(), values | st.builds(lambda value: {"usage": value}, values)),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_what_is_left_is_the_object_without_it(
    before: dict[str, Any], usage: Any, after: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    whole = {**before, "usage": usage, **after}
    whole["usage"] = usage
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only)
    left = without(text, "usage")
    expected = {key: value for key, value in whole.items() if key != "usage"}
    assert json.loads(left) == expected


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"a":1.50,"usage":{"x":[1]},"b":"\\u00e9"}', '{"a":1.50,"b":"\\u00e9"}'),
        ('{"a": 1, "usage": null, "b": 2}', '{"a": 1, "b": 2}'),
        ('{"usage":1,"a":2}', '{"a":2}'),
        ('{"a":2,"usage":1}', '{"a":2}'),
        ('{ "usage" : 1 }', "{  }"),
        ('{"choices":[{"usage":1}],"usage":2}', '{"choices":[{"usage":1}]}'),
        ('{"a":NaN,"usage":Infinity}', '{"a":NaN}'),
    ],
)
def test_numbers_escapes_and_spaces_stay_as_they_were(text: str, left: str) -> None:
    assert without(text, "usage") == left


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a":1}', '{"usage":}', '{"a" 1}', "{}"])
def test_no_such_member_is_said(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the text differs by where it stopped
        without(text, "usage")
