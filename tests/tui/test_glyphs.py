"""In ASCII every character is as wide as what it replaces, and the product's own keep a meaning.

Row 49 of the faults.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from a40console.tui.glyphs import to_ascii
from a40console.tui.ink import clean
from a40console.tui.raster import BARS, gauge, spark

ROOT = Path(__file__).parents[2]


@given(st.text().map(clean))
def test_the_width_stays_and_nothing_else_is_left(text: str) -> None:
    plain = to_ascii(text)
    assert plain.isascii()
    assert cell_len(plain) == cell_len(text)


@given(st.text(st.characters(codec="ascii")))
def test_ascii_is_left_alone(text: str) -> None:
    assert to_ascii(text) == text


def test_no_character_of_ours_becomes_a_question_mark() -> None:
    texts = [path.read_text() for path in (ROOT / "a40console" / "tui").rglob("*.py")]
    used = {char for text in texts for char in text if not char.isascii()}
    lost = {char for char in used if "?" in to_ascii(char)}
    assert not lost


def test_states_keep_different_signs() -> None:
    signs = "●◐✖○▲✓▸"
    assert len(set(to_ascii(signs))) == len(signs)


def test_bars_grow_and_gauges_fill() -> None:
    assert len(set(to_ascii(BARS))) == len(BARS)
    assert to_ascii(gauge(0.5, 4)) == "##.."
    assert to_ascii(spark([1, None, 8])).isascii()


@pytest.mark.parametrize(
    ("dots", "strokes"), [("⠉", "'"), ("⣀⣀", "__"), ("⡠⠊", "//"), ("⠑⢄", "\\\\"), ("⡇⠀", "| ")]
)
def test_the_dots_of_spinners_and_curves_become_strokes(dots: str, strokes: str) -> None:
    assert to_ascii(dots) == strokes


def test_letters_lose_their_accents_and_wide_signs_keep_their_cells() -> None:
    assert to_ascii("café") == "cafe"
    assert to_ascii("日本") == "????"
