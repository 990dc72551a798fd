"""Commands on a pseudo-terminal that can be taken away, as when an SSH link drops."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_MODE_QUERY = re.compile(rb"\x1b\[\?(\d+)\$p")


class Terminal:
    """A command as the leader of a session whose terminal is ours to close."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._text = b""
        self.process = subprocess.Popen(
            command,
            env={**environment, "TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def read(self, seconds: float) -> str:
        """All that was written so far, without escapes, having waited for more."""
        deadline_s = time.monotonic() + seconds
        while (left_s := deadline_s - time.monotonic()) > 0:
            ready, _, _ = select.select([self._master], [], [], left_s)
            if not ready:
                break
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the command ended
                break
            self._text += data
            for mode in _MODE_QUERY.findall(data):
                os.write(self._master, b"\x1b[?%s;0$y" % mode)
        return _ESCAPES.sub(b"", self._text).decode(errors="replace")

    def until(self, text: str, timeout_s: float = 30) -> str:
        """What was written once a text is among it."""
        deadline_s = time.monotonic() + timeout_s
        while text not in (seen := self.read(0.2)):
            assert time.monotonic() < deadline_s, (text, seen[-2000:])
        return seen

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def hang_up(self) -> None:
        """Take the terminal away: the kernel sends SIGHUP to what runs on it."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def close(self) -> None:
        self.hang_up()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)


@contextmanager
def terminal(command: Sequence[str], environment: dict[str, str]) -> Iterator[Terminal]:
    made = Terminal(command, environment)
    try:
        yield made
    finally:
        made.close()
