"""The demo's end takes what is proven the demo's own, and nobody who only looks on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from a40console.commands.demo import crowd, demo_home
from a40console.commands.demo_ending import end
from a40console.commands.running import lock_holder
from a40console.config import Settings
from a40console.engines.process import EngineProcess
from a40console.errors import RefusedError
from a40console.paths import DEMO_MARK, Paths, locate
from a40console.profiles.loader import load_profiles
from a40console.service.demo_owner import mark_owned
from tests.operations.living import living_engine

SERVICE = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
lock.write(str(os.getpid()))
lock.flush()
time.sleep(60)
"""
"""Holds the lock as a service does, and heeds nothing."""

MODULE = ("-P", "-m", "a40console.service.run_child")
"""The words by which the process of a run is known."""


@pytest.fixture
def paths() -> Iterator[Paths]:
    home = Path(tempfile.mkdtemp(prefix="a4g-", dir="/tmp"))
    found = locate({"A40CONSOLE_HOME": str(home)})
    found.state.mkdir()
    yield found
    shutil.rmtree(home, ignore_errors=True)


def begin(*words: str, folder: Path = Path("/")) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, cwd=folder)


def until(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)


async def test_service_and_engine_end_and_the_onlooker_stays(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a40console.commands.demo_ending.HEEDS_WITHIN_S", 0.3)
    (paths.home / DEMO_MARK).touch()
    log = paths.home / "state" / "service.log"
    log.touch()
    service = begin(sys.executable, "-c", SERVICE, str(paths.service_lock))
    onlooker = begin("tail", "-f", str(log), folder=paths.state)
    profile = load_profiles(paths.profiles).find("sim-a40-qwen3-coder-30b")
    try:
        async with living_engine(paths, profile) as run:
            until(lambda: lock_holder(paths) == service.pid)
            folder = run.folder(paths.engine_runs)
            engine = EngineProcess.recorded(folder)
            assert engine is not None
            assert engine.leader_alive()
            await end(paths)
            assert service.wait(5) == -9
            assert not engine.leader_alive()
            assert onlooker.poll() is None, "it is the operator's"
            assert not paths.home.exists()
    finally:
        for process in (service, onlooker):
            process.kill()
            process.wait()


async def test_a_run_that_measures_ends_with_the_demo_and_another_homes_does_not(
    paths: Paths, tmp_path: Path
) -> None:
    """It is in a session of its own, and would go on against a URL for hours."""
    (paths.home / DEMO_MARK).touch()
    paths.service_lock.touch()
    ours, theirs = (
        begin(sys.executable, "-c", "import time; time.sleep(60)", *MODULE, str(runs / "run-1"))
        for runs in (paths.runs, tmp_path / "state" / "runs")
    )
    try:
        await end(paths)
        assert ours.wait(5) == -signal.SIGKILL
        assert theirs.poll() is None, "it is the operator's"
    finally:
        for process in (ours, theirs):
            process.kill()
            process.wait()


async def test_a_pid_in_a_lock_that_somebody_else_holds_is_let_alone(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a40console.commands.demo_ending.HEEDS_WITHIN_S", 0.3)
    (paths.home / DEMO_MARK).touch()
    stranger = begin("sleep", "60")
    script = SERVICE.replace("os.getpid()", str(stranger.pid))
    service = begin(sys.executable, "-c", script, str(paths.service_lock))
    try:
        until(lambda: lock_holder(paths) == stranger.pid)
        await end(paths)
        assert stranger.poll() is None
    finally:
        for process in (service, stranger):
            process.kill()
            process.wait()


def test_a_worker_that_crashes_after_its_folder_went_does_not_come_back(paths: Paths) -> None:
    mark_owned(paths.home)
    words = ("serve", "--port", "0", "--profile", "sim-a40-qwen3-coder-30b")
    began = subprocess.Popen(
        [sys.executable, "-P", "-m", "a40console", *words],
        env={**os.environ, "A40CONSOLE_HOME": str(paths.home)},
        stderr=subprocess.DEVNULL,
    )
    service = psutil.Process(began.pid)
    try:
        until(lambda: any(paths.engine_runs.glob("*/engine.json")))
        [worker] = service.children()
        [record] = paths.engine_runs.glob("*/engine.json")
        engine = EngineProcess.recorded(record.parent)
        assert engine is not None
        os.kill(worker.pid, signal.SIGSTOP)  # it does not notice in time
        shutil.rmtree(paths.home)
        os.kill(worker.pid, signal.SIGKILL)
        assert began.wait(20) == 0
        until(lambda: not engine.leader_alive())
        of_home = [
            process.pid
            for process in psutil.process_iter(["cmdline"])
            if any(str(paths.home) in word for word in process.info["cmdline"] or ())
        ]
        assert of_home == []
    finally:
        if began.poll() is None:
            began.kill()
            began.wait()


async def test_a_home_that_is_no_demos_is_let_alone(paths: Paths) -> None:
    await end(paths)
    assert paths.state.exists()


def test_a_service_that_does_not_start_leaves_nothing(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(paths: Paths) -> None:
        paths.service_lock.touch()
        raise RuntimeError("it did not start")

    monkeypatch.setattr("a40console.commands.demo._serve", fails)
    with (
        pytest.raises(RuntimeError),
        demo_home(Settings(), paths) as demo,
        crowd(demo),
    ):
        pytest.fail("there is no service")
    assert not demo.home.exists()
    assert not demo.runtime.exists()


def test_a_terminal_that_is_gone_does_not_skip_the_end(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(text: str) -> None:
        raise RuntimeError("nobody listens")

    async def starts(paths: Paths) -> None:
        paths.service_lock.touch()

    monkeypatch.setattr("a40console.commands.demo._serve", starts)
    monkeypatch.setattr("a40console.commands.demo.note", broken)
    before = set(psutil.Process().children())  # whatever another test has not reaped
    with pytest.raises(RuntimeError), demo_home(Settings(), paths) as demo, crowd(demo):
        [clients] = set(psutil.Process().children()) - before
    assert not psutil.pid_exists(clients.pid)
    assert not demo.home.exists()


def test_a_full_disk_is_told_before_anything_is_made(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a40console.commands.demo.NEEDS_BYTES", 10**18)
    monkeypatch.setattr(tempfile, "tempdir", str(paths.home))
    before = sorted(paths.home.iterdir())
    with pytest.raises(RefusedError, match="no room"), demo_home(Settings(), paths):
        pytest.fail("there is no room")
    assert sorted(paths.home.iterdir()) == before
