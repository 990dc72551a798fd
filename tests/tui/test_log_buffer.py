"""The lines that are held: bounded, numbered for good, filtered."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.model.engine_log import LogMeaning
from a40console.model.log_line import Level, LogLine
from a40console.tui.log_buffer import LogBuffer, is_error

LINES = st.builds(
    LogLine, st.text(st.characters(codec="ascii"), max_size=12), st.sampled_from(Level)
)


def lines(*texts: str, level: Level = Level.INFO) -> list[LogLine]:
    return [LogLine(text, level) for text in texts]


def test_numbers_stay_when_lines_go() -> None:
    buffer = LogBuffer(max_lines=3)
    assert buffer.take(lines("a", "b", "c", "d", "e")) == 2
    assert buffer.texts == ["c", "d", "e"]
    assert (buffer.first, buffer.end) == (2, 5)
    assert buffer.line_at(buffer.row_of(3)).text == "d"
    assert buffer.row_of(0) == 0, "a line that is gone: the oldest one"


def test_long_lines_are_bounded_by_their_characters() -> None:
    buffer = LogBuffer(max_chars=100)
    buffer.take(lines(*("x" * 30 for _ in range(10))))
    assert buffer.count == 3


def test_a_block_is_a_line_with_all_that_goes_on_from_it() -> None:
    buffer = LogBuffer()
    frames = [LogLine(f"  frame {n}", Level.ERROR, continues=True) for n in range(3)]
    buffer.take([*lines("before"), LogLine("Traceback", Level.ERROR), *frames, *lines("after")])
    for number in (1, 2, 4):
        assert buffer.head_of(number) == 1
        assert buffer.block(number) == ["Traceback", "  frame 0", "  frame 1", "  frame 2"]
    assert buffer.errors() == 1
    assert buffer.find(0, -1, is_error) == 1


def test_warnings_and_errors_are_asked_about_once_and_only_when_complete() -> None:
    buffer = LogBuffer()
    buffer.take([LogLine("first", Level.ERROR), LogLine("rest", Level.ERROR, continues=True)])
    assert buffer.unexplained(9, settled=False) == [], "more of it may be coming"
    assert buffer.unexplained(9, settled=True) == [0]
    buffer.meanings[0] = None
    buffer.take(lines("x", "y", level=Level.WARN))
    assert buffer.unexplained(9, settled=True) == [2, 3]
    assert buffer.unexplained(1, settled=True) == [3]


def test_what_is_known_of_lines_that_are_gone_goes_too() -> None:
    buffer = LogBuffer(max_lines=2)
    buffer.take(lines("a", "b"))
    buffer.meanings[0] = LogMeaning(cause="c", remedy="r")
    buffer.take(lines("c"))
    assert not buffer.meanings


def test_a_note_of_our_own_is_shown_at_every_level() -> None:
    buffer = LogBuffer()
    buffer.narrow(Level.ERROR, "nothing has this")
    buffer.note("12 lines skipped")
    assert len(buffer) == 1
    assert buffer.errors() == 0


@given(
    st.lists(st.lists(LINES, max_size=8), max_size=12),
    st.sampled_from(Level),
    st.sampled_from(["", "a", "/a|b/", "/(/"]),
)
def test_narrowing_before_or_after_shows_the_same(
    batches: list[list[LogLine]], minimum: Level, needle: str
) -> None:
    early, late = LogBuffer(max_lines=20, max_chars=90), LogBuffer(max_lines=20, max_chars=90)
    early.narrow(minimum, needle)
    for batch in batches:
        early.take(batch)
        late.take(batch)
    late.narrow(minimum, needle)
    assert [early.line_at(row) for row in range(len(early))] == [
        late.line_at(row) for row in range(len(late))
    ]
    assert early.count <= 20
    assert sum(map(len, early.texts)) <= 90
    for row in range(len(early)):
        assert early.row_of(early.number_at(row)) == row


EVIL = ("/(a+)+$/", "/(a|aa)+$/", "/(x+x+)+y/", "/(?R)/")


@pytest.mark.parametrize("needle", EVIL)
def test_a_filter_that_takes_too_long_is_dropped_and_said_once(needle: str) -> None:
    hostile = "a" * 3000 + "x" * 3000 + "!"
    held, fed = LogBuffer(), LogBuffer()
    began = time.process_time()
    held.take(lines(*[hostile] * 200))
    held.narrow(Level.INFO, needle)
    fed.narrow(Level.INFO, needle)
    fed.take(lines(*[hostile] * 200))
    assert time.process_time() - began < 5, "200 such lines cost as little as one"
    for buffer in (held, fed):
        assert (buffer.filter, len(buffer)) == ("", 200)
        assert buffer.dropped_filter().startswith(f"{needle} A line of 6,001 characters took")
        assert buffer.dropped_filter() == ""


def test_a_level_stays_when_its_filter_is_dropped() -> None:
    buffer = LogBuffer()
    buffer.narrow(Level.ERROR, "/(a+)+$/")
    buffer.take([*lines("a" * 4000 + "!", level=Level.ERROR), *lines("b"), *lines("c")])
    buffer.take(lines("d", level=Level.ERROR))
    assert [buffer.line_at(row).text[0] for row in range(len(buffer))] == ["a", "d"]
