"""Files that are replaced; and locks: who holds one is told, whatever the file says."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from a40console.files import (
    holder_told,
    holds_open,
    is_locked,
    lock_holder,
    replace_text,
    write_private,
)


def test_who_reads_a_file_that_is_replaced_still_may(lock: Path) -> None:
    path = lock.with_name("mine.toml")
    path.write_text("old")
    path.chmod(0o644)
    os.chown(path, os.getuid(), os.getgid())
    before = path.stat()
    replace_text(path, "new")
    after = path.stat()
    assert path.read_text() == "new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    write_private(path, "newer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileNotFoundError):
        replace_text(path.with_name("gone.toml"), "new")
    assert sorted(each.name for each in path.parent.iterdir()) == ["mine.toml"]


def test_a_link_to_a_file_that_is_replaced_stays_one(lock: Path) -> None:
    real, link = lock.with_name("real.toml"), lock.with_name("mine.toml")
    real.write_text("old")
    link.symlink_to(real.name)
    replace_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == link.read_text() == "new"


TAKER = """
import fcntl, os, sys, time
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.pwrite(lock, sys.argv[2].replace("PID", str(os.getpid())).encode(), 0)
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(60)
"""
"""A process that takes a lock, and its child that has inherited it."""


class Holders:
    """Who took the lock, and who inherited it."""

    def __init__(self, lock: Path, written: str = "PID\n") -> None:
        self.taker = subprocess.Popen(
            [sys.executable, "-c", TAKER, str(lock), written], stdout=subprocess.PIPE, text=True
        )
        assert self.taker.stdout is not None
        self.child = int(self.taker.stdout.readline())
        self.taker.stdout.close()

    def end_taker(self) -> None:
        self.taker.kill()
        self.taker.wait()

    def end(self) -> None:
        self.end_taker()
        with suppress(ProcessLookupError):
            os.kill(self.child, signal.SIGKILL)


@pytest.fixture
def lock() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder) / "service.lock"


@pytest.fixture
def holders(lock: Path) -> Iterator[Holders]:
    made = Holders(lock)
    yield made
    made.end()


def test_the_holder_is_told(lock: Path, holders: Holders) -> None:
    assert holder_told(lock) == f"process {holders.taker.pid}"
    assert lock_holder(lock) == holders.taker.pid


def test_a_child_that_was_left_with_the_lock_is_told_and_its_dead_parent_too(
    lock: Path, holders: Holders
) -> None:
    holders.end_taker()
    assert is_locked(lock)
    assert holder_told(lock) == (
        f"process {holders.child} (unsupervised: process {holders.taker.pid} is gone)"
    )


def test_one_that_merely_reads_the_file_is_not_the_holder(lock: Path, holders: Holders) -> None:
    with lock.open() as reader, subprocess.Popen(["sleep", "60"], stdin=reader) as onlooker:
        try:
            holders.end_taker()
            assert holds_open(onlooker.pid, lock)
            assert holder_told(lock).startswith(f"process {holders.child} ")
        finally:
            onlooker.kill()


@pytest.mark.parametrize("written", ["", "nobody", "9" * 5000, "-1"])
def test_a_lock_that_names_nobody_is_told_by_who_holds_it(lock: Path, written: str) -> None:
    made = Holders(lock, written)
    try:
        assert lock_holder(lock) == 0
        told = {f"process {pid}" for pid in (made.taker.pid, made.child)}
        assert holder_told(lock) in told
    finally:
        made.end()


def test_a_lock_that_nobody_holds(lock: Path) -> None:
    assert lock_holder(lock) is None
    lock.write_text("4711\n")
    assert lock_holder(lock) is None
    assert holder_told(lock) == "process unknown"
