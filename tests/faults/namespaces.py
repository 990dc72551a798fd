"""A mount namespace of a test's own, where a disk may be full or read-only for it alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class MountNamespace:
    """Mounts that only commands with its prefix see."""

    def __init__(self, holder: subprocess.Popen[bytes]) -> None:
        self._holder = holder

    @property
    def prefix(self) -> tuple[str, ...]:
        """What stands before a command so that it sees the mounts."""
        return ("nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--wd=/", "--")

    def inside(self, path: Path) -> Path:
        """Where the namespace's view of a path can be read from outside."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def run(self, *command: str) -> None:
        subprocess.run([*self.prefix, *command], check=True, capture_output=True)


@contextmanager
def mount_namespace() -> Iterator[MountNamespace]:
    """A namespace that lasts as long as the block; skips the test where none can be made."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None or os.geteuid() != 0:
        pytest.skip("mount namespaces need root and the tools of util-linux")
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo ready; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        if holder.stdout.readline() != b"ready\n":
            pytest.skip("this machine lets nobody make a mount namespace")
        yield MountNamespace(holder)
        holder.stdin.close()
