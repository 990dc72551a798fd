"""Runs the console on a real pseudo-terminal, as an operator would, against the socket service."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from a40console.paths import locate
from tests.bench.on_terminal import ANSWER, QUESTION

CONSOLE = (
    "import sys; from a40console.paths import locate; from a40console.config import load_settings;"
    "from a40console.tui.app import run_console; paths = locate();"
    "sys.exit(run_console(paths, load_settings(paths.config_file), mouse={mouse}))"
)


class TerminalSession:
    """A console on a pty of its own, with the service it looks at."""

    def __init__(
        self,
        scenario: str = "still",
        *,
        columns: int = 120,
        rows: int = 40,
        mouse: bool = True,
        ignore_hangup: bool = False,
        environment: dict[str, str] | None = None,
        program: str = CONSOLE,
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="a40t", dir="/tmp"))
        self._environment = {
            **os.environ,
            "A40CONSOLE_HOME": str(self.home),
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            **(environment or {}),
        }
        self.paths = locate(self._environment)
        self._service = self._start_service(scenario)
        self.started_s = time.perf_counter()
        code = program.format(mouse=mouse)
        self.pid, self.fd = self._start_console(code, columns, rows, ignore_hangup)
        self.process = psutil.Process(self.pid)
        self.output = bytearray()
        self.status: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.status is None and not self._reap():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.fd >= 0:
            os.close(self.fd)
        self._service.kill()
        self._service.wait()
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.rmtree(self.paths.runtime, ignore_errors=True)

    def _start_service(self, scenario: str) -> subprocess.Popen[bytes]:
        socket = self.paths.control_socket
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.tui.socket_service", str(socket), scenario],
            cwd=Path(__file__).parents[2],
            env=self._environment,
        )
        deadline = time.monotonic() + 20
        while not socket.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return process

    def _start_console(
        self, code: str, columns: int, rows: int, ignore_hangup: bool
    ) -> tuple[int, int]:
        pid, fd = pty.fork()
        if pid == 0:
            if ignore_hangup:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(sys.executable, [sys.executable, "-c", code], self._environment)
        return pid, fd

    def read(self, seconds: float, until: bytes | None = None) -> float:
        """Read output for so long, or until the bytes appear; answers the seconds it took."""
        started = time.perf_counter()
        mark = len(self.output)
        while (left := seconds - (time.perf_counter() - started)) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                break
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                break
            if not data:
                break
            asked = (bytes(self.output[1 - len(QUESTION) :]) + data).count(QUESTION)
            os.write(self.fd, ANSWER * asked)
            self.output += data
            if until is not None and until in self.output[mark:]:
                break
        return time.perf_counter() - started

    def press(self, key: str) -> None:
        """Type a key."""
        os.write(self.fd, key.encode())

    def hang_up(self) -> None:
        """Close the terminal's other end."""
        os.close(self.fd)
        self.fd = -1

    def ended(self, within_s: float, *, reading: bool = True) -> int | None:
        """The exit code, 128 + n after a signal; None while it still runs after so long."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if self._reap():
                break
            if reading and self.fd >= 0:
                self.read(0.05)
            else:
                time.sleep(0.05)
        return self.status

    def _reap(self) -> bool:
        done, status = os.waitpid(self.pid, os.WNOHANG)
        if not done:
            return False
        self.status = os.waitstatus_to_exitcode(status)
        if self.status < 0:
            self.status = 128 - self.status
        return True
