"""A program on a pseudo-terminal that answers and whose output is read, counted and dropped."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

ROWS, COLUMNS = 40, 120
QUESTION, ANSWER = b"\x1b[6n", b"\x1b[1;1R"
"""Where is the cursor: terminals answer once they have taken in all before it."""


@dataclass(slots=True)
class OnTerminal:
    """The program, and what it has drawn."""

    process: psutil.Process
    written_bytes: int = 0


@contextmanager
def on_terminal(
    command: Sequence[str], environment: Mapping[str, str] = os.environ
) -> Iterator[OnTerminal]:
    """Run it on a terminal of 120×40 in a session of its own, and end it afterwards."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    told = {**environment, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    program = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=told, start_new_session=True
    )
    os.close(theirs)
    shown = OnTerminal(psutil.Process(program.pid))

    def drain() -> None:
        cut = b""
        with suppress(OSError):
            while piece := os.read(ours, 65536):
                shown.written_bytes += len(piece)
                asked = (cut + piece).count(QUESTION)
                cut = (cut + piece)[1 - len(QUESTION) :]
                os.write(ours, ANSWER * asked)

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield shown
    finally:
        program.terminate()
        program.wait(10)
        reader.join(10)
        os.close(ours)
