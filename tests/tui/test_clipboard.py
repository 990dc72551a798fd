"""A copy goes where there is a way, into a file where there is none, and says which it was.

Row 48 of the faults.
"""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from a40console.tui.abilities import Abilities, Multiplexer
from a40console.tui.clipboard import LIMIT_BYTES, Clipboard

LONG = "x" * 200_000
ENCODED = base64.b64encode(b"secret").decode()


class Tmux:
    """What tmux is told; `passes` is its option allow-passthrough."""

    def __init__(self, passes: str = "off", *, there: bool = True) -> None:
        self._passes = passes
        self._there = there
        self.loaded = b""

    def __call__(self, words: list[str], content: bytes) -> str | None:
        if not self._there:
            return None
        if words[0] == "show":
            return f"{self._passes}\n"
        assert words == ["load-buffer", "-w", "-"]
        self.loaded = content
        return ""


class Written:
    """What the terminal was sent."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, text: str) -> bool:
        self.text += text
        return True


def clipboard(
    written: Written,
    folder: Path,
    multiplexer: Multiplexer = "",
    *,
    term: str = "xterm-256color",
    tmux: Tmux | None = None,
) -> Clipboard:
    return Clipboard(
        written, Abilities(multiplexer=multiplexer), term=term, folder=folder, tell=tmux or Tmux()
    )


def saved(folder: Path, said: str) -> str:
    """The text of the one file that was saved, whose path was told."""
    [path] = folder.iterdir()
    assert str(path) in said
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_text()


def test_a_plain_terminal_is_sent_osc_52(tmp_path: Path) -> None:
    written = Written()
    said = clipboard(written, tmp_path).copy("secret")
    assert written.text == f"\x1b]52;c;{ENCODED}\a"
    assert "OSC 52" in said
    assert not list(tmp_path.iterdir())


def test_screen_passes_it_on_in_pieces(tmp_path: Path) -> None:
    written = Written()
    said = clipboard(written, tmp_path, "screen").copy("x" * 1000)
    pieces = written.text.split("\x1b\\")
    assert all(piece.startswith("\x1bP") and len(piece) < 256 for piece in pieces[:-1])
    joined = "".join(piece.removeprefix("\x1bP") for piece in pieces)
    assert base64.b64decode(joined.split(";")[2].rstrip("\a")) == b"x" * 1000
    assert "screen" in said


def test_tmux_takes_it_into_its_buffer(tmp_path: Path) -> None:
    written, tmux = Written(), Tmux()
    said = clipboard(written, tmp_path, "tmux", tmux=tmux).copy(LONG)
    assert tmux.loaded == LONG.encode()
    assert not written.text
    assert "tmux's buffer" in said


def test_a_tmux_that_passes_on_is_sent_it_wrapped_as_well(tmp_path: Path) -> None:
    written, tmux = Written(), Tmux("on")
    said = clipboard(written, tmp_path, "tmux", tmux=tmux).copy("secret")
    assert written.text == f"\x1bPtmux;\x1b\x1b]52;c;{ENCODED}\a\x1b\\"
    assert "OSC 52" in said
    assert "buffer" in said


def test_a_tmux_that_cannot_be_reached_is_sent_it_wrapped(tmp_path: Path) -> None:
    written = Written()
    said = clipboard(written, tmp_path, "tmux", tmux=Tmux(there=False)).copy("secret")
    assert written.text.startswith("\x1bPtmux;")
    assert "allow-passthrough" in said


@pytest.mark.parametrize("multiplexer", ["", "screen"])
def test_what_is_too_long_is_saved_and_the_file_is_named(
    tmp_path: Path, multiplexer: Multiplexer
) -> None:
    written = Written()
    said = clipboard(written, tmp_path, multiplexer).copy(LONG)
    assert not written.text
    assert saved(tmp_path, said) == LONG
    assert "too much" in said


def test_too_long_for_a_tmux_that_cannot_be_reached(tmp_path: Path) -> None:
    written = Written()
    said = clipboard(written, tmp_path, "tmux", tmux=Tmux(there=False)).copy(LONG)
    assert saved(tmp_path, said) == LONG


def test_the_limit_is_of_what_is_sent(tmp_path: Path) -> None:
    written = Written()
    clipboard(written, tmp_path).copy("x" * (LIMIT_BYTES // 4 * 3))
    assert written.text
    assert not list(tmp_path.iterdir())


def test_a_console_without_a_clipboard_gets_a_file(tmp_path: Path) -> None:
    said = clipboard(Written(), tmp_path, term="linux").copy("secret")
    assert saved(tmp_path, said) == "secret"
    assert "no clipboard" in said


def test_what_cannot_even_be_saved_is_not_called_copied() -> None:
    said = clipboard(Written(), Path("/proc/none"), term="linux").copy("secret")
    assert said.startswith("Not copied")
