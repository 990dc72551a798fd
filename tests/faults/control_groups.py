"""Control groups that a test makes for its service, where this machine lets it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

MOUNT = Path("/sys/fs/cgroup")


@contextmanager
def control_group(controller: str, v1: Mapping[str, str], v2: Mapping[str, str]) -> Iterator[Path]:
    """A group with these settings; skips the test where none can be made."""
    version_2 = controller in _read(MOUNT / "cgroup.controllers").split()
    parent = MOUNT if version_2 else MOUNT / controller
    group = parent / f"a40console-test-{secrets.token_hex(4)}"
    try:
        if version_2:
            (parent / "cgroup.subtree_control").write_text(f"+{controller}")
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        for name, value in (v2 if version_2 else v1).items():
            (group / name).write_text(value)
        yield group
    finally:
        _remove(group)


def entering(group: Path) -> tuple[str, ...]:
    """What stands before a command so that it runs in the group."""
    return ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[tuple[str, ...]]:
    """The way into a group with a memory limit."""
    limit = str(limit_bytes)
    v1 = {"memory.limit_in_bytes": limit}
    with control_group("memory", v1, {"memory.max": limit}) as group:
        yield entering(group)


@contextmanager
def cpu_group(vcpu: float) -> Iterator[tuple[str, ...]]:
    """The way into a group with a CPU quota."""
    quota_us = str(int(vcpu * 100_000))
    v1 = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": quota_us}
    with control_group("cpu", v1, {"cpu.max": f"{quota_us} 100000"}) as group:
        yield entering(group)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _remove(group: Path) -> None:
    deadline_s = time.monotonic() + 5
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)
        else:
            return
