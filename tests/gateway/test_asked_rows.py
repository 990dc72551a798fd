"""The faults that other bridges had with Claude Code's requests, row by row of the list of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from a40console.gateway.anthropic.asked import ToolAnswer, read_asked
from tests.gateway.asking import (
    FOLDING,
    KEEPING,
    RECORDED,
    SEEING,
    ask,
    assistant,
    read_recorded,
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
    clamping = replace(FOLDING, clamps=True)
    full = ask({"max_tokens": 32_000, "messages": [user("a" * 90_000)]}, clamping)
    assert full.body["max_tokens"] == 32_000
    assert ask({"max_tokens": 10**30}, clamping).body["max_tokens"] == 32_768
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
