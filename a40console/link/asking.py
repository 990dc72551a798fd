"""Runs ssh where it may ask the operator, in a process group of its own.

What it starts, a jump host's ssh among them, stays behind with the connection. In the console's own
group a Ctrl-C, or the end of the terminal, would end that and so the link.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_TERMINAL = "/dev/tty"


def run_asking(words: Sequence[str]) -> int:
    """Run it with the terminal, where there is one; its exit code, negative for a signal.

    Its output goes nowhere: whoever reads ours must not wait for the end of the connection.

    Raises:
        OSError: If it cannot be called.
    """
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,  # it asks at the terminal itself
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    with _lent_to(process.pid) as lent:
        return _wait(process) if lent else process.wait()


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Its exit code; a Ctrl-Z would leave a terminal that takes no word, so it goes on at once."""
    while True:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode
        os.killpg(process.pid, signal.SIGCONT)


@contextmanager
def _lent_to(group: int) -> Iterator[bool]:
    """The terminal is the group's inside the block; tells whether it is."""
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        ours = os.getpgrp()
        lent = os.tcgetpgrp(terminal) == ours and _hand(terminal, group)
        if lent:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGCONT)  # it may have asked too early, and been stopped
        try:
            yield lent
        finally:
            if lent:
                _hand(terminal, ours)
    finally:
        os.close(terminal)


def _hand(terminal: int, group: int) -> bool:
    """Make a group the terminal's own; whether it is. From the background that takes a mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        os.tcsetpgrp(terminal, group)
    except OSError:  # it has ended already
        return False
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return True
