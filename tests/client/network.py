"""A network of a test's own that holds loopback alone: nothing in it can reach the world."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_READY = "ip link set lo up && echo ready && exec cat"


class LoopbackOnly:
    """Commands with its prefix see one interface, `lo`."""

    def __init__(self, holder: subprocess.Popen[bytes]) -> None:
        self._holder = holder

    @property
    def prefix(self) -> tuple[str, ...]:
        """What stands before a command so that it runs inside."""
        return ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--")


@contextmanager
def loopback_only() -> Iterator[LoopbackOnly]:
    """A network that lasts as long as the block; skips the test where none can be made."""
    tools = all(shutil.which(name) for name in ("unshare", "nsenter", "ip"))
    if not tools or os.geteuid() != 0:
        pytest.skip("a network namespace needs root, util-linux and iproute2")
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", _READY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        if holder.stdout.readline() != b"ready\n":
            pytest.skip("this machine lets nobody make a network namespace")
        yield LoopbackOnly(holder)
        holder.stdin.close()
