"""The engine's life under commands that cross: on real processes, with a start we can hold."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from a40console.engines.launching import Launch
from a40console.engines.process import EngineProcess, ProcessState
from a40console.errors import ConsoleError, NotServingError, RefusedError
from a40console.gateway.hold import AdmissionGate
from a40console.model.engine import EngineState
from a40console.model.profile import Profile, Speculation
from a40console.operations import desire, record
from a40console.operations.canary import CanaryReport
from a40console.operations.ending import explain
from a40console.operations.live_speculation import LiveSpeculation, NotWellError, Way
from a40console.operations.operator import Engineering, EngineOperator
from a40console.operations.preflight import Preflight
from a40console.operations.record import RunRecord
from a40console.operations.roles import Publish
from a40console.operations.status import EngineStatus
from a40console.operations.switch import Canary
from a40console.operations.watch import RestartPolicy
from a40console.paths import Paths, locate


def profile(name: str) -> Profile:
    return Profile(name=name, kind="sim", model="m", speculation=Speculation(tokens=4))


@dataclass
class SleepStarter:
    """Starts `sleep` as an engine; readiness is what a test says it is."""

    paths: Paths
    ready: dict[str, asyncio.Event] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    full_disk: set[str] = field(default_factory=set)
    launched: list[EngineProcess] = field(default_factory=list)

    def hold(self, name: str) -> None:
        self.ready[name] = asyncio.Event()

    async def check(self, profile: Profile) -> None:
        if profile.name == "impossible":
            raise RefusedError("it cannot run here")

    async def launch(
        self, profile: Profile, status: EngineStatus, publish: Publish
    ) -> tuple[EngineStatus, EngineProcess]:
        run = RunRecord(
            id=f"{time.time_ns()}-{profile.name}",
            profile=profile,
            base_url="http://localhost",
            socket_path=None,
            plugin=False,
            argv=("sleep", "300"),
            argv_digest="0",
            started_at="",
        )
        if profile.name in self.full_disk:
            raise OSError(errno.ENOSPC, "No space left on device")
        folder = run.folder(self.paths.engine_runs)
        folder.mkdir(parents=True)
        record.save(run, self.paths.engine_runs)
        process = await EngineProcess.start(
            folder, Launch(argv=("sleep", "300"), env=dict(os.environ), cwd=folder)
        )
        self.launched.append(process)
        starting = replace(
            status,
            state=EngineState.STARTING,
            run=run,
            pid=process.pid,
            session_id=process.pid,
            leader=process.identity.leader,
            started_at_s=process.identity.started_monotonic_s,
        )
        publish(starting)
        return starting, process

    async def await_ready(
        self, status: EngineStatus, process: EngineProcess, publish: Publish
    ) -> EngineStatus:
        assert status.profile is not None
        if status.profile.name in self.broken:
            raise NotServingError("it does not serve")
        if event := self.ready.get(status.profile.name):
            await event.wait()
        record.note_served(process.run_dir)
        return replace(status, state=EngineState.SERVING, phase="ready")

    async def free_port(self, status: EngineStatus, publish: Publish) -> bool:
        return False

    def living(self) -> list[int]:
        return [p.pid for p in self.launched if p.state() is not ProcessState.ENDED]


@dataclass
class Bench:
    operator: EngineOperator
    starter: SleepStarter
    paths: Paths
    events: list[str]
    gate: AdmissionGate

    async def until(self, state: EngineState, timeout_s: float = 10) -> None:
        for _ in range(int(timeout_s / 0.02)):
            if self.operator.status.state is state:
                return
            await asyncio.sleep(0.02)
        raise AssertionError((self.operator.status.state, self.events))


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="a40o-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def sound(status: EngineStatus) -> CanaryReport:
    return CanaryReport(passed=True, checks=(), seconds=0.0)


def make_bench(home: Path, policy: RestartPolicy | None = None, *, canary: Canary = sound) -> Bench:
    paths = locate({"A40CONSOLE_HOME": str(home)})
    paths.engine_runs.mkdir(parents=True, exist_ok=True)
    starter = SleepStarter(paths)
    events: list[str] = []

    def note(
        kind: str, text: str, severity: str = "info", data: dict[str, str] | None = None
    ) -> None:
        events.append(kind)

    gate = AdmissionGate()
    operator = EngineOperator(
        paths=paths,
        find_profile=profile,
        works=Engineering(
            starter=starter,
            admission=gate,
            canary=canary,
            preflight=Preflight(paths, starter, note),
            policy=policy or RestartPolicy(enabled=False),
            explain=lambda process, status: explain(process, status, time.monotonic()),
        ),
        recorder=note,
        clock=time.monotonic,
    )
    return Bench(operator, starter, paths, events, gate)


@pytest.fixture
async def bench(home: Path) -> AsyncIterator[Bench]:
    made = make_bench(home)
    yield made
    await made.operator.close()
    for process in made.starter.launched:
        await process.stop(term_timeout_s=2)


async def test_start_and_stop(bench: Bench) -> None:
    await bench.operator.start("a")
    await bench.until(EngineState.SERVING)
    assert desire.desired(bench.paths.desired) == profile("a")
    with pytest.raises(RefusedError):
        await bench.operator.start("b")
    await bench.operator.stop()
    assert bench.operator.status.state is EngineState.STOPPED
    assert desire.desired(bench.paths.desired) is None
    assert bench.starter.living() == []


@pytest.mark.parametrize("stays", [True, False])
async def test_a_restart_begins_where_speculation_was_left(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, stays: bool
) -> None:
    """What was turned down stays so, well or not; what was taken back does not."""
    await bench.operator.start("a")
    turned = replace(profile("a"), speculation=Speculation(tokens=4, start="off"))

    async def way(self: LiveSpeculation, status: EngineStatus, mode: str) -> Way:
        return Way(how="live", tokens=0, profile=turned)

    async def turn(self: LiveSpeculation, status: EngineStatus, way: Way) -> dict[str, str]:
        error = NotWellError("its answers are not well")
        error.stays = stays
        raise error

    monkeypatch.setattr(LiveSpeculation, "way", way)
    monkeypatch.setattr(LiveSpeculation, "turn", turn)
    with pytest.raises(NotWellError):
        await bench.operator.speculate("off")
    wanted = turned if stays else profile("a")
    assert bench.operator.status.profile == wanted
    assert desire.desired(bench.paths.desired) == wanted


async def test_a_stop_during_a_start_leaves_nothing(bench: Bench) -> None:
    bench.starter.hold("a")
    start = asyncio.create_task(bench.operator.start("a"))
    await bench.until(EngineState.STARTING)
    await bench.operator.stop()
    with pytest.raises(RefusedError, match="interrupted"):
        await start
    assert bench.operator.status.state is EngineState.STOPPED
    assert bench.starter.living() == []


@pytest.mark.parametrize("move", ["switch", "restart", "speculate"])
async def test_a_stop_during_a_replacement_puts_nothing_back(bench: Bench, move: str) -> None:
    await bench.operator.start("a")
    after = "b" if move == "switch" else "a"
    bench.starter.hold(after)
    moves: dict[str, Callable[[], Coroutine[None, None, dict[str, str]]]] = {
        "switch": lambda: bench.operator.switch("b"),
        "restart": bench.operator.restart,
        "speculate": lambda: bench.operator.speculate("on"),
    }
    replacing = asyncio.create_task(moves[move]())
    for _ in range(500):
        if len(bench.starter.launched) == 2:
            break
        await asyncio.sleep(0.02)
    await bench.operator.stop()
    with pytest.raises(RefusedError, match="interrupted"):
        await replacing
    assert bench.operator.status.state is EngineState.STOPPED
    assert bench.starter.living() == []
    assert "engine.rolled_back" not in bench.events


async def test_a_stop_while_the_old_engine_goes_down_starts_no_new_one(bench: Bench) -> None:
    await bench.operator.start("a")
    replacing = asyncio.create_task(bench.operator.switch("b"))
    await bench.until(EngineState.STOPPING)
    await bench.operator.stop()
    with pytest.raises(RefusedError, match="interrupted"):
        await replacing
    assert len(bench.starter.launched) == 1
    assert bench.starter.living() == []
    assert bench.operator.status.state is EngineState.STOPPED


async def test_a_switch_that_fails_puts_the_old_one_back(bench: Bench) -> None:
    await bench.operator.start("a")
    bench.starter.broken.add("b")
    with pytest.raises(ConsoleError, match="does not serve") as failed:
        await bench.operator.switch("b")
    assert "a serves again" in failed.value.remedy
    status = bench.operator.status
    assert status.state is EngineState.SERVING
    assert status.profile == profile("a")
    assert len(bench.starter.living()) == 1


async def test_what_cannot_run_here_takes_nothing_down(bench: Bench) -> None:
    await bench.operator.start("a")
    pid = bench.operator.status.pid
    with pytest.raises(RefusedError, match="cannot run here"):
        await bench.operator.switch("impossible")
    assert bench.operator.status.pid == pid
    assert bench.operator.status.state is EngineState.SERVING


async def test_a_serving_engine_is_adopted_at_once_and_never_ended(
    bench: Bench, home: Path
) -> None:
    await bench.operator.start("a")
    pid = bench.operator.status.pid
    await bench.operator.close()
    later = make_bench(home)
    later.starter.hold("a")  # it answers nothing any more
    assert await later.operator.adopt()
    assert later.operator.status.state is EngineState.SERVING
    assert later.operator.status.pid == pid
    await later.operator.close()
    assert bench.starter.living() == [pid]


async def test_an_engine_that_was_starting_is_adopted_as_such(bench: Bench, home: Path) -> None:
    bench.starter.hold("a")
    start = asyncio.create_task(bench.operator.start("a"))
    await bench.until(EngineState.STARTING)
    for _ in range(200):
        if bench.starter.launched:
            break
        await asyncio.sleep(0.02)
    await bench.operator.close()
    await asyncio.gather(start, return_exceptions=True)
    assert len(bench.starter.living()) == 1
    later = make_bench(home)
    later.starter.hold("a")
    adopting = asyncio.create_task(later.operator.adopt())
    await later.until(EngineState.STARTING)
    later.starter.ready["a"].set()
    assert await adopting
    assert later.operator.status.state is EngineState.SERVING
    await later.operator.stop()
    assert bench.starter.living() == []


async def test_an_engine_that_ended_unwatched_is_explained(bench: Bench, home: Path) -> None:
    await bench.operator.start("a")
    await bench.operator.close()
    process = bench.starter.launched[0]
    os.kill(process.pid, signal.SIGKILL)
    for _ in range(300):
        if process.exit() is not None:
            break
        await asyncio.sleep(0.02)
    later = make_bench(home)
    assert not await later.operator.adopt()
    status = later.operator.status
    assert status.state is EngineState.FAILED
    assert status.end is not None
    assert status.end.signal == "SIGKILL"
    assert later.events == ["engine.ended"]


async def test_one_that_was_stopped_is_not_mourned(bench: Bench, home: Path) -> None:
    await bench.operator.start("a")
    await bench.operator.stop()
    later = make_bench(home)
    assert not await later.operator.adopt()
    assert later.operator.status.state is EngineState.ABSENT
    assert later.events == []


async def test_restarts_go_on_as_long_as_the_policy_says(home: Path) -> None:
    bench = make_bench(home, RestartPolicy(delays_s=(0.05, 0.05, 0.05)))
    try:
        await bench.operator.start("a")
        bench.starter.broken.add("a")
        os.kill(bench.starter.launched[0].pid, signal.SIGKILL)
        for _ in range(500):
            if bench.events.count("engine.failed") == 3:
                break
            await asyncio.sleep(0.02)
        assert bench.events.count("engine.restarting") == 3
        await bench.until(EngineState.FAILED)
        assert bench.starter.living() == []
        await bench.operator.stop()
        assert desire.desired(bench.paths.desired) is None
    finally:
        await bench.operator.close()


async def test_a_phase_begins_with_its_state(bench: Bench) -> None:
    await bench.operator.start("a")
    serving_since = bench.operator.status.phase_since_s
    seen: list[EngineStatus] = []
    bench.operator.follow(seen.append)
    await bench.operator.stop()
    stopping = next(status for status in seen if status.state is EngineState.STOPPING)
    assert stopping.phase_since_s is not None
    assert serving_since is not None
    assert stopping.phase_since_s > serving_since
