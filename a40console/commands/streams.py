"""The standard streams as commands need them: all open, and output that fails says that it did."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from a40console.errors import RefusedError

CLOSED = "it is closed"
FULL = "it is full, and set not to wait for its reader"


class OutputError(OSError):
    """Standard output cannot be written; no file of ours is meant."""


class _Output(io.FileIO):
    """Standard output, whose errors are told from those of every other file."""

    def __init__(self, descriptor: int, trouble: str = "") -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self.trouble = trouble
        """Why nothing can be written; empty while something can."""

        self.dropped = False
        """Whether what is left is let go: its failure has been told."""

    def write(self, data: Any, /) -> int:
        """Write bytes.

        Raises:
            OutputError: If they cannot be written, or not without waiting where waiting is off.
            BrokenPipeError: If the reader went away.
        """
        if self.dropped:
            return len(data)
        if self.trouble:
            raise OutputError(self.trouble)
        try:
            taken = super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.strerror) from error
        if taken is None:  # as FileIO tells it; the buffer around us would make a bug of it
            raise OutputError(FULL)
        return taken


def prepare() -> None:
    """Give closed streams a descriptor, and text that a stream cannot encode a stand-in."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        # Its number must not become another file's: processes that we start inherit it.
        sys.stdout = _text(_Output(os.open(os.devnull, os.O_WRONLY), CLOSED), "utf-8")
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _text(_Output(sys.stdout.fileno()), sys.stdout.encoding)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="replace")


def _text(raw: _Output, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, errors="replace", line_buffering=raw.isatty()
    )


def refusal(error: OutputError) -> RefusedError:
    """What the operator reads where standard output cannot be written."""
    return RefusedError(
        f"Standard output cannot be written: {error.args[-1]}",
        remedy="Send it elsewhere, or free space where it goes. What was done so far stands.",
    )


def drop_unwritten_output() -> None:
    """Keep the interpreter from writing once more, and complaining, as it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
        if isinstance(raw, _Output):
            raw.dropped = True
        with suppress(OSError):
            sys.stdout.flush()
