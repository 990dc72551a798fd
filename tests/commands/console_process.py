"""Running the console as a process, and waiting for the service's door."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from a40console.paths import Paths

HERE = Path(__file__).parent
CONSOLE = (sys.executable, "-P", "-m", "a40console")
CONSOLE_WITH_STUB = (sys.executable, str(HERE / "console_with_stub.py"))
STUB = (sys.executable, str(HERE / "service_stub.py"), "serve")


Service = Callable[..., subprocess.Popen[bytes]]
"""Starts the stub with the given script."""


class Run(Protocol):
    """Runs the console."""

    def __call__(
        self,
        *arguments: str | bytes,
        command: tuple[str, ...] = CONSOLE,
        stdin: bytes = b"",
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]: ...


def wait_for_door(paths: Paths) -> None:
    """Wait until something accepts connections on the control socket."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(paths.control_socket))
            return
        time.sleep(0.05)
    raise AssertionError("the stub did not start")


def with_stub(environment: dict[str, str], **script: Any) -> dict[str, str]:
    """The environment in which the console starts the stub with this script."""
    return {**environment, "STUB_SCRIPT": json.dumps(script)}


def on_terminal(
    environment: dict[str, str],
    *arguments: str,
    command: tuple[str, ...] = CONSOLE,
    columns: int = 80,
    term: str = "xterm-256color",
    stdin: str = "",
    interrupt_at: str = "",
) -> tuple[int, str]:
    """What a command writes to a terminal of 24 lines, on which this was typed.

    Args:
        environment: The command's.
        arguments: Its words.
        command: What is run.
        columns: How wide the terminal is.
        term: Its kind.
        stdin: What is typed.
        interrupt_at: Ctrl-C is pressed once this is on it.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*command, *arguments],
        env={**environment, "TERM": term},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, stdin.encode())
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not piece:
            break
        written += piece
        if interrupt_at and interrupt_at in written.decode(errors="replace"):
            interrupt_at = ""
            time.sleep(0.5)  # nobody is quicker, and by then the answer is read for
            process.send_signal(signal.SIGINT)
    os.close(ours)
    return process.wait(timeout=20), written.decode()
