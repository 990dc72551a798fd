"""The faults that other bridges had with Claude Code's requests, row by row of the list of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from a40console.gateway.anthropic.asked import ToolAnswer, read_asked
from a40console.gateway.refusals import Refusal
from tests.gateway.asking import (
    FOLDING,
    KEEPING,
    RECORDED,
    SEEING,
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
EPHEMERAL = {"type": "ephemeral"}
PNG = {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}
MESSAGES = sorted(path.stem for path in RECORDED.glob("*.json") if "models" not in path.stem)


@pytest.mark.parametrize("name", MESSAGES)
def test_every_recorded_request_of_the_real_client_is_taken(name: str) -> None:
    for dialect in (FOLDING, KEEPING, SEEING, replace(FOLDING, route="translated")):
        asked = read_recorded(name, dialect)
        assert asked.body["model"] == "smollm2"
        assert "metadata" not in asked.body
        assert "context_management" not in asked.body
        assert "safeguards" not in asked.body
        assert {message["role"] for message in asked.body["messages"]} <= {"user", "assistant"}
        written = json.dumps(asked.body)
        assert "x-anthropic-billing-header" not in written
        assert "cache_control" not in written


@pytest.mark.parametrize("form", ["list", "str", "turn list", "turn str"])
def test_b1_b3_a_nonce_in_the_billing_header_changes_nothing(form: str) -> None:
    def asked(nonce: str) -> Any:
        billing = BILLING.format(nonce)
        if form == "list":
            return ask({"system": [text(billing), text("You are Claude.")]})
        if form == "str":
            return ask({"system": f"{billing}\nYou are Claude."})
        content = [text(billing), text("x")] if form == "turn list" else f"{billing}\nx"
        return ask({"messages": [user("hi"), system(content)]})

    first, second = asked("12345"), asked("abcde")
    assert first.body == second.body
    assert first.outline == second.outline
    assert first.removed == {"billing header": 1, "cch nonce": 1}
    assert "billing" not in json.dumps(first.body)


def test_b1_the_words_of_the_header_within_a_text_stay() -> None:
    said = "Explain this line:\nx-anthropic-billing-header: cch=12345;"
    asked = ask({"system": said, "messages": [user(BILLING.format("1"))]})
    assert asked.body["system"] == said
    assert asked.body["messages"] == [user(BILLING.format("1"))]
    assert asked.removed == {}


def test_b2_without_the_attribution_header_nothing_is_missed() -> None:
    asked = read_recorded("cc_p_no_experimental_betas")
    assert asked.removed == {"metadata": 1}
    assert asked.body["system"].startswith("You are a Claude agent")


@pytest.mark.parametrize("role", ["system", "developer", "ctx", "msg"])
@pytest.mark.parametrize("dialect", [FOLDING, KEEPING])
def test_b4_any_role_is_accepted(role: str, dialect: Any) -> None:
    asked = ask({"messages": [user("hi"), {"role": role, "content": "x"}]}, dialect)
    assert asked.body["messages"] == [
        user([text("hi"), text("<system-reminder>\nx\n</system-reminder>")])
    ]


def test_b5_a_system_turn_is_never_hoisted_into_the_head() -> None:
    first = [user("hi"), system("noon")]
    second = [*first, assistant("Hello"), user("more"), system("one o'clock")]
    early, late = (ask({"system": "Head.", "messages": turns}) for turns in (first, second))
    assert early.body["system"] == late.body["system"] == "Head."
    assert late.body["messages"][:1] == early.body["messages"]
    assert late.outline[: len(early.outline)] == early.outline


def test_b6_a_trailing_system_turn_joins_the_users_turn() -> None:
    for dialect in (FOLDING, KEEPING):
        asked = ask({"messages": [user("hi"), assistant("a"), user("go"), system("now")]}, dialect)
        assert asked.body["messages"][-1] == user(
            [text("go"), text("<system-reminder>\nnow\n</system-reminder>")]
        )


def test_b6_a_trailing_system_turn_joins_the_tools_result() -> None:
    """A user's text of its own there would be a new question to the templates that think."""
    turns = [user("hi"), assistant([use("t1", "Bash", {})]), user([result("t1", "done")])]
    asked = ask({"messages": [*turns, system("now")]})
    told = "done\n\n<system-reminder>\nnow\n</system-reminder>"
    assert asked.body["messages"][-1] == user([result("t1", told)])
    assert [block.kind for block in asked.outline][-2:] == ["tool_result", "system turn"]


def test_b7_an_engine_that_keeps_system_turns_gets_one_after_an_answer_in_its_place() -> None:
    turns = [user("hi"), assistant("a"), system("noon"), user("go")]
    kept, folded = (ask({"messages": turns}, dialect) for dialect in (KEEPING, FOLDING))
    assert kept.body["messages"] == turns
    reminder = text("<system-reminder>\nnoon\n</system-reminder>")
    assert folded.body["messages"] == [user("hi"), assistant("a"), user([reminder, text("go")])]


@pytest.mark.parametrize("content", ["<total_tokens>9 tokens left</total_tokens>"])
def test_b8_the_reminder_of_tokens_left_goes(content: str) -> None:
    turns = [user("hi"), system(content), assistant("a"), user("b"), system([text(content)])]
    asked = ask({"messages": turns})
    assert asked.body["messages"] == [user("hi"), assistant("a"), user("b")]
    assert asked.removed == {"total_tokens reminder": 2}


def test_b8_what_stands_beside_the_reminder_stays() -> None:
    said = "Noon.\n<total_tokens>9 tokens left</total_tokens>\nBe brief."
    asked = ask({"messages": [user("hi"), system(said)]})
    reminder = text("<system-reminder>\nNoon.\nBe brief.\n</system-reminder>")
    assert asked.body["messages"] == [user([text("hi"), reminder])]


def test_b37_thinking_of_another_service_passes_without_its_signature() -> None:
    history = [
        user("hi"),
        assistant(
            [
                {"type": "thinking", "thinking": "Hm.", "signature": "ErUB…"},
                {"type": "thinking", "thinking": "", "signature": "ErUB…"},
                {"type": "redacted_thinking", "data": "EmwK…"},
                text("Hello"),
            ]
        ),
        user("go on"),
    ]
    asked = ask({"messages": history})
    assert asked.body["messages"][1] == assistant(
        [{"type": "thinking", "thinking": "Hm."}, text("Hello")]
    )
    assert asked.removed == {"thinking signature": 1, "unreadable thinking": 2}


def test_b38_context_management_without_thinking_is_ignored() -> None:
    edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    asked = ask({"context_management": edits})
    assert "context_management" not in asked.body
    assert asked.removed == {"context_management": 1}


def test_b39_a_history_whose_answer_begins_with_text_is_taken() -> None:
    blocks = [text("Look:"), {"type": "thinking", "thinking": "Hm."}]
    asked = ask({"messages": [user("hi"), assistant(blocks), user("go")], "thinking": THINKING})
    assert asked.body["messages"][1] == assistant(blocks)


THINKING = {"type": "enabled", "budget_tokens": 2048}


def test_b40_an_image_in_a_tools_result_stays_an_image_or_becomes_words() -> None:
    image = {"type": "image", "source": PNG, "cache_control": EPHEMERAL}
    turns = [user("look"), assistant([use("t", "Read", {})]), user([result("t", [image])])]
    seen, blind = (ask({"messages": turns}, dialect) for dialect in (SEEING, FOLDING))
    assert seen.body["messages"][2] == user([result("t", [{"type": "image", "source": PNG}])])
    told = "[An image was here; this model takes text only.]"
    assert blind.body["messages"][2] == user([result("t", told)])
    assert blind.removed == {"image as text": 1}


def test_b41_a_result_in_parts_keeps_its_texts_and_its_id() -> None:
    parts = [text("one"), text("two", cache_control=EPHEMERAL)]
    turns = [user("x"), assistant([use("t7", "Bash", {})]), user([result("t7", parts)])]
    asked = ask({"messages": turns})
    assert asked.body["messages"][2] == user([result("t7", [text("one"), text("two")])])
    assert asked.tool_answers == (ToolAnswer("t7", False),)


def test_b42_the_limit_fits_the_window_beside_the_prompt() -> None:
    small = ask({"max_tokens": 32_000})
    assert (small.max_tokens, small.body["max_tokens"]) == (32_000, 32_000)
    large = ask({"max_tokens": 32_000, "messages": [user("a" * 40_000)]})
    assert (large.max_tokens, large.body["max_tokens"]) == (32_000, 12_512)
    full = ask({"max_tokens": 32_000, "messages": [user("a" * 90_000)]})
    assert full.body["max_tokens"] == 8_192
    assert ask({"max_tokens": 10**30}).body["max_tokens"] == 32_511
    unknown = ask({"max_tokens": 10**30}, replace(FOLDING, max_model_len=None))
    assert unknown.body["max_tokens"] == 2**31 - 1


def test_b44_the_session_is_found_in_each_of_its_forms() -> None:
    name = "12345678-1234-4234-8234-123456789abc"
    as_json = json.dumps({"device_id": "d" * 64, "account_uuid": "", "session_id": name})
    legacy = f"user_{'d' * 64}_account__session_{name}"
    header = ask({}, headers={"X-Claude-Code-Session-Id": name}).identity
    assert (header.session, header.origin) == (name, "header")
    for told, origin in ((as_json, "metadata"), (legacy, "legacy")):
        identity = ask({"metadata": {"user_id": told}}).identity
        assert (identity.session, identity.origin) == (name, origin)


@pytest.mark.parametrize("model", ["claude-sonnet-5", "gpt-9", "", None, 7, "x" * 10_000])
def test_b46_any_model_name_is_the_served_one(model: Any) -> None:
    asked = ask({"model": model})
    assert asked.body["model"] == "smollm2"
    assert asked.model == (model if isinstance(model, str) else None)


def test_b46_a_body_without_a_model_is_taken() -> None:
    raw = json.dumps({"max_tokens": 5, "messages": [user("hi")]}).encode()
    assert read_asked(raw, Headers(), "/v1/messages", FOLDING).body["model"] == "smollm2"


def test_the_malformed_arguments_that_the_client_sends_back_pass() -> None:
    asked = read_recorded("cc_p_after_malformed_tool_json")
    (call,) = asked.body["messages"][1]["content"]
    assert call["input"] == {"__unparsedToolInput": {"raw": '{"command": "echo one", ', "len": 24}}
    assert asked.tool_answers == (ToolAnswer("toolu_1", True),)


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
