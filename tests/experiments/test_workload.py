"""The session's text and lengths: as long as asked, the same for a seed, and only ever our own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.asking import Asking, Place
from a40console.experiments.session_lengths import (
    SHIPPED_TURNS,
    TurnLength,
    lengths_of_session,
    read_lengths,
    shipped,
    write_lengths,
)
from a40console.experiments.transcript import messages
from a40console.experiments.workload import Rates, cut, transcript, with_nonce
from a40console.model.figures import Missing
from tests import make_session

RATES = Rates(per_word={"prose": 1.3, "code": 3.0, "log": 3.4}, per_message=5.0, base=2.0)


def test_the_shipped_session_is_a_real_agents() -> None:
    lengths = shipped()
    assert len(lengths.turns) == SHIPPED_TURNS == 120
    whole = lengths.system + sum(turn.given + turn.answer for turn in lengths.turns)
    assert 100_000 < whole < 160_000
    assert lengths.turns == shipped(200).turns[:120], "a longer one begins like it"


def test_pieces_come_to_the_lengths_that_were_asked() -> None:
    lengths = shipped(60)
    made = transcript(lengths, RATES, seed=1, facts=0)
    for turn, asked in zip(made.turns, lengths.turns, strict=True):
        assert turn.given.tokens == pytest.approx(asked.given, abs=20)
        assert turn.answer.tokens == pytest.approx(asked.answer, abs=20)
    assert made.system.tokens == pytest.approx(lengths.system, rel=0.01)


def test_words_are_what_the_counted_tokens_are_of() -> None:
    made = transcript(shipped(30), RATES, seed=1, facts=0)
    words = len(made.system.text.split())
    assert made.system.tokens == round(words * 1.3 + 5.0)


def test_a_seed_says_the_same_and_another_seed_something_else() -> None:
    lengths = shipped(20)
    assert transcript(lengths, RATES, seed=3, facts=4) == transcript(
        lengths, RATES, seed=3, facts=4
    )
    other = transcript(lengths, RATES, seed=4, facts=4)
    assert transcript(lengths, RATES, seed=3, facts=4).turns[5] != other.turns[5]


@given(st.integers(0, 200))
def test_each_fact_is_said_once_and_its_answer_stands_nowhere_else(seed: int) -> None:
    made = transcript(shipped(40).scaled(0.05), RATES, seed=seed, facts=12)
    texts = [made.system.text, *(p.text for t in made.turns for p in (t.given, t.answer))]
    assert len(made.facts) == 12
    for fact in made.facts:
        holding = [at for at, text in enumerate(texts) if fact.expected in text.casefold()]
        assert len(holding) == 1
        assert fact.statement in made.turns[fact.turn - 1].given.text


def test_a_nonce_changes_the_head_and_not_the_length() -> None:
    system = transcript(shipped(4), RATES, seed=1, facts=0).system
    one, other = with_nonce(system, 1), with_nonce(system, 2)
    assert one.text[:60] != other.text[:60]
    assert len(one.text.split()) == len(other.text.split())
    assert one.tokens == other.tokens


def test_a_cut_piece_begins_like_the_whole_one() -> None:
    piece = transcript(shipped(4), RATES, seed=1, facts=0).system
    short = cut(piece, 100)
    assert piece.text.startswith(short.text)
    assert len(short.text.split()) * 1.3 == pytest.approx(100, rel=0.2)
    assert cut(short, 1_000) == short


def test_only_an_order_that_the_dialect_knows_is_given() -> None:
    made = transcript(shipped(4), RATES, seed=1, facts=0)
    pieces = (made.system, made.turns[0].given)
    asking = Asking(model="m", dialect="openai", forces_length=True, run_mark="")

    def body(asking: Asking, *, free: bool = False) -> Mapping[str, Any]:
        return asking.request(messages(pieces), Place(arm="a"), output_tokens=40, free=free).body

    chat = body(asking)
    assert (chat["max_tokens"], chat["ignore_eos"]) == (40, True)
    assert "min_tokens" not in chat, "it would cost speculation, and says nothing more"
    assert "ignore_eos" not in body(asking, free=True)
    assert "ignore_eos" not in body(replace(asking, forces_length=False))
    other = body(replace(asking, dialect="anthropic", forces_length=False))
    assert other["system"] == made.system.text
    assert [message["role"] for message in other["messages"]] == ["user"]
    assert "ignore_eos" not in other


def test_neighbours_of_one_role_become_one_message() -> None:
    made = transcript(shipped(4), RATES, seed=1, facts=0)
    told = messages((made.system, made.turns[0].given, made.turns[1].given))
    assert [message["role"] for message in told] == ["system", "user"]
    assert told[1]["content"].startswith(made.turns[0].given.text)


@given(
    st.integers(40, 20_000),
    st.lists(
        st.builds(TurnLength, st.integers(1, 9_000), st.integers(1, 9_000)),
        min_size=1,
        max_size=30,
    ),
)
def test_written_lengths_are_read_back(system: int, turns: list[TurnLength]) -> None:
    told = read_lengths(write_lengths(system, turns))
    assert (told.system, told.turns) == (system, tuple(turns))


def test_equal_turns_are_written_once() -> None:
    told = read_lengths("2400; 330/700*120")
    assert told.turns == (TurnLength(330, 700),) * 120


@pytest.mark.parametrize("text", ["", "2400", "2400;", "x;1/2", "2400;330", "2400;a/b", "1;2/3*x"])
def test_impossible_lengths_are_refused_with_the_way_to_write_them(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape("330/700*120")):
        read_lengths(text)


def test_small_windows_still_say_something() -> None:
    small = shipped().scaled(0.01)
    assert min(turn.given for turn in small.turns) >= 12
    assert min(turn.answer for turn in small.turns) >= 8


def test_an_own_sessions_lengths_are_what_each_turn_added() -> None:
    told = lengths_of_session(
        make_session.detail(
            forgotten_requests=0,
            timeline=(
                make_session.request(prompt_tokens=10_000, generated_tokens=300),
                make_session.request(prompt_tokens=10_900, generated_tokens=50),
                make_session.request(agent="Explore", prompt_tokens=400, generated_tokens=9),
                make_session.request(purpose="compaction", prompt_tokens=11_000),
                make_session.request(prompt_tokens=4_000, generated_tokens=70),
                make_session.request(prompt_tokens=4_470, generated_tokens=80),
            ),
        )
    )
    assert told == "9500;500/300,600/50,600/70,400/80"
    assert isinstance(told, str)
    assert len(read_lengths(told).turns) == 4


def test_a_session_without_counts_has_no_lengths() -> None:
    unknown = make_session.request(prompt_tokens=Missing("not told"))
    told = lengths_of_session(make_session.detail(timeline=(unknown, unknown)))
    assert isinstance(told, Missing)
