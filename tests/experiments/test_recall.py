"""Planted facts: spread over ages and kinds, and an answer is judged by the word that counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.compaction_score import AGES, age_of
from a40console.experiments.planted import FACT_KINDS, Fact, knows, planted, stands_in


@given(st.integers(4, 400), st.integers(0, 64), st.integers(0, 99))
def test_facts_are_spread_over_the_whole_session(turns: int, count: int, seed: int) -> None:
    facts = planted(turns, count, seed)
    assert len(facts) == min(turns, count)
    at = [fact.turn for fact in facts]
    assert len(set(at)) == len(at)
    assert all(1 <= turn <= turns for turn in at)
    assert len({fact.expected for fact in facts}) == len(facts)


@given(st.integers(0, 99))
def test_no_facts_word_stands_in_what_is_said_of_another(seed: int) -> None:
    facts = planted(400, 64, seed)
    assert len(facts) == 64
    for fact in facts:
        others = [each for each in facts if each is not fact]
        assert not stands_in(fact, [each.statement for each in others])
        assert not any(knows(fact, each.statement) for each in others)


def test_each_age_has_each_kind() -> None:
    facts = planted(120, 12, 1)
    for age in AGES:
        assert {fact.kind for fact in facts if age_of(fact, 120) == age} == set(FACT_KINDS)


@pytest.mark.parametrize("fact", planted(120, 12, 1), ids=lambda fact: fact.kind)
def test_the_statement_itself_is_an_answer_and_the_question_is_none(fact: Fact) -> None:
    assert knows(fact, fact.statement)
    assert not knows(fact, fact.question)
    assert not knows(fact, "I do not know.")
    assert not knows(fact, "")


def test_the_option_that_was_not_taken_is_wrong() -> None:
    decision = next(fact for fact in planted(120, 12, 1) if fact.kind == "decision")
    assert decision.rejected
    assert not knows(decision, f"The {decision.rejected} store.")
    assert knows(decision, f"The {decision.expected.upper()} store, not {decision.rejected}.")
    assert not knows(decision, f"Not {decision.rejected} but maybe {decision.expected}.")


def test_what_stands_in_a_text_is_seen_whoever_wrote_it() -> None:
    fact = planted(120, 12, 1)[0]
    assert stands_in(fact, ["nothing", f"a summary that names {fact.expected}"])
    assert not stands_in(fact, ["nothing", fact.question])
