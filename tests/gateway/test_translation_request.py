"""A Messages body asks the same as a chat completions body."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.gateway.dialect import Dialect
from a40console.gateway.translation import to_chat, to_native
from tests.gateway.conversations import CALLED, CITY, FORCED, PLAIN, WEATHER, asked, user

LEFT_OUT = "[An image was here; this model takes text only.]"
DIALECT = Dialect(
    route="translated",
    system_turns="keep",
    images=True,
    counting="none",
    served_name="smollm2",
    max_model_len=4096,
    evidence=(),
    running_usage=True,
)
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://host/a.png"}}
SHOWN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def chat(body: dict[str, Any], dialect: Dialect = DIALECT) -> dict[str, Any]:
    return to_chat(body, dialect)


def test_a_short_request_in_full() -> None:
    body = asked(
        user("Hi"),
        system="Be terse.",
        top_k=5,
        stop_sequences=["END"],
        stream=True,
        metadata={"user_id": "x"},
    )
    assert chat(body) == {
        "model": "smollm2",
        "messages": [
            {"role": "system", "content": "Be terse."},
            {"role": "user", "content": "Hi"},
        ],
        "temperature": 0,
        "top_k": 5,
        "max_tokens": 24,
        "stop": ["END"],
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def test_an_engine_that_does_not_count_on_each_chunk_is_not_asked_to() -> None:
    body = chat(asked(user("Hi"), stream=True), replace(DIALECT, running_usage=False))
    assert body["stream_options"] == {"include_usage": True}


def test_calls_and_results_keep_their_ids_and_order() -> None:
    messages = chat({"messages": CALLED, "max_tokens": 1})["messages"]
    assert [message["role"] for message in messages] == [
        "user", "assistant", "tool", "tool", "user",
    ]  # fmt: skip
    assistant = messages[1]
    assert assistant["content"] == "I look."
    assert assistant["reasoning"] == assistant["reasoning_content"] == "Two calls."
    assert [call["id"] for call in assistant["tool_calls"]] == ["toolu_1", "toolu_2"]
    assert assistant["tool_calls"][0]["function"] == {
        "name": "get_weather",
        "arguments": '{"city": "Rome"}',
    }
    assert messages[2:] == [
        {"role": "tool", "tool_call_id": "toolu_1", "content": "Sunny, 21 C"},
        {"role": "tool", "tool_call_id": "toolu_2", "content": ""},
        {"role": "user", "content": "So?"},
    ]


def test_a_call_without_words_has_no_content() -> None:
    call = {"type": "tool_use", "id": "a", "name": "Now", "input": {}}
    (message,) = chat({"messages": [{"role": "assistant", "content": [call]}]})["messages"]
    assert message["content"] is None
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_later_system_turn_stays_in_its_place() -> None:
    messages = chat(PLAIN["a later system message"])["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "system", "user"]


def test_images_of_users_and_of_tools_are_shown() -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]}
    turn = {"role": "user", "content": [result, {"type": "text", "text": "See?"}, LINKED]}
    messages = chat({"messages": [turn]})["messages"]
    assert messages == [
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {
            "role": "user",
            "content": [
                SHOWN,
                {"type": "text", "text": "See?"},
                {"type": "image_url", "image_url": {"url": "https://host/a.png"}},
            ],
        },
    ]


def test_images_for_a_model_without_eyes_are_words() -> None:
    turn = {"role": "user", "content": [IMAGE]}
    messages = chat({"messages": [turn]}, replace(DIALECT, images=False))["messages"]
    assert messages == [{"role": "user", "content": LEFT_OUT}]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, {"tool_choice": "auto"}),
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        (
            {"type": "tool", "name": "get_weather"},
            {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}},
        ),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
    ],
)
def test_how_tools_are_chosen(choice: dict[str, Any] | None, expected: dict[str, Any]) -> None:
    body = chat(asked(user("Hi"), tools=[WEATHER], tool_choice=choice))
    function = {
        "name": "get_weather",
        "description": "Weather",
        "parameters": CITY,
        "strict": True,
    }
    assert body["tools"] == [{"type": "function", "function": function}]
    keys = ("tool_choice", "parallel_tool_calls")
    assert {key: body[key] for key in keys if key in body} == expected


def test_without_tools_nothing_is_chosen() -> None:
    body = chat(asked(user("Hi"), tools=[], tool_choice={"type": "any"}))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"output_config": {"effort": "medium"}}, {"reasoning_effort": "medium"}),
        ({"output_config": {"effort": "max"}}, {"reasoning_effort": "high"}),
        (
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
            {"chat_template_kwargs": {"enable_thinking": False}},
        ),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, {}),
        ({"thinking": {"type": "adaptive"}}, {}),
    ],
)
def test_how_much_to_think(more: dict[str, Any], expected: dict[str, Any]) -> None:
    body = chat(asked(user("Hi"), **more))
    known = ("reasoning_effort", "chat_template_kwargs")
    assert {key: body[key] for key in known if key in body} == expected


def test_a_budget_for_thinking_goes_to_an_engine_that_takes_one() -> None:
    body = asked(user("Hi"), thinking={"type": "enabled", "budget_tokens": 2048})
    assert chat(body, replace(DIALECT, budgets=True))["thinking_token_budget"] == 2048
    assert "thinking_token_budget" not in chat(body)


def test_an_answer_in_json() -> None:
    assert chat(FORCED["an answer in JSON"])["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": CITY},
    }


@pytest.mark.parametrize(("limit", "sent"), [(24, 24), (4095, 4095), (4096, None), (32000, None)])
def test_a_limit_of_the_whole_window_or_more_is_none(limit: int, sent: int | None) -> None:
    assert chat(asked(user("Hi"), max_tokens=limit)).get("max_tokens") == sent


@given(st.sampled_from(sorted(PLAIN)), st.integers(1, 6))
def test_what_stands_before_a_turn_never_changes_it(name: str, length: int) -> None:
    turns = [*PLAIN[name]["messages"], *CALLED]
    whole = chat({"messages": turns})["messages"]
    start = chat({"messages": turns[:length]})["messages"]
    assert whole[: len(start)] == start


def test_llamacpp_gets_the_words_after_the_results_as_a_turn_of_their_own() -> None:
    body = {"messages": CALLED}
    assert to_native(body, DIALECT) is body
    turns = to_native(body, replace(DIALECT, results_first=False))["messages"]
    assert turns[:2] == CALLED[:2]
    assert [[block["type"] for block in turn["content"]] for turn in turns[2:]] == [
        ["tool_result", "tool_result"],
        ["text"],
    ]
    assert [turn["role"] for turn in turns[2:]] == ["user", "user"]


def test_a_schema_that_the_native_api_ignores_is_translated() -> None:
    native = replace(DIALECT, route="native")
    body = FORCED["an answer in JSON"]
    assert native.for_body(body) is native
    assert replace(native, schemas=False).for_body(body).route == "translated"
    assert replace(native, schemas=False).for_body(PLAIN["a text"]).route == "native"


@given(
    st.dictionaries(
        st.sampled_from(
            ("messages", "system", "tools", "tool_choice", "thinking", "output_config", "stream")
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ("role", "content", "type", "text", "name", "source", "effort")
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=8,
        ),
    )
)
def test_no_body_makes_it_fail(body: dict[str, Any]) -> None:
    for said in (chat(body), to_native(body, replace(DIALECT, results_first=False))):
        assert json.loads(json.dumps(said)) == said
