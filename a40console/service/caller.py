"""Who calls the control API, in words for the events: a name among one's own, not a proof."""

from __future__ import annotations

import getpass
import os
import socket
import sys
from contextlib import suppress

WHO_HEADER = "x-a40console-caller"
LONGEST = 160
COMMAND_LINE, CONSOLE = "command line", "console"


def own_name(role: str = COMMAND_LINE) -> str:
    """This process for the service: `alice@pod on pts/3 over ssh from 10.0.0.7, console, pid 4711`.

    Args:
        role: What asks: the console, or a command.
    """
    name = "somebody"
    with suppress(KeyError, OSError):
        name = getpass.getuser()
    where = "without a terminal"
    with suppress(OSError, ValueError, AttributeError):
        where = f"on {os.ttyname(sys.stdin.fileno()).removeprefix('/dev/')}"
    if came := os.environ.get("SSH_CONNECTION", "").partition(" ")[0]:
        where += f" over ssh from {came[:45]}"
    return shown_name(f"{name}@{socket.gethostname()} {where}, {role}, pid {os.getpid()}")


def shown_name(told: str) -> str:
    """A caller's name as it may be written down."""
    return "".join(each for each in told if each.isascii() and each.isprintable())[:LONGEST]
