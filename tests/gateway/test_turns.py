"""Whatever a client's conversation is: turns are never rewritten, and forms of a text are alike."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from a40console.gateway.dialect import Dialect
from a40console.gateway.translation import to_chat
from a40console.model.session import Outline
from tests.gateway.asking import (
    FOLDING,
    KEEPING,
    ask,
    assistant,
    recorded,
    result,
    system,
    text,
    use,
    user,
)

EPHEMERAL = {"type": "ephemeral"}
REMINDER = "<total_tokens>99 tokens left</total_tokens>"

words = st.text(alphabet="abcä \n<>", min_size=1, max_size=12)
texts = words.map(text)
contents = words | st.lists(texts, min_size=1, max_size=3)
system_turns = (
    contents | st.just(REMINDER) | st.just([text(f"x-anthropic-billing-header: cch={1};")])
).map(system)
results = st.lists(
    st.builds(result, st.sampled_from(["t1", "t2"]), contents), min_size=1, max_size=2
)
user_turns = contents.map(user) | st.builds(
    lambda answers, more: user([*answers, *more]), results, st.lists(texts, max_size=1)
)
answers = st.builds(
    lambda thought, said, calls: assistant([*thought, *said, *calls]),
    st.lists(words.map(lambda said: {"type": "thinking", "thinking": said}), max_size=1),
    st.lists(texts, max_size=1),
    st.lists(st.just(use("t1", "Bash", {"command": "ls"})), max_size=2),
).filter(lambda message: message["content"]) | words.map(assistant)
asks = st.builds(
    lambda before, said, after: [*before, said, *after],
    st.lists(system_turns, max_size=2),
    user_turns,
    st.lists(system_turns, max_size=2),
)
asks_again = asks | st.lists(contents.map(system), min_size=1, max_size=2)
dialects = st.sampled_from([FOLDING, KEEPING])


@st.composite
def conversations(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """A conversation as its requests: each goes on from the one before and the model's answer."""
    messages: list[dict[str, Any]] = []
    requests: list[list[dict[str, Any]]] = []
    for turn in range(draw(st.integers(1, 4))):
        messages = [*messages, *draw(asks_again if turn else asks)]
        requests.append(messages)
        messages = [*messages, draw(answers)]
    return requests


def rendered(body: dict[str, Any], dialect: Dialect) -> str:
    """What a template of ChatML's kind makes of the chat messages that engines make of a body."""
    chat = to_chat(body, dialect)
    parts = [json.dumps(chat.get("tools"))]
    for message in chat["messages"]:
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "\n".join(part["text"] for part in content)
        thought, calls = message.get("reasoning", ""), json.dumps(message.get("tool_calls"))
        parts.append(f"<{message['role']}>{thought}{content}{calls}<end>\n")
    return "".join(parts)


@settings(max_examples=40)
@given(conversations(), dialects)
def test_a_later_turns_prompt_begins_with_the_earlier_ones(
    requests: list[list[dict[str, Any]]], dialect: Dialect
) -> None:
    before = ""
    outline_before: Outline = ()
    for messages in requests:
        asked = ask({"system": "Head.", "messages": messages}, dialect)
        prompt = rendered(asked.body, dialect)
        assert prompt.startswith(before)
        assert asked.outline[: len(outline_before)] == outline_before
        before, outline_before = prompt, asked.outline


@settings(max_examples=40)
@given(conversations(), dialects)
def test_a_system_turn_is_never_the_last_word(
    requests: list[list[dict[str, Any]]], dialect: Dialect
) -> None:
    for messages in requests:
        assert ask({"messages": messages}, dialect).body["messages"][-1]["role"] == "user"


def test_a_system_turn_after_an_answer_keeps_its_place_only_before_the_users_words() -> None:
    talk = [user("Say red."), assistant("Red."), system("It is noon.")]
    folded = user("<system-reminder>\nIt is noon.\n</system-reminder>")
    asked = ask({"messages": talk}, KEEPING).body["messages"]
    assert asked == [*talk[:2], folded]
    answered = [*talk, assistant("Noon."), user("Go on.")]
    asked = ask({"messages": answered}, KEEPING).body["messages"]
    assert asked == [*talk[:2], folded, *answered[3:]]
    kept = [*talk, user("Go on.")]
    assert ask({"messages": kept}, KEEPING).body["messages"] == kept


@settings(max_examples=40)
@given(conversations())
def test_what_is_folded_is_told_once_and_stays_within_its_turn(
    requests: list[list[dict[str, Any]]],
) -> None:
    asked = ask({"messages": requests[-1]})
    roles = [message["role"] for message in asked.body["messages"]]
    assert set(roles) <= {"user", "assistant"}
    assert roles[-1] == "user"
    turns = [block for block in asked.outline if block.kind == "system turn"]
    told = rendered(asked.body, FOLDING)
    later = first_user(requests[-1])
    assert told.count("</system-reminder>") == sum((one.message or 0) >= later for one in turns)


def first_user(messages: list[dict[str, Any]]) -> int:
    return next(number for number, one in enumerate(messages) if one["role"] != "system")


def as_list(content: Any) -> Any:
    return [text(content)] if isinstance(content, str) else content


def marked(content: Any, place: int) -> Any:
    """The same blocks, one of them marked for a cache that we do not have."""
    blocks = copy.deepcopy(as_list(content))
    blocks[place % len(blocks)]["cache_control"] = EPHEMERAL
    return blocks


@settings(max_examples=40)
@given(conversations(), dialects, st.integers(0, 9), st.integers(0, 9))
def test_a_text_as_string_or_list_with_marks_anywhere_renders_alike(
    requests: list[list[dict[str, Any]]], dialect: Dialect, place: int, other: int
) -> None:
    messages = requests[-1]
    plain = ask({"system": "Head.", "messages": messages}, dialect)
    listed = [{**one, "content": as_list(one["content"])} for one in messages]
    for number in (place, other):
        turns = [
            {**one, "content": marked(one["content"], number)}
            if at == number % len(listed)
            else one
            for at, one in enumerate(listed)
        ]
        head = [text("Head.", cache_control=EPHEMERAL)]
        asked = ask({"system": head, "messages": turns}, dialect)
        assert asked.body == plain.body
        assert asked.outline == plain.outline


@settings(max_examples=40)
@given(conversations(), dialects)
def test_what_was_normalised_once_stays_as_it_is(
    requests: list[list[dict[str, Any]]], dialect: Dialect
) -> None:
    once = ask({"system": "Head.", "messages": requests[-1]}, dialect)
    again = ask(once.body, dialect)
    assert again.body == once.body
    assert again.removed == {}


def test_messages_that_are_all_of_the_head_leave_an_empty_turn() -> None:
    asked = ask({"messages": [system("Be brief.")]})
    assert (asked.body["system"], asked.body["messages"]) == ("Be brief.", [user("")])


@given(words, words, st.booleans())
def test_a_tools_result_as_string_or_list_renders_alike(said: str, more: str, failed: bool) -> None:
    def asked(content: Any, **marks: Any) -> Any:
        answer = result("t1", content, is_error=failed, **marks)
        history = [user(more), assistant([use("t1", "Bash", {})]), user([answer])]
        return ask({"messages": history})

    plain = asked(said)
    listed = asked([text(said, cache_control=EPHEMERAL)], cache_control=EPHEMERAL)
    assert listed.body == plain.body
    assert listed.outline == plain.outline


def test_the_outline_names_the_kinds_in_the_order_of_the_prompt() -> None:
    body, _, _ = recorded("cc_tui_compact")
    asked = ask({key: body[key] for key in ("system", "tools", "messages")})
    assert [(block.kind, block.message) for block in asked.outline] == [
        ("tool", None),
        ("tool", None),
        ("system", None),
        ("system", None),
        ("user text", 0),
        ("user text", 0),
        ("system turn", 1),
        ("thinking", 2),
        ("assistant text", 2),
        ("tool_use", 2),
        ("tool_use", 2),
        ("tool_result", 3),
        ("tool_result", 3),
        ("user text", 3),
    ]
    assert {len(block.digest) for block in asked.outline} == {8}
    assert [block.characters for block in asked.outline][-4:-1] != [0, 0, 0]


def test_a_change_in_one_block_shows_in_its_digest_alone() -> None:
    def outline(second: str) -> Any:
        return ask({"messages": [user([text("a"), text(second), text("c")])]}).outline

    first, other = outline("b"), outline("B")
    assert [one == two for one, two in zip(first, other, strict=True)] == [True, False, True]


def test_reading_a_megabyte_costs_little_beside_parsing_it() -> None:
    """Some 4 ms for 1.1 MB in 500 messages, beyond the 2 ms of parsing them."""
    body, _, _ = recorded("cc_p_default_messages")
    turns = body["messages"]
    for number in range(250):
        turns = [*turns, assistant([text("b" * 500), use(f"t{number}", "Bash", {"c": "x" * 200})])]
        turns = [*turns, user([result(f"t{number}", "line of code\n" * 250)])]
    whole = {**body, "messages": turns}
    size = len(json.dumps(whole))
    assert size > 1_000_000
    began = time.process_time()
    for _ in range(5):
        json.loads(json.dumps(whole).encode())
    parsing_s = time.process_time() - began
    began = time.process_time()
    for _ in range(5):
        ask(whole)
    taken_s = time.process_time() - began
    # `ask` writes and parses the body as well; the rest is what reading it adds.
    assert (taken_s - parsing_s) / 5 < 0.05
