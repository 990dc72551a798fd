"""Ways of keeping a context small: each acts past its limit only, and keeps what must stay."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.experiments.session_course import Course, forecast, outline, summary_request
from a40console.experiments.session_lengths import Lengths, TurnLength, shipped
from a40console.experiments.shrinking import (
    CLEARED,
    RESULTS_KEPT,
    WAYS,
    Way,
    restarted,
    way_of,
)
from a40console.experiments.transcript import (
    Piece,
    Pieces,
    messages,
    prefix_tokens,
    shared_tokens,
    tokens_of,
)

TURNS = st.lists(
    st.builds(TurnLength, st.integers(12, 400), st.integers(8, 200)), min_size=4, max_size=40
)
LIMITS = st.integers(600, 3_000)
SHRINKING: tuple[Way, ...] = ("cc-clear", "per-turn", "block")


def lengths_of(turns: list[TurnLength]) -> Lengths:
    return Lengths(system=200, turns=tuple(turns), summary=60, file=100)


def history(turns: int, given: int = 100, answer: int = 50) -> Pieces:
    session = outline(lengths_of([TurnLength(given, answer)] * turns))
    pieces: Pieces = (session.system,)
    for turn in session.turns[:-1]:
        pieces = (*pieces, turn.given, turn.answer)
    return (*pieces, session.turns[-1].given)


@pytest.mark.parametrize("way", WAYS)
@given(turns=TURNS)
def test_below_its_limit_no_way_does_anything(way: Way, turns: list[TurnLength]) -> None:
    pieces = history(len(turns))
    shrunk = way_of(way, 10**9, 0.5)(pieces, tokens_of(pieces))
    assert shrunk.pieces == pieces
    assert not shrunk.happened


@pytest.mark.parametrize("way", WAYS)
@given(turns=TURNS, limit=LIMITS)
def test_the_system_prompt_and_the_newest_message_always_stay(
    way: Way, turns: list[TurnLength], limit: int
) -> None:
    course = Course(outline(lengths_of(turns)).system, way_of(way, limit, 0.5))
    for turn in outline(lengths_of(turns)).turns:
        pieces = course.next(turn).pieces
        assert pieces[0].kind == "system"
        assert pieces[-1] == turn.given
        roles = [message["role"] for message in messages(pieces)]
        assert all(one != other for one, other in pairwise(roles)), "templates want turns"
        course.answered(pieces, turn)


@pytest.mark.parametrize("way", SHRINKING)
@given(turns=TURNS, limit=LIMITS)
def test_what_was_removed_is_told(way: Way, turns: list[TurnLength], limit: int) -> None:
    session = outline(lengths_of(turns))
    course = Course(session.system, way_of(way, limit, 0.5))
    for turn in session.turns:
        before = (*course.history, turn.given)
        shrunk = course.next(turn)
        assert tokens_of(before) - tokens_of(shrunk.pieces) == shrunk.removed_tokens
        course.answered(shrunk.pieces, turn)


def test_per_turn_drops_a_question_and_its_answer_and_no_more() -> None:
    pieces = history(20)
    shrunk = way_of("per-turn", 1_000, 0.5)(pieces, tokens_of(pieces))
    assert shrunk.pieces == (pieces[0], *pieces[3:])


def test_block_goes_down_to_low_water_at_once() -> None:
    pieces = history(20)
    shrunk = way_of("block", 2_000, 0.5)(pieces, tokens_of(pieces))
    left = tokens_of(shrunk.pieces)
    low_water = 200 + (2_000 - 200) * 0.5
    assert low_water - 150 <= left <= low_water
    assert shrunk.pieces[1:] == pieces[-(len(shrunk.pieces) - 1) :]


def test_clearing_leaves_the_last_three_results_and_every_answer() -> None:
    pieces = history(20)
    shrunk = way_of("cc-clear", 1_000, 0.5)(pieces, tokens_of(pieces))
    results = [piece for piece in shrunk.pieces if piece.kind == "tool_result"]
    assert [piece.text for piece in results[:-RESULTS_KEPT]] == [CLEARED] * (
        len(results) - RESULTS_KEPT
    )
    assert all(piece.text != CLEARED for piece in results[-RESULTS_KEPT:])
    answers = [piece for piece in pieces if piece.kind == "assistant"]
    assert [piece for piece in shrunk.pieces if piece.kind == "assistant"] == answers


def test_clearing_twice_changes_nothing_more() -> None:
    pieces = history(20)
    clear = way_of("cc-clear", 100, 0.5)
    once = clear(pieces, tokens_of(pieces)).pieces
    again = clear(once, tokens_of(once))
    assert again.pieces == once
    assert not again.happened


def test_the_client_asks_for_a_summary_with_its_whole_history_and_restarts_from_it() -> None:
    pieces = history(20)
    assert way_of("cc-auto", 1_000, 0.5)(pieces, tokens_of(pieces)).summarise
    asked = summary_request(pieces)
    assert asked[:-1] == pieces[:-1]
    assert prefix_tokens(pieces, asked) == tokens_of(pieces[:-1]), "the cache serves all of it"
    summary = Piece(kind="summary", text="so far", tokens=60)
    new = restarted(pieces, summary, lambda piece: piece)
    assert [piece.kind for piece in new] == ["system", "summary", *["files"] * 3, "tool_result"]
    assert new[-1] == pieces[-1]


def test_a_restarted_history_is_not_summed_up_again_at_once() -> None:
    pieces = history(20)
    summary = Piece(kind="summary", text="so far", tokens=60)
    new = restarted(pieces, summary, lambda piece: piece)
    assert not way_of("cc-auto", 10, 0.5)(new, tokens_of(new)).summarise


def test_pruning_each_turn_keeps_the_content_and_loses_the_prefix() -> None:
    pieces = history(20)
    pruned = way_of("per-turn", 1_000, 0.5)(pieces, tokens_of(pieces)).pieces
    assert shared_tokens(pieces, pruned) == tokens_of(pruned)
    assert prefix_tokens(pieces, pruned) == pieces[0].tokens


def test_on_paper_pruning_each_turn_computes_many_times_what_blocks_do() -> None:
    lengths = shipped()
    paper = {way: forecast(lengths, way_of(way, 48_000, 0.5), 262_144) for way in WAYS}
    whole = lengths.system + sum(turn.given + turn.answer for turn in lengths.turns)
    assert paper["none"].computed_tokens == whole - lengths.turns[-1].answer
    assert paper["per-turn"].computed_tokens > 5 * paper["block"].computed_tokens
    assert 2 <= paper["block"].shrinks <= 8 < paper["per-turn"].shrinks
    assert paper["cc-auto"].requests == 120 + paper["cc-auto"].shrinks


def test_on_paper_a_window_too_small_is_found_at_its_turn() -> None:
    lengths = lengths_of([TurnLength(100, 50)] * 20)
    told = forecast(lengths, way_of("none", 0, 0.5), 1_000)
    assert told.overflows_at == 6
