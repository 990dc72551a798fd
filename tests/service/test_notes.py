"""A note is one harmless line, whatever was typed or pasted."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.errors import UsageError
from a40console.model.event import NOTE_LIMIT
from a40console.service.notes import cleaned


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("pruning off from here", "pruning off from here"),
        ("  two\n lines\t and\r\n more ", "two lines and more"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07now", "red now"),
        ("\x1b[2J\x1b[H\x9b31mgone", "31mgone"),
        ("a\x00b\x07c\x7fd", "abcd"),
        ("left\u202eright\u2066\u200bhidden", "leftrighthidden"),
        ("line\u2028sep", "linesep"),
        ("Zoë → 5 €/h ✓ 日本", "Zoë → 5 €/h ✓ 日本"),
        ("[bold]markup[/] $(id) `id` <b>", "[bold]markup[/] $(id) `id` <b>"),
    ],
)
def test_what_is_kept(typed: str, kept: str) -> None:
    assert cleaned(typed) == kept


def test_nothing_of_an_escape_sequence_is_left() -> None:
    assert cleaned("a\x1bPq#0;2;0b\x1b\\b") == "ab", "a picture for the terminal"
    assert cleaned("a\x1b]0;title\x07b") == "ab"


@pytest.mark.parametrize("typed", ["", "   \n", "\x1b[2J", "\u200b\u202e", "\x00"])
def test_nothing_is_no_note(typed: str) -> None:
    with pytest.raises(UsageError, match="The note has no text"):
        cleaned(typed)


def test_a_long_one_is_refused_with_both_lengths_and_one_that_just_fits_is_whole() -> None:
    with pytest.raises(UsageError, match="The note has 100,000 characters, an entry takes 200"):
        cleaned("x" * 100_000)
    assert cleaned("x" * NOTE_LIMIT) == "x" * 200
    assert cleaned(" " + "x" * NOTE_LIMIT + "\x1b[0m\n") == "x" * 200


@given(st.text(max_size=400))
def test_no_text_steers_a_terminal(typed: str) -> None:
    try:
        note = cleaned(typed)
    except UsageError:
        return
    assert len(note) <= NOTE_LIMIT
    assert not [c for c in note if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")]
    assert note == cleaned(note)
