"""What a terminal can show is decided by what it tells of itself, and by nothing it cannot keep.

Row 49 of the faults.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from a40console.tui import terminfo
from a40console.tui.abilities import Depth, Multiplexer, cannot_draw, examine

UTF8 = {"LANG": "en_US.UTF-8"}


def depth_of(told_by_tmux: str = "", **environment: str) -> Depth:
    return examine(environment, ask_tmux=lambda: told_by_tmux).depth


@pytest.mark.parametrize(
    ("environment", "depth"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, "truecolor"),
        ({"TERM": "xterm-256color"}, "256"),
        ({"TERM": "xterm-kitty"}, "truecolor"),
        ({"TERM": "alacritty"}, "truecolor"),
        ({"TERM": "xterm"}, "16"),
        ({"TERM": "linux"}, "16"),
        ({"TERM": "screen"}, "16"),
        ({"TERM": "vt100"}, "mono"),
        ({"TERM": "no-such-terminal"}, "16"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, "mono"),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, "256"),
        ({"TERM": "screen-256color", "STY": "1.pts", "COLORTERM": "truecolor"}, "256"),
        ({"TERM": "screen", "STY": "1.pts", "COLORTERM": "truecolor"}, "16"),
    ],
)
def test_the_colours_are_those_that_arrive(environment: dict[str, str], depth: Depth) -> None:
    assert depth_of(**environment) == depth


@pytest.mark.parametrize(
    ("told", "environment", "depth"),
    [
        ("1 256,RGB,title", {}, "truecolor"),
        ("1 256,title", {}, "256"),
        ("", {}, "256"),
        ("1 256", {"COLORTERM": "truecolor"}, "truecolor"),
        ("1 256,RGB", {"NO_COLOR": "1"}, "mono"),
    ],
)
def test_tmux_is_asked_what_it_passes_on(
    told: str, environment: dict[str, str], depth: Depth
) -> None:
    assert depth_of(told, TERM="screen", TMUX="/tmp/t,1,0", **environment) == depth


@pytest.mark.parametrize("named", ["truecolor", "256", "16", "mono"])
def test_a_named_depth_is_taken_as_it_is(named: str) -> None:
    assert examine({"TERM": "vt100", "NO_COLOR": "1"}, color=named).depth == named


@pytest.mark.parametrize(
    ("environment", "ascii_only"),
    [
        (UTF8, False),
        ({"LANG": "de_DE.utf8"}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "POSIX"}, True),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({}, False),
        ({**UTF8, "LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
        ({**UTF8, "TERM": "linux"}, True),
        ({**UTF8, "TERM": "vt220"}, True),
    ],
)
def test_characters_beyond_ascii_only_where_they_arrive(
    environment: dict[str, str], ascii_only: bool
) -> None:
    assert examine({"TERM": "xterm", **environment}).ascii is ascii_only
    assert examine(environment, glyphs="ascii").ascii
    assert not examine(environment, glyphs="unicode").ascii


@pytest.mark.parametrize(("told", "ascii_only"), [("0 256", True), ("1 256", False)])
def test_tmux_knows_its_clients_characters_better_than_the_locale(
    told: str, ascii_only: bool
) -> None:
    environment = {"TMUX": "/tmp/t,1,0", "TERM": "screen", "LANG": "C"}
    assert examine(environment, ask_tmux=lambda: told).ascii is ascii_only


@pytest.mark.parametrize(
    ("environment", "inside"),
    [({"TMUX": "x"}, "tmux"), ({"STY": "x"}, "screen"), ({"TMUX": "x", "STY": "y"}, "tmux")],
)
def test_the_multiplexer_is_known(environment: dict[str, str], inside: Multiplexer) -> None:
    assert examine(environment, ask_tmux=lambda: "").multiplexer == inside


@pytest.mark.parametrize(
    ("environment", "why"),
    [({}, "not set"), ({"TERM": ""}, "not set"), ({"TERM": "dumb"}, "'dumb'")],
)
def test_no_terminal_is_refused_with_its_name(environment: dict[str, str], why: str) -> None:
    assert why in cannot_draw(environment)
    assert not cannot_draw({"TERM": "xterm"})


def compiled(colours: int, *, wide: bool) -> bytes:
    """A terminal description as tic(1) writes it, with this many colours."""
    names, flags = b"t|test\0", b"\1"
    numbers = [-1] * 13 + [colours]
    magic = 0o1036 if wide else 0o432
    head = struct.pack("<6h", magic, len(names), len(flags), len(numbers), 0, 0)
    body = struct.pack(f"<{len(numbers)}{'i' if wide else 'h'}", *numbers)
    return head + names + flags + body


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize(("written", "read"), [(256, 256), (8, 8), (-1, 0)])
def test_the_terminal_database_is_read_in_both_formats(
    tmp_path: Path, wide: bool, written: int, read: int
) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "test").write_bytes(compiled(written, wide=wide))
    assert terminfo.colours("test", [tmp_path]) == read


@pytest.mark.parametrize("name", ["", "absent", "../t/test", "cut"])
def test_a_name_that_is_not_listed_tells_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "cut").write_bytes(b"\x1a\1")
    assert terminfo.colours(name, [tmp_path]) is None
