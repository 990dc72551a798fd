"""Every line once, whatever the keeper does to the file; and nothing that draws by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console.engines.keeper import OUTPUT, OUTPUT_BEFORE, cap_output
from a40console.engines.logs import LogReader, before, last_lines, read_chunk, strip_escapes


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_the_file_names_are_the_keepers(tmp_path: Path) -> None:
    assert before(tmp_path / OUTPUT).name == OUTPUT_BEFORE


def test_lines_come_when_they_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    reader = LogReader(path)
    assert reader.read_lines() == []
    append(path, b"one\ntw")
    assert reader.read_lines() == ["one"]
    append(path, b"o\nthree")
    assert reader.read_lines() == ["two"]
    assert reader.read_lines() == []


def test_a_progress_bar_is_a_line_an_update(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    append(path, b"shards:   0% | 0/2\rshards:  50% | 1/2\rshards: 100% | 2/2\r\nnext\n")
    lines = LogReader(path).read_lines()
    assert lines == ["shards:   0% | 0/2", "shards:  50% | 1/2", "shards: 100% | 2/2", "next"]


def test_a_line_end_cut_in_two_is_one(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    reader = LogReader(path)
    append(path, b"a\r")
    assert reader.read_lines() == []
    append(path, b"\nb\n")
    assert reader.read_lines() == ["a", "b"]


def test_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    append(path, b"ok \xff\xfe\n")
    assert LogReader(path).read_lines() == ["ok \ufffd\ufffd"]


@pytest.mark.parametrize("read_every", [1, 3, 7])
def test_no_line_is_lost_or_doubled_across_the_keepers_rotations(
    tmp_path: Path, read_every: int
) -> None:
    path = tmp_path / OUTPUT
    path.touch()
    reader, written, got = LogReader(path), [], []
    for number in range(400):
        written.append(f"line {number} {'x' * (number % 50)}")
        append(path, written[-1].encode() + b"\n")
        if number % 40 == 39:
            cap_output(tmp_path, 1500)
        if number % read_every == 0:
            got += reader.read_lines()
    got += reader.read_lines()
    assert got == written


def test_after_a_gap_reading_goes_on(tmp_path: Path) -> None:
    path = tmp_path / OUTPUT
    append(path, b"first\n")
    reader = LogReader(path)
    assert reader.read_lines() == ["first"]
    for start in (0, 1000):
        append(path, b"".join(b"line %d\n" % number for number in range(start, start + 1000)))
        cap_output(tmp_path, 4000)
    append(path, b"now\n")
    lines = reader.read_lines()
    assert lines[-2:] == ["line 1999", "now"]


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", "é".encode(), b"\xff"]), max_size=30))
def test_pieces_do_not_change_the_lines(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    whole = folder / "whole.log"
    whole.write_bytes(b"".join(parts) + b"\n")
    pieces = folder / "pieces.log"
    reader, lines = LogReader(pieces), []
    for part in [*parts, b"\n"]:
        append(pieces, part)
        lines += reader.read_lines()
    assert lines == LogReader(whole).read_lines()


def test_a_chunk_continues_where_the_last_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    text = "".join(f"zeile {number} é\n" for number in range(100))
    path.write_text(text, encoding="utf-8")
    offset, parts = 0, []
    while (chunk := read_chunk(path, offset, limit_bytes=64)).text:
        assert chunk.text.endswith("\n")
        parts.append(chunk.text)
        offset = chunk.next_offset
    assert "".join(parts) == text


def test_a_character_cut_in_two_waits_for_its_rest(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    append(path, b"caf\xc3")
    first = read_chunk(path, 0)
    append(path, b"\xa9\n")
    second = read_chunk(path, first.next_offset)
    assert (first.text, second.text) == ("caf", "é\n")


def test_a_chunk_from_the_end_begins_with_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    append(path, b"first line\nsecond line\nthird\n")
    assert read_chunk(path, -15).text == "third\n"
    assert read_chunk(path, -1000).text.startswith("first")


def test_after_a_rotation_a_chunk_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / OUTPUT
    append(path, b"old\n" * 1000)
    offset = read_chunk(path, 0).next_offset
    cap_output(tmp_path, 1000)
    append(path, b"new\n")
    chunk = read_chunk(path, offset)
    assert chunk.text == "new\n"
    assert chunk.next_offset < offset


def test_no_file_is_an_empty_chunk(tmp_path: Path) -> None:
    assert read_chunk(tmp_path / "none.log", 5).text == ""


def test_the_last_lines_reach_back_before_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / OUTPUT
    append(path, b"".join(b"line %d\n" % number for number in range(100)))
    cap_output(tmp_path, 200)
    append(path, b"\x1b[31mafter\x1b[0m\n")
    assert last_lines(path, 3) == ["line 98", "line 99", "after"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[0;36m(RustFrontend pid=1)\x1b[0m ok", "(RustFrontend pid=1) ok"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]52;c;c2VjcmV0\x1b\\text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x9b31mb\x00c\x7f", "a31mbc"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\x1b[2J\x1b[?25lblank", "blank"),
        ("\x1bP1$rq\x1b\\x", "x"),
    ],
)
def test_escapes_go(text: str, plain: str) -> None:
    assert strip_escapes(text) == plain


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    left = strip_escapes(text)
    codes = {ord(sign) for sign in left if sign not in "\n\t"}
    assert not codes & {*range(32), *range(127, 160)}


def test_where_more_waits_than_fits_the_newest_is_taken_and_the_rest_counted(
    tmp_path: Path,
) -> None:
    path = tmp_path / OUTPUT
    append(path, b"first\n")
    offset = read_chunk(path, 0).next_offset
    append(path, b"".join(b"line %03d\n" % number for number in range(200)))
    chunk = read_chunk(path, offset, limit_bytes=100, newest=True)
    shown = chunk.text.splitlines()
    assert shown[-1] == "line 199"
    assert chunk.skipped_lines == 200 - len(shown)
    assert shown[0] == f"line {chunk.skipped_lines:03d}", "a whole line, and none lost uncounted"
    assert chunk.size_bytes == chunk.next_offset == path.stat().st_size
    assert read_chunk(path, chunk.next_offset, limit_bytes=100, newest=True).skipped_lines == 0


@given(st.integers(0, 60), st.integers(12, 200))
def test_shown_and_skipped_are_all_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, written: int, limit_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("newest") / "output.log"
    path.write_bytes(b"".join(b"line %02d\n" % number for number in range(written)))
    chunk = read_chunk(path, 0, limit_bytes=limit_bytes, newest=True)
    assert chunk.skipped_lines + chunk.text.count("\n") == written
