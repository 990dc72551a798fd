"""Answers held against each other: rounding, damage with its fragment, and what cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.answers_compared import compare, gap_nats, spliced
from a40console.experiments.bench import Reply
from a40console.model.figures import Estimated, Missing, number
from a40console.model.run_record import Sample


def reply(text: str, logprobs: tuple[dict[str, Any], ...] = ()) -> Reply:
    sample = Sample(
        arm="with",
        repeat=0,
        index=0,
        warm_up=False,
        due_s=0.0,
        sent_s=0.0,
        ttft_s=0.1,
        total_s=1.0,
    )
    return Reply(sample=sample, text=text, logprobs=logprobs)


def token(text: str, logprob: float, **others: float) -> dict[str, Any]:
    top = [{"token": name, "logprob": value} for name, value in others.items()]
    top.append({"token": text, "logprob": logprob})
    return {"token": text, "logprob": logprob, "top_logprobs": top}


@pytest.mark.parametrize(
    ("prompt", "without", "speculated", "fragment"),
    [
        (
            "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a -b):\n",
            "    return a - b\n\ndef multiply(a,",
            "    return a -b):\n    return a - b\n\ndef multiply(a,",
            "b):\n    return a -",
        ),
        (
            "    return ",
            "fibonacci(n-1) + fibonacci(n-2)",
            "fibonacci(n-1(n-1) + fibonacci(n-2)",
            "(n-1",
        ),
    ],
)
def test_the_two_corruptions_that_were_seen_on_kimi_linear(
    prompt: str, without: str, speculated: str, fragment: str
) -> None:
    found = compare("code", prompt, reply(without), reply(without), reply(speculated))
    assert (found.kind, found.fragment) == ("corrupt", fragment)


@given(st.permutations("abcdefghijklmnopqrstuvwxyz(-)12"), st.integers(8, 16), st.integers(2, 6))
def test_a_fragment_put_in_again_is_corrupt(signs: list[str], at: int, length: int) -> None:
    """No sign stands twice, so the answers part where the fragment was put in."""
    text = "".join(signs)
    speculated = text[:at] + text[at - length : at] + text[at:]
    found = compare("code", "", reply(text), reply(text), reply(speculated))
    assert found.same_characters == at
    assert (found.kind, found.fragment) == ("corrupt", text[at - length : at])


def test_an_engine_that_disagrees_with_itself_is_unsteady() -> None:
    found = compare("p", "", reply("a b c"), reply("a b d"), reply("a x y"))
    assert found.kind == "unsteady"


@pytest.mark.parametrize(
    ("gap", "kind"),
    [
        (0.01, "near-tie"),
        (0.250001, "near-tie"),
        (0.26, "unexplained"),
        (0.500001, "unexplained"),
        (0.51, "corrupt"),
        (7.0, "corrupt"),
    ],
)
def test_the_gap_decides(gap: float, kind: str) -> None:
    without = reply("ab", (token("a", -0.1), token("b", -0.2, c=-0.2 - gap)))
    speculated = reply("ac", (token("a", -0.1), token("c", -0.3)))
    found = compare("p", "", without, without, speculated)
    assert found.kind == kind
    assert number(found.gap_nats) == pytest.approx(gap)


@pytest.mark.parametrize(
    ("again", "kind"), [("ab", "corrupt"), ("az", "unsteady"), (None, "unexplained")]
)
def test_a_wide_gap_is_damage_only_where_the_engine_agrees_with_itself(
    again: str | None, kind: str
) -> None:
    without = reply("ab", (token("a", -0.1), token("b", -0.2, c=-7.2)))
    once_more = None if again is None else reply(again)
    assert compare("p", "", without, once_more, reply("ac")).kind == kind


def test_of_what_proves_nothing_it_is_said_why() -> None:
    told = {
        "between 0.25 and 0.5 nats": (reply("b", (token("b", -0.2, c=-0.6),)), reply("c")),
        "not among the likeliest": (reply("b", (token("b", -0.2, d=-0.3),)), reply("c")),
        "tells no logprobs": (reply("b"), reply("c")),
        "ends where the other goes on": (reply("b", (token("b", -0.2),)), reply("bc")),
    }
    for why, (without, speculated) in told.items():
        found = compare("p", "", without, without, speculated)
        assert found.kind == "unexplained"
        assert why in found.why
    (without, speculated) = told["tells no logprobs"]
    assert "differs from itself" in compare("p", "", without, reply("z"), speculated).why


def test_a_fragment_put_in_is_damage_however_unsteady_the_engine_is() -> None:
    without, speculated = "fibonacci(n-1) + fibonacci(n-2)", "fibonacci(n-1(n-1) + fibonacci(n-2)"
    found = compare("p", "return ", reply(without), reply("fib(n)"), reply(speculated))
    assert (found.kind, found.fragment) == ("corrupt", "(n-1")


def test_a_token_beyond_the_likeliest_has_a_least_gap() -> None:
    without = reply("b", (token("b", -0.2, d=-3.2),))
    assert gap_nats(without, reply("z"), 0) == Estimated(3.0)
    assert isinstance(gap_nats(reply("b"), reply("z"), 0), Missing)


def test_a_near_tie_of_tokens_that_are_cut_otherwise_is_one() -> None:
    """As llama.cpp told it: a line's end and another may be one token or two."""
    steps = (
        token("}", -0.06, **{"},": -5.9}),
        token("\n", -0.021, **{"\n\n": -4.48, "`": -7.4}),
        token("```", -0.759, **{"\n": -0.76, "}": -5.0}),
    )
    found = gap_nats(reply("}\n```", steps), reply("}\n\n# Example"), 2)
    assert number(found) == pytest.approx(0.001)

    steps = (*steps[:2], token("```", -0.001, **{"}": -9.0}))
    found = gap_nats(reply("}\n```", steps), reply("}\n\n# Example"), 2)
    assert number(found) == pytest.approx(4.459)


def test_logprobs_that_are_not_of_the_text_prove_nothing() -> None:
    steps = (token("a", -0.1), token("c", -0.2, x=-0.3))
    found = compare("p", "", reply("abc", steps), reply("abc", steps), reply("abx"))
    assert found.kind == "unexplained"


@given(st.text("ab(n)-1 \n", max_size=60), st.text("ab(n)-1 \n", max_size=60))
def test_the_same_text_is_exact_and_a_fragment_stood_there_before(prompt: str, text: str) -> None:
    same = compare("p", prompt, reply(text), reply(text), reply(text))
    assert same.kind == "exact"
    assert not same.excerpt
    for at in range(len(text)):
        fragment = spliced(prompt, text[:at], text, at)
        assert fragment in prompt + text[:at]
        assert text[at:].startswith(fragment)
