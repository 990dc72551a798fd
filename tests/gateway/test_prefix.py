"""Where two prompts part, in words that an operator can act on."""

from __future__ import annotations

import pytest

from a40console.gateway.loss_words import cause_of, remedy_of
from a40console.gateway.prefix import compare
from a40console.model.session import Outline
from tests.gateway.session_clients import HEAD, block, talk

ANSWERED: Outline = (
    *HEAD,
    block("user text", "do it", 0),
    block("thinking", "hm", 1, 900),
    block("assistant text", "done", 1),
    block("user text", "more", 2),
)


def swapped(at: int, *pieces: object) -> Outline:
    return (*ANSWERED[:at], *pieces, *ANSWERED[at + 1 :])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("later", "cause", "remedy"),
    [
        (
            swapped(0, block("tool", "Bash", characters=2000), block("tool", "mcp__x")),
            "tool was put in",
            "ENABLE_TOOL_SEARCH=0",
        ),
        (swapped(1), "tool was dropped", "connect MCP servers before"),
        (
            swapped(3, block("system", "on Friday", characters=8000)),
            "system changed, at the same length: a date, a counter or an id in it",
            "CLAUDE_CODE_ATTRIBUTION_HEADER=0",
        ),
        (
            swapped(3, block("system", "shorter", characters=7000)),
            "system changed",
            "take dates, counters and ids out of it",
        ),
        (swapped(5), "thinking of message 2 was dropped", "Switch thinking off"),
        (
            swapped(5, block("system turn", "reminder", 1), ANSWERED[5]),
            "system turn of message 2 was put in",
            "CLAUDE_CODE_TOTAL_TOKENS_REMINDER=off",
        ),
        (
            swapped(6, block("assistant text", "was rewritten", 1, 90)),
            "assistant text of message 2 changed",
            "as they came",
        ),
        (
            swapped(4, block("image", "picture", 0, 0)),
            "user text of message 1 was replaced",
            "append to its history",
        ),
        (ANSWERED[:6], "the prompt ends before assistant text of message 2", "as they came"),
    ],
)
def test_the_first_difference_is_named_and_has_its_remedy(
    later: Outline, cause: str, remedy: str
) -> None:
    parting = compare(ANSWERED, later).parting
    assert parting is not None
    assert cause_of(parting) == cause
    assert remedy in remedy_of(parting)


def test_a_prompt_that_goes_on_parts_nowhere_and_its_answer_is_measured() -> None:
    answered = (*ANSWERED, block("tool_use", "call", 3, 70), block("tool_result", "found", 4, 800))
    found = compare(ANSWERED, answered)
    assert (found.parting, found.continues, found.same) == (None, True, False)
    assert (found.answer_characters, found.shared_characters) == (70, found.before_characters)


def test_what_moved_is_still_shared_and_what_is_gone_is_not() -> None:
    found = compare(HEAD + talk(2), (*HEAD[1:], *talk(2)))
    assert found.prefix_characters == 0
    assert found.shared_characters == found.before_characters - 2000


def test_two_talks_that_only_begin_alike_are_two() -> None:
    one = (*HEAD, block("user text", "reminder", 0), block("user text", "look here", 0))
    other = (*HEAD, block("user text", "reminder", 0), block("user text", "look there", 0, 90))
    assert not compare(one, other).continues
    assert not compare((*one, block("tool_use", "a", 1)), other).continues


def test_a_changed_head_before_the_same_first_question_is_the_same_talk() -> None:
    changed = (*HEAD[:3], block("system", "on Friday", characters=8000))
    assert compare(HEAD + talk(0), changed + talk(0)).continues


def test_an_answer_that_both_hold_makes_it_one_talk() -> None:
    pruned = (*HEAD, block("user text", "summary", 0), *talk(2)[3:])
    assert compare(HEAD + talk(2), pruned).continues
