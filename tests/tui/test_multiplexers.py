"""Row 47: the console in a real tmux and a real screen: drawn whole, whatever its size did."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.terminal import Tmux
from tests.tui.served import CONSOLE, Served, served

pytestmark = [pytest.mark.pty, pytest.mark.slow]

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
needs_screen = pytest.mark.skipif(shutil.which("screen") is None, reason="screen is not installed")

SETTLED_S = 6
"""After so long the settling service repeats itself, for whoever looks."""

UNICODE = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "", "LC_CTYPE": ""}


@pytest.fixture(scope="module")
def settling() -> Iterator[Served]:
    with served("settling:8", **UNICODE) as made:
        yield made


def in_tmux(made: Served, *, columns: int = 120, rows: int = 40) -> Tmux:
    return Tmux(CONSOLE, made.environment, folder=made.home, columns=columns, rows=rows)


@needs_tmux
def test_a_storm_of_sizes_leaves_the_picture_of_a_fresh_console(settling: Served) -> None:
    with in_tmux(settling) as stormy, in_tmux(settling) as fresh:
        stormy.wait_for("SERVING")
        begun_s, changes = time.monotonic(), 0
        while (spent_s := time.monotonic() - begun_s) < 5:
            stormy.resize(*((20, 5) if changes % 2 else (120, 40)))
            changes += 1
            time.sleep(max(0.0, changes * 0.02 - spent_s))
        assert changes > 100
        stormy.resize(120, 40)
        stormy.wait_for("SERVING")
        fresh.wait_for("SERVING")
        time.sleep(SETTLED_S)
        assert stormy.capture() == fresh.capture()
        stormy.press("2")
        stormy.wait_for("Identity")


@needs_tmux
@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (10, 3), (39, 24), (120, 9)])
def test_a_tiny_terminal_says_so_and_recovers(settling: Served, columns: int, rows: int) -> None:
    with in_tmux(settling) as terminal:
        terminal.wait_for("SERVING")
        terminal.press("X")
        terminal.wait_for("Stop the engine?")
        terminal.resize(columns, rows)
        terminal.wait_for(lambda screen: "too" in screen and "small" in screen)
        terminal.resize(120, 40)
        terminal.wait_for(lambda screen: "too small" not in screen and "Stop the" in screen)
        terminal.press("Escape")
        terminal.wait_for(lambda screen: "SERVING" in screen and "Stop the" not in screen)


@needs_tmux
def test_a_console_that_opens_too_small_waits_for_room(settling: Served) -> None:
    with in_tmux(settling, columns=20, rows=5) as terminal:
        terminal.wait_for("too small")
        terminal.resize(80, 24)
        terminal.wait_for("SERVING")
        terminal.resize(20, 5)
        terminal.wait_for("too small")
        terminal.press("q")
        terminal.wait_for(lambda screen: "too small" not in screen)


@needs_tmux
def test_a_copy_in_tmux_is_in_its_buffer_and_says_so(settling: Served) -> None:
    with in_tmux(settling) as terminal:
        terminal.wait_for("SERVING")
        terminal.press("e")
        terminal.wait_for("escape close")
        terminal.press("c")
        said = terminal.wait_for("tmux's buffer")
        assert "Copied" not in said
        assert "ANTHROPIC_BASE_URL" in terminal._ask("show-buffer")


@needs_screen
@pytest.mark.parametrize("lang", ["C.UTF-8", "C"])
def test_screen_shows_the_console_and_gets_the_terminal_back(lang: str) -> None:
    surroundings = {**UNICODE, "LANG": lang, "COLORTERM": "truecolor"}
    with served("still", **surroundings) as made, in_screen(made) as terminal:
        terminal.read_until(b"SERVING")
        assert "SERVING" in terminal.hardcopy()
        if lang == "C":
            assert "=1 Overview=" in terminal.hardcopy()
        terminal.type(b"q")
        terminal.read_until(b"Leave?")
        terminal.type(b"y")
        terminal.read_until(b"left with 0")
        # Nothing of a question or an answer is left for the shell to take as typed.
        assert terminal.hardcopy().rstrip().endswith("left with 0")


class Screen:
    """A GNU screen of our own with one window."""

    def __init__(self, made: Served, pid: int, fd: int, environment: dict[str, str]) -> None:
        self._made = made
        self._pid = pid
        self._fd = fd
        self._environment = environment
        self._output = b""

    def read_until(self, text: bytes, within_s: float = 20) -> None:
        deadline_s = time.monotonic() + within_s
        mark = len(self._output)
        while text not in self._output[mark:]:
            assert time.monotonic() < deadline_s, self._output[-2000:]
            if select.select([self._fd], [], [], 0.2)[0]:
                self._output += os.read(self._fd, 65536)

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def hardcopy(self) -> str:
        """What the window shows; screen writes the low byte of each character."""
        path = self._made.home / "hardcopy"
        path.unlink(missing_ok=True)
        self.control("hardcopy", str(path))
        deadline_s = time.monotonic() + 5
        while not path.exists() or not path.stat().st_size:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        return path.read_text(errors="replace")

    def control(self, *words: str) -> None:
        subprocess.run(
            ["screen", "-S", "test", "-X", *words], env=self._environment, check=False, timeout=10
        )


@contextmanager
def in_screen(made: Served) -> Iterator[Screen]:
    folder: Path = made.home / "screens"
    folder.mkdir(mode=0o700)
    settings = made.home / "screenrc"
    settings.write_text("startup_message off\nterm screen-256color\naltscreen on\n")
    environment = {**made.environment, "SCREENDIR": str(folder)}
    line = f"{' '.join(CONSOLE)}; echo left with $?; sleep 30"
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        words = ["screen", "-c", str(settings), "-S", "test", "sh", "-c", line]
        os.execvpe("screen", words, environment)
    terminal = Screen(made, pid, fd, environment)
    try:
        yield terminal
    finally:
        terminal.control("quit")
        os.close(fd)
        os.waitpid(pid, 0)
