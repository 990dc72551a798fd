"""Lines keep their width, whatever is written on them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from a40console.tui.ink import (
    Line,
    Role,
    Span,
    clean,
    faded,
    fit,
    flow,
    line,
    pad,
    rule,
    spread,
    width_of,
    wrap,
)

SPANS = st.builds(Span, st.text(max_size=20).map(clean), st.sampled_from(Role))
LINES = st.lists(SPANS, max_size=6).map(lambda spans: line(*spans))
WIDTHS = st.integers(min_value=0, max_value=60)


@given(LINES, WIDTHS)
def test_fit_never_exceeds_the_width(spans: Line, width: int) -> None:
    assert width_of(fit(spans, width)) <= width


@given(LINES, WIDTHS)
def test_pad_takes_exactly_the_width(spans: Line, width: int) -> None:
    padded = width_of(pad(spans, width))
    # A character of two cells that does not fit leaves its cell blank or is cut before it.
    assert padded == width or (width_of(spans) > width and padded <= width)


@given(LINES, LINES, WIDTHS)
def test_spread_stays_within_the_width_unless_the_right_alone_is_wider(
    left: Line, right: Line, width: int
) -> None:
    assert width_of(spread(left, right, width)) <= max(width, 0)


@given(st.lists(LINES, max_size=6), WIDTHS)
def test_flow_stays_within_the_width(items: list[Line], width: int) -> None:
    assert width_of(flow(items, width)) <= width


@given(st.text(max_size=200), st.integers(min_value=4, max_value=40))
def test_wrap_loses_no_word_that_fits(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(width_of(entry) <= width for entry in lines)
    words = [word for word in clean(text).split() if len(word) * 2 <= width]
    written = " ".join("".join(span.text for span in entry) for entry in lines)
    assert all(word in written for word in words)


@given(st.text())
def test_clean_text_cannot_move_the_cursor(text: str) -> None:
    assert clean(text).isprintable()
    assert len(clean(text)) == len(text)


@given(LINES)
def test_neighbours_of_one_role_are_one_span(spans: Line) -> None:
    assert all(a[1:] != b[1:] for a, b in pairwise(spans))


def test_faded_lines_keep_their_text_and_lose_their_colours() -> None:
    grey = faded([line(Span("a", Role.BAD), Span("b", Role.GOOD))])
    assert grey == [(Span("ab", Role.MUTED),)]


def test_a_rule_fills_its_width() -> None:
    assert width_of(rule(line("Speed"), 30)) == 30
    assert width_of(rule(line("Speed"), 30, line("tail"))) == 30


def test_flow_gives_up_the_last_items_first() -> None:
    items = [line("first"), line("second"), line("third")]
    assert flow(items, 14) == line("first  second")
