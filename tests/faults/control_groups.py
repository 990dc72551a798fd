"""Control groups that a test makes for its service, where this machine lets it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

MOUNT = Path("/sys/fs/cgroup")


Way = tuple[str, ...]
"""What stands before a command so that it runs in the groups."""


@contextmanager
def control_group(*controllers: str, v1: Mapping[str, str], v2: Mapping[str, str]) -> Iterator[Way]:
    """The way into a group with these settings; skips the test where none can be made.

    Args:
        controllers: What limits and what counts. Version 1 keeps them apart: there is a group of
            the same name for each, as container engines make them.
        v1: Files of the first controller's group.
        v2: The same in version 2.
    """
    name = f"a40console-test-{secrets.token_hex(4)}"
    version_2 = controllers[0] in _read(MOUNT / "cgroup.controllers").split()
    parents = [MOUNT] if version_2 else [MOUNT / controller for controller in controllers]
    groups = [parent / name for parent in parents]
    try:
        if version_2:
            (MOUNT / "cgroup.subtree_control").write_text(f"+{controllers[0]}")
        for group in groups:
            group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        for file, value in (v2 if version_2 else v1).items():
            (groups[0] / file).write_text(value)
        enter = " && ".join(f"echo $$ > {group}/cgroup.procs" for group in groups)
        yield ("sh", "-c", f'{enter} && exec "$@"', "sh")
    finally:
        for group in groups:
            _remove(group)


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Way]:
    """The way into a group with a memory limit."""
    limit = str(limit_bytes)
    v1, v2 = {"memory.limit_in_bytes": limit}, {"memory.max": limit}
    with control_group("memory", v1=v1, v2=v2) as way:
        yield way


@contextmanager
def cpu_group(vcpu: float) -> Iterator[Way]:
    """The way into a group with a CPU quota."""
    quota_us = str(int(vcpu * 100_000))
    v1 = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": quota_us}
    with control_group("cpu", "cpuacct", v1=v1, v2={"cpu.max": f"{quota_us} 100000"}) as way:
        yield way


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
