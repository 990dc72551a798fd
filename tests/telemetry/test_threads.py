"""The busiest thread, from a process file system of ours and from this very process."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from a40console.model.busiest_thread import BusiestThread
from a40console.model.figures import Missing
from a40console.telemetry.threads import ThreadSampler

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Engine:
    """Processes whose threads have used what the test says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now_s = 50.0
        self.sampler = ThreadSampler(clock=lambda: self.now_s, root=root)

    def thread(self, pid: int, tid: int, name: str, used_s: float, *, started: int = 5) -> None:
        folder = self.root / "proc" / str(pid) / "task" / str(tid)
        folder.mkdir(parents=True, exist_ok=True)
        ticks = round(used_s / TICK_S)
        fields = ["S", *["0"] * 10, str(ticks // 2), str(ticks - ticks // 2), *["0"] * 6]
        (folder / "stat").write_text(f"{tid} ({name}) {' '.join(fields)} {started} 0\n")


def busiest(engine: Engine, *pids: int) -> tuple[str, float]:
    found = engine.sampler.sample(pids)
    assert isinstance(found, BusiestThread)
    return found.name, found.ratio


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def test_the_hottest_thread_is_named_with_its_share_of_a_core(engine: Engine) -> None:
    engine.thread(900, 900, "vllm", 1.0)
    engine.thread(900, 901, "worker (a) b", 2.0)
    engine.thread(950, 950, "VLLM::EngineCor", 3.0)
    (engine.root / "proc/950/cmdline").write_text("VLLM::EngineCore\0\0")
    assert engine.sampler.sample([900, 950]) == Missing("first sample")
    engine.now_s += 2
    engine.thread(900, 901, "worker (a) b", 2.2)
    engine.thread(950, 950, "VLLM::EngineCor", 4.76)
    name, ratio = busiest(engine, 900, 950)
    assert name == "EngineCore"
    assert ratio == pytest.approx(0.88)
    engine.now_s += 1
    engine.thread(900, 901, "worker (a) b", 3.0)
    name, ratio = busiest(engine, 900, 950)
    assert name == "worker (a) b"
    assert ratio == pytest.approx(0.8)


def test_a_number_that_was_used_again_is_another_thread(engine: Engine) -> None:
    engine.thread(900, 900, "vllm", 0.1)
    engine.thread(900, 901, "old", 0.1)
    engine.sampler.sample([900])
    engine.now_s += 1
    engine.thread(900, 901, "new", 9.0, started=77)
    assert engine.sampler.sample([900]) == BusiestThread(name="vllm", ratio=0.0)


def test_a_core_is_never_used_more_than_whole(engine: Engine) -> None:
    engine.thread(900, 900, "vllm", 1.0)
    engine.sampler.sample([900])
    engine.now_s += 1
    engine.thread(900, 900, "vllm", 2.01)
    found = engine.sampler.sample([900])
    assert isinstance(found, BusiestThread)
    assert found.ratio == 1.0


def test_no_process_and_a_gone_process_are_told_apart(engine: Engine) -> None:
    assert engine.sampler.sample([]) == Missing("no engine process")
    assert engine.sampler.sample([424242]) == Missing("the engine's threads cannot be read")


def test_malformed_entries_are_skipped(engine: Engine) -> None:
    engine.thread(900, 900, "vllm", 1.0)
    (engine.root / "proc/900/task/7").mkdir()
    (engine.root / "proc/900/task/7/stat").write_text("7 (x) S 1\n")
    (engine.root / "proc/900/task/8").mkdir()
    engine.sampler.sample([900])
    engine.now_s += 1
    assert engine.sampler.sample([900]) == BusiestThread(name="vllm", ratio=0.0)


def test_a_spinning_thread_of_this_process_is_found() -> None:
    sampler = ThreadSampler()
    done = threading.Event()

    def spin() -> None:
        while not done.is_set():
            sum(range(1000))

    spinner = threading.Thread(target=spin)
    spinner.start()
    try:
        time.sleep(0.05)
        sampler.sample([os.getpid()])
        time.sleep(0.5)
        found = sampler.sample([os.getpid()])
    finally:
        done.set()
        spinner.join()
    assert isinstance(found, BusiestThread)
    assert found.ratio > 0.3
