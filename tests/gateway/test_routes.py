"""Both routes of the Messages API before real engines give the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from a40console.gateway.upstream import Upstream
from tests.gateway.both_routes import Table, counts, dialects_of, four, refusals
from tests.gateway.conversations import FORCED, OVERFLOW, PLAIN

CASES = PLAIN | FORCED
WITH_SYSTEM_TURNS = ("a later system message",)
ATTEMPTS = 3
"""A busy CPU rounds in another order, and where two words are as likely it takes the other: then a
route differs from itself as well, and only then it is asked again."""


@pytest.fixture(scope="module")
def table(real_engine_name: str) -> Iterator[Table]:
    made = Table(real_engine_name)
    yield made
    print(made.text())


@pytest.mark.parametrize("name", CASES)
async def test_the_same_answer(real_engine: Upstream, table: Table, name: str) -> None:
    native, translated = await dialects_of(real_engine)
    assert native.route == "native"
    alike = native.system_turns == translated.system_turns or name not in WITH_SYSTEM_TURNS
    answers = await four(real_engine, CASES[name])
    tries = 1
    while not agree(answers, alike) and tries < ATTEMPTS:
        again = await four(real_engine, CASES[name])
        assert again != answers, "the routes differ, and each agrees with itself"
        answers, tries = again, tries + 1
    first, whole, *others = answers
    assert whole == first
    assert others[1] == others[0]
    if alike:
        assert others[0] == first
    assert first["model"] == "claude-sonnet-5"
    table.add(name if alike else f"{name}, native: folded", first, tries)
    if not alike:
        table.add(f"{name}, translated: kept", others[0], tries)


def agree(answers: list[Any], alike: bool) -> bool:
    """Whether each route says the same both ways, and both do where they render alike."""
    native, whole, translated, translated_whole = answers
    same = native == whole and translated == translated_whole
    return same and (native == translated or not alike)


@pytest.mark.parametrize("answers", [["a", "a", "a", "a"], ["a", "a", "b", "b"]])
def test_what_agrees(answers: list[Any]) -> None:
    assert agree(answers, alike=answers[0] == answers[2])
    assert not agree(["a", "a", "b", "b"], alike=True)
    assert not agree(["a", "b", "a", "a"], alike=False)


async def test_a_limit_beyond_what_is_left_is_answered(real_engine: Upstream) -> None:
    native, translated = await dialects_of(real_engine)
    clamps = real_engine.kind == "vllm" and native.tells_stops
    assert (native.clamps, translated.clamps) == (clamps, clamps)
    body = {**CASES["the answer's own end"], "max_tokens": 4090}  # of a window of 4,096
    answers = await four(real_engine, body)
    assert [one["stop_reason"] for one in answers] == ["end_turn"] * 4


async def test_a_tool_that_must_be_called_is_called(real_engine: Upstream) -> None:
    if real_engine.kind == "llamacpp":
        pytest.skip("llama.cpp does not hold this model to a call, whatever tool_choice says")
    called = (await four(real_engine, FORCED["a tool that must be called"]))[0]
    assert called["content"] == [
        {"type": "tool_use", "name": "get_weather", "input": {"city": "Rome"}}
    ]
    assert called["stop_reason"] == "tool_use"


async def test_a_prompt_that_is_too_long_is_refused_alike(
    real_engine: Upstream, table: Table
) -> None:
    first, *others = await refusals(real_engine, OVERFLOW)
    assert others == [first] * 3
    status, kind, message = first
    assert (status, kind) == (400, "invalid_request_error")
    assert message.startswith("prompt is too long: ")
    assert message.endswith(" > 4096 maximum")
    table.rows.append(("a prompt beyond the window", "none", f"status {status}", message))


@pytest.mark.parametrize("name", ["results of tools", "a later system message", "several turns"])
async def test_both_count_what_a_request_is_charged(
    real_engine: Upstream, table: Table, name: str
) -> None:
    native, _, translated, _ = await four(real_engine, PLAIN[name])
    charged = [answer["usage"]["prompt"] for answer in (native, translated)]
    assert await counts(real_engine, PLAIN[name]) == charged
    told = f"{charged[0]} and {charged[1]} in, as charged"
    table.rows.append((f"count_tokens: {name}", "none", "none", told))
