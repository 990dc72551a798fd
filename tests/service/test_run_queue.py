"""Runs take turns, survive the service, and end with a reason whatever becomes of their process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from a40console.errors import ConsoleError, RefusedError
from a40console.model.event import Severity
from a40console.model.profile import Profile
from a40console.model.run import Run
from a40console.model.run_order import RunOrder
from a40console.paths import Paths, locate
from a40console.service import run_queue
from a40console.service.run_folder import RunFolder
from a40console.service.run_process import RunProcess
from a40console.service.run_queue import LONGEST, RunQueue
from a40console.service.run_view import RunView
from tests.service import orders

CHILD = """
import json, os, signal, sys, time
from pathlib import Path
from a40console.engines.tree import ProcFs
folder = Path(sys.argv[1])
proc = ProcFs()
me = proc.read_process(os.getpid())
(folder / "child.json").write_text(json.dumps(
    {"pid": me.id.pid, "start_ticks": me.id.start_ticks, "boot_id": proc.boot_id()}))
def end(state, reason):
    result = {"headline": "", "verdict": {"kind": "none", "text": ""}}
    ended = {"kind": "ended", "at": "2026-11-30T17:45:09.000Z", "state": state, "reason": reason}
    with (folder / "run.jsonl").open("a") as file:
        for line in ({"kind": "result", "result": result}, ended):
            file.write(json.dumps(line) + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, lambda *_: end("partial", (folder / "cancel").read_text()))
(folder / "began").touch()
deadline = time.monotonic() + 60
while time.monotonic() < deadline and not (folder.parent.parent / "go").exists():
    time.sleep(0.02)
end("done", "")
"""
"""Stands for a run's process: waits until it is let go, or told to end."""


@dataclass
class World:
    """The service as a test wants it."""

    paths: Paths
    why_not: str = ""
    never: str = ""
    unkept: ConsoleError | None = None
    known: bool = True
    before: Profile | None = None
    kept: list[Run] = field(default_factory=list)
    put_back_to: list[Profile] = field(default_factory=list)

    def settled(self) -> bool:
        return self.known

    def hindrance(self, order: RunOrder) -> str:
        if self.never:
            raise RefusedError("It could not begin", evidence=self.never)
        return "" if order.spec.target.kind == "url" else self.why_not

    async def equip(self, order: RunOrder) -> tuple[RunOrder, Profile | None]:
        await self.equipping()
        return order, self.before

    async def equipping(self) -> None:
        pass

    def token(self, order: RunOrder) -> str | None:
        return "secret-token"

    async def put_back(self, profile: Profile) -> str:
        self.put_back_to.append(profile)
        return "as it was"

    async def keep(self, folder: RunFolder) -> Run:
        if self.unkept is not None:
            raise self.unkept
        run = RunView(folder).look(lives=False)
        self.kept.append(run)
        return run

    async def has(self, folder: RunFolder) -> bool:
        return folder.id in {run.id for run in self.kept}


@dataclass
class Bench:
    """A queue, its world, and what it told."""

    paths: Paths
    world: World
    told: list[tuple[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def queue(self) -> RunQueue:
        def record(
            kind: str, text: str, severity: Severity = "info", data: dict[str, str] | None = None
        ) -> None:
            self.told.append((kind, text))

        return RunQueue(self.paths, self.world, record, start=self.start)

    def start(
        self, folder: RunFolder, paths: Paths, token: str, environment: Mapping[str, str]
    ) -> RunProcess:
        self.tokens.append(token)
        words = [sys.executable, "-c", CHILD, str(folder.path)]
        self.started.append(subprocess.Popen(words, start_new_session=True))
        return RunProcess(folder, self.started[-1])

    def go(self) -> None:
        """Let runs end."""
        (self.paths.state / "go").touch()

    def folder(self, run_id: str) -> RunFolder:
        return RunFolder(self.paths.runs / run_id)

    async def began(self, run_id: str) -> None:
        await until(lambda: (self.folder(run_id).path / "began").exists())


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(run_queue, "LOOK_S", 0.02)
    monkeypatch.setattr(run_queue, "REST_S", 0.05)
    paths = locate({"A40CONSOLE_HOME": str(tmp_path)})
    paths.state.mkdir(parents=True)
    made = Bench(paths, World(paths))
    yield made
    for process in made.started:
        process.kill()
        process.wait()


@asynccontextmanager
async def running(queue: RunQueue) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if queue.current is not None:
            queue.current.kill()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen in time")


def named(number: int) -> RunOrder:
    return orders.order(f"20261130-17450{number}-sweep-0000")


async def test_two_take_turns_and_each_is_kept(bench: Bench) -> None:
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        queue.add(named(2))
        await bench.began(named(1).id)
        assert [folder.id for folder in queue.queued] == [named(2).id]
        assert not (bench.folder(named(2).id).path / "began").exists()
        bench.go()
        await until(lambda: len(bench.world.kept) == 2)
    assert [(run.id, run.state) for run in bench.world.kept] == [
        (named(1).id, "done"),
        (named(2).id, "done"),
    ]
    assert queue.folders == ()
    assert [kind for kind, _ in bench.told].count("run.ended") == 2


async def test_a_secret_reaches_no_file(bench: Bench) -> None:
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        await bench.began(named(1).id)
        bench.go()
        await until(lambda: bool(bench.world.kept))
    assert bench.tokens == ["secret-token"]
    files = [path for path in bench.folder(named(1).id).path.iterdir() if path.is_file()]
    assert files
    assert all(b"secret-token" not in path.read_bytes() for path in files)


async def test_a_run_that_is_cancelled_ends_partial_and_the_next_one_begins(bench: Bench) -> None:
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        queue.add(named(2))
        await bench.began(named(1).id)
        queue.cancel(named(1).id, "cancelled by alice")
        await bench.began(named(2).id)
        bench.go()
        await until(lambda: len(bench.world.kept) == 2)
    assert bench.world.kept[0].state == "partial"
    assert bench.world.kept[0].reason == "cancelled by alice"


async def test_a_run_that_waits_is_cancelled_without_ever_beginning(bench: Bench) -> None:
    bench.world.why_not = "2 sessions are at work"
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        await until(lambda: queue.waits_for(bench.folder(named(1).id)) == "2 sessions are at work")
        queue.cancel(named(1).id, "cancelled by alice")
        await until(lambda: bool(bench.world.kept))
    assert bench.tokens == []
    assert bench.world.kept[0].state == "failed"
    assert bench.world.kept[0].reason == "cancelled by alice, before it began"
    with pytest.raises(RefusedError, match="neither waits nor runs"):
        queue.cancel(named(1).id, "again")


async def test_it_begins_once_what_hindered_it_is_over(bench: Bench) -> None:
    bench.world.why_not = "2 sessions are at work"
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        await until(lambda: bool(queue.waits_for(bench.folder(named(1).id))))
        assert bench.tokens == []
        bench.world.why_not = ""
        await bench.began(named(1).id)
        bench.go()
        await until(lambda: bool(bench.world.kept))


async def test_a_run_that_waits_for_our_engine_holds_up_no_run_elsewhere(bench: Bench) -> None:
    bench.world.why_not = "2 sessions are at work"
    there = orders.order("20261130-174503-sweep-0000", spec=orders.url_spec("http://x"))
    queue = bench.queue()
    async with running(queue):
        for order in (named(1), named(2), there):
            queue.add(order)
        await bench.began(there.id)
        assert [folder.id for folder in queue.queued] == [named(1).id, named(2).id]
        bench.go()
        await until(lambda: bool(bench.world.kept))
        await until(lambda: bool(queue.waits_for(bench.folder(named(1).id))))
        bench.world.why_not = ""
        await until(lambda: len(bench.world.kept) == 3)
    assert [run.id for run in bench.world.kept] == [there.id, named(1).id, named(2).id]
    assert [kind for kind, _ in bench.told].count("run.waits") == 1


async def test_a_damaged_order_is_told_of_and_lets_the_next_one_begin(bench: Bench) -> None:
    bench.folder(named(1).id).write_order(named(1))
    (bench.folder(named(1).id).path / "order.json").write_text("{")
    bench.go()
    queue = bench.queue()
    async with running(queue):
        queue.add(named(2))
        await until(lambda: len(bench.world.kept) == 2)
    damaged, after = bench.world.kept
    assert (damaged.id, damaged.state) == (named(1).id, "failed")
    assert "its order is damaged" in damaged.reason
    assert after.state == "done"


async def test_what_can_never_begin_fails_with_the_reason(bench: Bench) -> None:
    bench.world.never = "no engine runs"
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        await until(lambda: bool(bench.world.kept))
    assert bench.world.kept[0].state == "failed"
    assert "no engine runs" in bench.world.kept[0].reason


async def test_a_new_service_takes_over_what_runs_and_what_waits(bench: Bench) -> None:
    """The service before it was killed: its run goes on, and is not started a second time."""
    first = bench.queue()
    task = asyncio.create_task(first.run())
    first.add(named(1))
    first.add(named(2))
    await bench.began(named(1).id)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    second = bench.queue()
    assert second.current is not None
    assert second.current.folder.id == named(1).id
    assert second.current.lives()
    async with running(second):
        await asyncio.sleep(0.2)
        assert len(bench.tokens) == 1
        bench.go()
        await until(lambda: len(bench.world.kept) == 2)
    assert [run.id for run in bench.world.kept] == [named(1).id, named(2).id]
    assert bench.queue().folders == ()


async def test_nothing_is_done_while_it_is_not_known_which_engine_runs(bench: Bench) -> None:
    bench.world.known = False
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        await asyncio.sleep(0.3)
        assert bench.tokens == []
        bench.world.known = True
        await bench.began(named(1).id)
        bench.go()
        await until(lambda: bool(bench.world.kept))


async def test_a_killed_process_puts_the_engine_back_and_lets_the_next_one_begin(
    bench: Bench,
) -> None:
    bench.world.before = Profile(name="a", kind="sim", model="x/y")
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        queue.add(named(2))
        await bench.began(named(1).id)
        assert queue.current is not None
        queue.current.kill()
        await bench.began(named(2).id)
        assert bench.world.put_back_to == [bench.world.before]
        bench.go()
        await until(lambda: len(bench.world.kept) == 2)
    assert bench.world.kept[0].state == "failed"
    assert bench.folder(named(1).id).before() is None


async def test_an_engine_that_nobody_put_back_is_put_back_by_the_next_service(
    bench: Bench,
) -> None:
    folder = bench.folder(named(1).id)
    folder.write_order(named(1))
    folder.write_before(Profile(name="a", kind="sim", model="x/y"))
    (folder.path / "child.json").write_text('{"pid": 1, "start_ticks": 1, "boot_id": "gone"}')
    queue = bench.queue()
    async with running(queue):
        await until(lambda: bool(bench.world.kept))
    assert [profile.name for profile in bench.world.put_back_to] == ["a"]


async def test_what_the_ledger_does_not_take_is_tried_again_and_stays_known(bench: Bench) -> None:
    bench.world.unkept = ConsoleError("The disk is full", evidence="No space left on device")
    bench.go()
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        await until(lambda: any(kind == "run.unkept" for kind, _ in bench.told))
        assert [folder.id for folder in queue.folders] == [named(1).id]
        assert not bench.folder(named(1).id).is_kept
        bench.world.unkept = None
        await until(lambda: bool(bench.world.kept))
    assert bench.world.kept[0].state == "done"
    assert [kind for kind, _ in bench.told].count("run.unkept") == 1, "it is told once"
    assert bench.folder(named(1).id).is_kept


async def test_what_the_ledger_lost_is_taken_from_the_folders_again(bench: Bench) -> None:
    """It was damaged and made anew: the runs lie whole in their folders."""
    bench.go()
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        await until(lambda: bench.folder(named(1).id).is_kept)
        bench.world.kept.clear()
        queue.compare_with_ledger()
        await until(lambda: bool(bench.world.kept) and bench.folder(named(1).id).is_kept)
    assert [run.id for run in bench.world.kept] == [named(1).id]
    kinds = [kind for kind, _ in bench.told]
    assert (kinds.count("run.ended"), kinds.count("run.kept-again")) == (1, 1)
    bench.world.kept.clear()
    async with running(bench.queue()):
        await until(lambda: bool(bench.world.kept))


async def test_a_run_cancelled_while_it_is_equipped_is_dropped_once(bench: Bench) -> None:
    queue = bench.queue()

    async def cancelled_meanwhile() -> None:
        queue.cancel(named(1).id, "cancelled by alice")
        raise RefusedError("Nothing answers")

    bench.world.equipping = cancelled_meanwhile  # type: ignore[method-assign]
    async with running(queue):
        queue.add(named(1))
        await until(lambda: bool(bench.world.kept))
    assert [run.reason for run in bench.world.kept] == ["cancelled by alice, before it began"]


async def test_an_engine_that_cannot_be_put_back_is_told_of(bench: Bench) -> None:
    folder = bench.folder(named(1).id)
    folder.write_order(named(1))
    (folder.path / "engine-before.json").write_text('{"name": ')
    (folder.path / "child.json").write_text('{"pid": 1, "start_ticks": 1, "boot_id": "gone"}')
    async with running(bench.queue()):
        await until(lambda: bool(bench.world.kept))
    assert bench.world.put_back_to == []
    assert "run.engine-not-put-back" in [kind for kind, _ in bench.told]


def test_a_run_that_cannot_be_written_down_leaves_no_folder(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_written: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("a40console.service.run_folder.write_private", full)
    queue = bench.queue()
    with pytest.raises(RefusedError, match="cannot be written down"):
        queue.add(named(1))
    assert list(bench.paths.runs.iterdir()) == []
    assert queue.queued == ()


async def test_the_queue_is_bounded(bench: Bench) -> None:
    queue = bench.queue()
    for number in range(LONGEST):
        queue.add(orders.order(f"20261130-1745{number:02}-sweep-0000"))
    with pytest.raises(RefusedError, match="wait already"):
        queue.add(orders.order("20261130-180000-sweep-0000"))


async def test_a_process_that_does_not_heed_is_killed_after_its_grace(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("a40console.service.run_process.GRACE_S", 0.3)
    queue = bench.queue()
    async with running(queue):
        queue.add(named(1))
        await bench.began(named(1).id)
        child = bench.folder(named(1).id).child()
        assert child is not None
        os.kill(child.id.pid, signal.SIGSTOP)
        queue.cancel(named(1).id, "cancelled by alice")
        await until(lambda: bool(bench.world.kept))
    assert bench.world.kept[0].state == "failed"
