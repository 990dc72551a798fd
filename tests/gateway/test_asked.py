"""What of a request is taken, changed and refused, beside the faults of the list."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from a40console.gateway.anthropic.asked import read_asked
from a40console.gateway.refusals import Refusal
from tests.gateway.asking import (
    FOLDING,
    ask,
    assistant,
    read_recorded,
    recorded,
    result,
    system,
    text,
    use,
    user,
)

BILLING = "x-anthropic-billing-header: cc_version=2.1.100.abc; cc_entrypoint=cli; cch={};"
PNG = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
THINKING = {"type": "enabled", "budget_tokens": 2048}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (None, {}),
        ("{broken", {"__unparsedToolInput": "{broken"}),
        ([1], {"__unparsedToolInput": [1]}),
    ],
)
def test_arguments_that_are_no_object_are_made_one(given: Any, taken: Any) -> None:
    asked = ask({"messages": [user("x"), assistant([use("t", "Bash", given)]), user("y")]})
    assert asked.body["messages"][1]["content"][0]["input"] == taken


def test_what_a_request_asks_beside_its_text_is_read() -> None:
    compact = read_recorded("cc_tui_compact")
    assert (compact.stream, compact.safeguards, compact.max_tokens) == (True, True, 32_000)
    assert [answer.tool_use_id for answer in compact.tool_answers] == ["toolu_1", "toolu_2"]
    assert read_recorded("cc_p_nonstream_fallback_after_404").stream is False
    subagent = read_recorded("cc_p_hint_headers_subagent").identity
    assert (subagent.agent, subagent.is_subagent) == ("general-purpose a000000", True)


def test_a_request_for_a_summary_is_known_by_its_first_words() -> None:
    body, headers, path = recorded("cc_tui_compact")
    body["messages"][-1]["content"][-1]["text"] = (
        "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
    )
    asked = read_asked(json.dumps(body).encode(), headers, path, FOLDING)
    assert asked.purpose == "compaction"
    assert read_recorded("cc_p_continue_turn2").purpose == "turn"


def test_claude_codes_side_requests_are_none_of_its_turns() -> None:
    assert ask({"system": [text(BILLING.format(1)), text("Title?")]}).purpose == "other"
    assert ask({"system": "Title?"}).purpose == "turn"


def test_a_messages_own_effort_counts_before_the_requests() -> None:
    turn = {**system("x"), "output_config": {"effort": "low"}}
    body = {"output_config": {"effort": "high"}, "messages": [user("hi"), turn]}
    assert ask(body).body["output_config"] == {"effort": "low"}
    assert (
        ask({"output_config": {"effort": "huge", "task_budget": 1}}).body.get("output_config")
        is None
    )


@pytest.mark.parametrize(
    ("thinking", "taken"),
    [
        ({"type": "adaptive", "display": "updates"}, None),
        ({"type": "disabled"}, {"type": "disabled"}),
        ({"type": "enabled", "budget_tokens": 10}, {"type": "enabled", "budget_tokens": 1024}),
        ({"type": "enabled", "budget_tokens": 9999}, {"type": "enabled", "budget_tokens": 3999}),
        ({"type": "enabled"}, None),
        ({"type": "sometimes"}, None),
        ("yes", None),
    ],
)
def test_thinking_is_what_the_native_route_takes(thinking: Any, taken: Any) -> None:
    body = {"thinking": thinking, "max_tokens": 4000}
    assert ask(body, replace(FOLDING, budgets=True)).body.get("thinking") == taken


def test_a_budget_without_room_or_parser_is_left_to_the_model() -> None:
    thinker = replace(FOLDING, budgets=True)
    assert "thinking" not in ask({"thinking": THINKING, "max_tokens": 1000}, thinker).body
    asked = ask({"thinking": THINKING, "max_tokens": 4000})
    assert "thinking" not in asked.body
    assert asked.removed == {"thinking budget": 1}


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21", "2099-01-01", ""])
def test_any_version_and_any_betas_are_taken(version: str) -> None:
    headers = {"anthropic-version": version, "anthropic-beta": "effort-2025-11-24,new-2030-01-01"}
    assert ask({"betas": ["new-2030-01-01"]}, headers=headers).body["messages"] == [user("hi")]


def test_unknown_fields_go_on_and_anthropics_own_stay_here() -> None:
    asked = ask({"min_p": 0.1, "brand_new": {"a": 1}, "service_tier": "auto", "mcp_servers": []})
    assert (asked.body["min_p"], asked.body["brand_new"]) == (0.1, {"a": 1})
    assert "service_tier" not in asked.body
    assert "mcp_servers" not in asked.body


def test_tools_of_anthropics_service_go_and_the_others_are_listed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    asked = ask(
        {
            "tools": [
                {"name": "A", "description": "a", "input_schema": schema, "cache_control": {}},
                {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
                {"type": "bash_20250124", "name": "bash"},
                {"type": "custom", "name": "B", "input_schema": {"properties": {}}},
            ],
            "tool_choice": {"type": "tool", "name": "web_search"},
        }
    )
    assert [tool["name"] for tool in asked.body["tools"]] == ["A", "bash", "B"]
    assert asked.body["tools"][0] == {"name": "A", "description": "a", "input_schema": schema}
    assert asked.body["tools"][2]["input_schema"] == {"type": "object", "properties": {}}
    assert "tool_choice" not in asked.body
    assert asked.removed == {"server tool": 1}


def test_no_tools_leave_no_choice() -> None:
    body = ask({"tools": [], "tool_choice": {"type": "any"}}).body
    assert ("tools" in body, "tool_choice" in body) == (False, False)


def test_a_deferred_tool_is_listed_from_where_something_refers_to_it() -> None:
    tools = [
        {"name": "Late", "input_schema": {}, "defer_loading": True},
        {"name": "Never", "input_schema": {}, "defer_loading": True},
        {"name": "Now", "input_schema": {}},
    ]
    before = [user("hi"), assistant([use("t", "ToolSearch", {})])]
    found = [{"type": "tool_reference", "tool_name": "Late"}]
    early = ask({"tools": tools, "messages": [user("hi")]})
    late = ask({"tools": tools, "messages": [*before, user([result("t", found)])]})
    assert [tool["name"] for tool in early.body["tools"]] == ["Now"]
    assert [tool["name"] for tool in late.body["tools"]] == ["Now", "Late"]
    assert late.body["messages"][-1] == user([result("t", "[Tool Late is available now.]")])
    assert late.removed == {"tool_reference as text": 1, "deferred tool": 1}


def test_tools_join_the_list_behind_those_that_joined_before() -> None:
    tools: list[dict[str, Any]] = [
        {"name": name, "input_schema": {}, "defer_loading": name != "Now"}
        for name in ("A", "B", "C", "Now")
    ]
    added = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "C"}}
    turns: list[dict[str, Any]] = [user("hi"), system([added])]
    listed = [tool["name"] for tool in ask({"tools": tools, "messages": turns}).body["tools"]]
    assert listed == ["Now", "C"]
    for name in ("B", "A"):
        found = [{"type": "tool_reference", "tool_name": name}]
        turns += [assistant([use("t", "ToolSearch", {})]), user([result("t", found)])]
        listed.append(name)
        body = ask({"tools": tools, "messages": turns}).body
        assert [tool["name"] for tool in body["tools"]] == listed


def test_tools_that_change_within_the_conversation_leave_the_head_as_it_was() -> None:
    added = {"type": "tool_definition", "definition": {"name": "New", "input_schema": {}}}
    gone = {"type": "tool_reference", "name": "Now"}
    turns = [
        user("hi"),
        system([{"type": "tool_addition", "tool": added}]),
        assistant("ok"),
        user("go"),
        system([{"type": "tool_removal", "tool": gone}]),
    ]
    asked = ask({"tools": [{"name": "Now", "input_schema": {}}], "messages": turns})
    assert [tool["name"] for tool in asked.body["tools"]] == ["Now", "New"]
    assert "[Tool New is available now.]" in json.dumps(asked.body["messages"][0])
    assert "[Tool Now is no longer available.]" in json.dumps(asked.body["messages"][2])


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (
            {
                "type": "document",
                "title": "Notes",
                "source": {"type": "text", "media_type": "text/plain", "data": "It rains."},
            },
            "[Document: Notes]\nIt rains.",
        ),
        (
            {"type": "document", "source": {**PNG, "media_type": "application/pdf"}},
            "[Document]\n[Its content (application/pdf) cannot be read by this model.]",
        ),
        (
            {"type": "search_result", "title": "T", "source": "http://s", "content": [text("c")]},
            "[Search result: T, http://s]\nc",
        ),
        (
            {"type": "server_tool_use", "name": "web_search", "input": {"query": "q"}},
            '[Tool web_search was called with {"query": "q"}]',
        ),
        (
            {
                "type": "web_search_tool_result",
                "content": [
                    {"type": "web_search_result", "title": "T", "url": "http://u",
                     "encrypted_content": "Eo8…"}
                ],
            },
            "[web_search_tool_result]\n[Search result: T, http://u]",
        ),
        ({"type": "compaction", "content": "Until now: much."}, "Until now: much."),
        ({"type": "container_upload", "file_id": "file_1"}, "[A file was uploaded: file_1]"),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}},
         "[An image was here; this model takes text only.]"),
        ({"type": "brand_new", "text": "words"}, "[brand_new]\nwords"),
        ({"type": "fallback"}, "[fallback]"),
        ({}, "[block]"),
        ({"type": 7}, "[block]"),
    ],
)  # fmt: skip
def test_blocks_that_no_engine_takes_become_text(block: dict[str, Any], told: str) -> None:
    for role in (user, assistant):
        turns = [role([text("see"), block]), user("go")]
        asked = ask({"messages": turns})
        assert asked.body["messages"][0] == role([text("see"), text(told)])
        assert sum(asked.removed.values()) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"messages": None}, "messages: Field required"),
        ({"messages": "hi"}, "messages: must be a list"),
        ({"messages": []}, "at least one message"),
        ({"messages": ["hi"]}, "messages.0: must be an object"),
        ({"messages": [user(7)]}, "messages.0.content: must be"),
        ({"messages": [user([7])]}, "messages.0.content: each block"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": 0}, "max_tokens: must be"),
        ({"max_tokens": True}, "max_tokens: must be"),
        ({"max_tokens": "100"}, "max_tokens: must be"),
        ({"temperature": "hot"}, "temperature: must be a number"),
        ({"stop_sequences": "x"}, "stop_sequences: must be"),
        ({"tools": {}}, "tools: must be a list"),
        ({"tools": [{"input_schema": {}}]}, "tools.0.name"),
        ({"system": 5}, "must be a text or a list"),
    ],
)
def test_what_cannot_be_understood_is_refused_in_words(body: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal) as refusal:
        ask(body)
    assert refusal.value.status == 400
    assert said in refusal.value.message


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[]", "must be a JSON object"),
        (b'"x"', "must be a JSON object"),
        (b'{"a": NaN}', "not finite"),
        (b'{"a": 1e999}', "not finite"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too long"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b'{"a": "\xe2\x82"}', "not UTF-8 at byte 7"),
        (b'{"a":' + b"[" * 150 + b"]" * 150 + b"}", "nested too deeply"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
)
def test_bytes_that_are_no_body_are_refused_in_words(raw: bytes, said: str) -> None:
    with pytest.raises(Refusal) as refusal:
        read_asked(raw, Headers(), "/v1/messages", FOLDING)
    assert refusal.value.status == 400
    assert said in refusal.value.message


def test_half_a_character_is_mended_and_a_whole_one_is_left() -> None:
    raw = (
        b'{"max_tokens": 5, "messages": [{"role": "user", "content": '
        b'"cut \\ud83d and whole \\ud83d\\ude00"}]}'
    )
    asked = read_asked(raw, Headers(), "/v1/messages", FOLDING)
    assert asked.body["messages"][0]["content"] == "cut \ufffd and whole \U0001f600"


def test_what_was_removed_never_names_a_field_of_the_clients_own() -> None:
    asked = ask({"my_private_field": 1, "messages": [user([{"type": "my_secret_type"}])]})
    assert asked.removed == {"unknown block as text": 1}
