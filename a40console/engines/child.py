"""Programs that work for us: followed line by line, and gone when we are, however we end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LINE_LIMIT_BYTES = 1024 * 1024
KEPT_ERROR_LINES = 40

# The kernel kills the child as soon as its parent is gone: a download that nobody waits for any
# more would otherwise go on and write into what the next call begins anew.
_TIED = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""

OnLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a program ended."""

    code: int
    output: str
    """What it wrote to stdout, where nobody followed that."""

    errors: str
    """The last lines of stderr."""

    @property
    def last_error(self) -> str:
        """The last line that says something."""
        return (self.errors.strip().splitlines() or ["it said nothing"])[-1].strip()


async def run_child(
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    on_output: OnLine | None = None,
    on_error: OnLine | None = None,
    on_start: Callable[[int], None] | None = None,
    cwd: Path | None = None,
) -> ChildEnd:
    """Run a program in a session of its own to its end; cancelled, it and all below it are ended.

    Args:
        argv: The program and its arguments.
        environment: Its whole environment.
        on_output: Gets each line of stdout, which is then not kept.
        on_error: Gets each line of stderr.
        on_start: Gets the program's pid.
        cwd: The folder it runs in; ours where none is given.

    Raises:
        OSError: If it cannot be run.
    """
    tied = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), *argv]
    process = await asyncio.create_subprocess_exec(
        *tied,
        env=dict(environment),
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=LINE_LIMIT_BYTES,
    )
    if on_start is not None:
        on_start(process.pid)
    output: list[str] = []
    errors: list[str] = []
    try:
        await asyncio.gather(
            _follow(process.stdout, on_output or output.append),
            _follow(process.stderr, _both(errors, on_error)),
        )
        await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return ChildEnd(process.returncode or 0, "\n".join(output), "\n".join(errors))


def _both(kept: list[str], told: OnLine | None) -> OnLine:
    def take(line: str) -> None:
        kept.append(line)
        del kept[:-KEPT_ERROR_LINES]
        if told is not None:
            told(line)

    return take


async def _follow(stream: asyncio.StreamReader | None, take: OnLine) -> None:
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:  # longer than any line that means something
            continue
        if not line:
            return
        take(line.decode(errors="replace").rstrip("\r\n"))
