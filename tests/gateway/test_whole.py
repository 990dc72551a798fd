"""An answer in one piece: a call's input is an object, whatever the engine made of it."""

from __future__ import annotations

import pytest

from a40console.gateway.anthropic.whole import whole_message

KEPT = "__unparsedToolInput"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (None, {}),
        ("", {}),
        (" null ", {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("[1]", {KEPT: {"raw": "[1]", "len": 3}}),
        ([1], {KEPT: {"raw": "[1]", "len": 3}}),
        ('{"a', {KEPT: {"raw": '{"a', "len": 3}}),
        (7, {KEPT: {"raw": "7", "len": 1}}),
    ],
)
def test_the_input_of_a_call_is_an_object(given: object, taken: object) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": given}
    message = whole_message({"content": [call]}, model="m", request_id="1")
    assert message is not None
    assert message["content"] == [{"type": "tool_use", "id": "t1", "name": "Bash", "input": taken}]
