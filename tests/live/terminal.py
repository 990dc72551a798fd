"""A real terminal for a test: a private tmux server with one pane, typed into and read."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

Condition = str | Callable[[str], bool]
"""A text that the screen must hold, or a question about the whole screen."""


class Tmux:
    """One tmux server with one pane of a given size; it ends with the test, and only it."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        folder: Path,
        columns: int = 120,
        rows: int = 40,
    ) -> None:
        self.columns, self.rows = columns, rows
        self._name = secrets.token_hex(4)
        # tmux puts its socket below this folder.
        self._environment = {**environment, "TMUX_TMPDIR": str(folder)}
        for inherited in ("TMUX", "TMUX_PANE"):
            self._environment.pop(inherited, None)
        self._ask("new-session", "-d", "-x", str(columns), "-y", str(rows), *words)
        self.server_pid, self.pane_pid = map(int, self._show("#{pid} #{pane_pid}").split())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def press(self, *keys: str) -> None:
        """Press keys: characters as they are, others by tmux's names (Enter, Escape, C-p)."""
        for key in keys:
            self._ask("send-keys", *(["-l"] if len(key) == 1 else []), key)

    def type(self, text: str) -> None:
        """Type a text as it is."""
        self._ask("send-keys", "-l", text)

    def capture(self) -> str:
        """What the screen shows; a line that the terminal had to wrap is one line."""
        return self._ask("capture-pane", "-p", "-J")

    def wait_for(self, condition: Condition, timeout_s: float = 20) -> str:
        """The first screen that fulfils the condition; fails with the last one seen."""
        deadline_s = time.monotonic() + timeout_s
        while not _holds(condition, screen := self.capture()):
            assert time.monotonic() < deadline_s, f"{condition!r} did not appear on\n{screen}"
            time.sleep(0.1)
        return screen

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self.columns, self.rows = columns, rows
        self._ask("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def in_alternate_screen(self) -> bool:
        """Whether a full-screen program has the terminal."""
        return self._show("#{alternate_on}") == "1"

    @property
    def takes_the_mouse(self) -> bool:
        """Whether a program has asked for the mouse."""
        return self._show("#{mouse_any_flag}") == "1"

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Inside the block the terminal reads nothing of what is written to it."""
        os.kill(self.server_pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.server_pid, signal.SIGCONT)

    def close(self) -> None:
        """End the server: the terminal hangs up on whatever runs in it."""
        self._run("kill-server")

    def _show(self, what: str) -> str:
        return self._ask("display-message", "-p", what).strip()

    def _ask(self, *words: str) -> str:
        done = self._run(*words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["tmux", "-u", "-L", self._name, "-f", os.devnull, *words],
            env=self._environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=20,
        )


def _holds(condition: Condition, screen: str) -> bool:
    return condition in screen if isinstance(condition, str) else condition(screen)
