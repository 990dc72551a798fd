"""Engines as process trees: real processes, killed in the ways that operators reported."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
from pathlib import Path

import pytest

from a40console.engines.launching import EngineStartError, Launch
from a40console.engines.process import EngineProcess, ProcessState, StopReport
from a40console.engines.tree import ProcessId, ProcessInfo, ProcFs
from a40console.errors import RefusedError
from tests.engines.trees import DEADLINE_S, ENV, IGNORES_TERM, Start, gone, until


async def test_an_engine_starts_runs_and_stops(start: Start, bystander: ProcessId) -> None:
    engine = await start("echo ready; exec sleep 60")
    assert engine.state() is ProcessState.RUNNING
    assert engine.exit() is None
    assert engine.keeper_alive()
    assert stat.S_IMODE(engine.run_dir.stat().st_mode) == 0o700
    assert [p.pid for p in engine.members()] == [engine.pid] == [engine.identity.session_id]
    report = await engine.stop()
    assert report.left == ()
    assert not report.escalated
    assert "on SIGTERM" in report.describe()
    assert engine.state() is ProcessState.ENDED
    assert not engine.keeper_alive()
    end = engine.exit()
    assert end is not None
    assert (end.signal, end.code, end.last_lines) == ("SIGTERM", None, ("ready",))
    assert end.cause.startswith("ended by SIGTERM")
    assert (await engine.stop()).left == ()  # once more does no harm


async def test_a_killed_leader_leaves_an_orphan_that_is_named_and_cleaned(
    start: Start, tmp_path: Path, bystander: ProcessId
) -> None:
    core = tmp_path / "VLLM::EngineCore"
    shutil.copy(shutil.which("sleep") or "", core)
    engine = await start(f"'{core}' 300 & wait", ready=2)
    os.kill(engine.pid, signal.SIGKILL)
    await until(lambda: engine.exit(), "the record")
    assert engine.state() is ProcessState.ORPHANED
    end = engine.exit()
    assert end is not None
    assert end.signal == "SIGKILL"
    [survivor], [member] = end.survivors, engine.members()
    assert survivor.id == member.id
    assert member.name == "VLLM::EngineCor"
    report = await engine.clean()
    assert report.left == ()
    assert gone(member.id)
    assert engine.state() is ProcessState.ENDED
    last = engine.exit()
    assert last is not None
    assert (last.signal, last.survivors) == ("SIGKILL", ())


async def test_nothing_of_a_running_engine_is_cleaned(start: Start) -> None:
    engine = await start("exec sleep 60")
    with pytest.raises(RefusedError, match="running"):
        await engine.clean()
    assert engine.leader_alive()


async def test_a_child_that_ignores_term_in_its_first_seconds_is_killed(start: Start) -> None:
    engine = await start(f'sh -c "{IGNORES_TERM}" & exec sleep 60', ready=3)
    report = await engine.stop(term_timeout_s=0.5)
    assert report.escalated
    assert report.left == ()
    assert not report.unkillable
    assert "after SIGKILL" in report.describe()
    assert engine.state() is ProcessState.ENDED


async def test_a_trapped_term_and_a_grandchild_on_the_output_hold_nobody_up(start: Start) -> None:
    engine = await start(f"trap '' TERM; (setsid sh -c \"{IGNORES_TERM}\" &); {IGNORES_TERM}")
    await until(lambda: len({p.session_id for p in engine.members()}) == 2, "two sessions")
    began_s = time.monotonic()
    report = await engine.stop(term_timeout_s=0.3)
    assert time.monotonic() - began_s < DEADLINE_S / 2
    assert report.left == ()
    assert engine.exit() is not None


async def test_an_abort_is_seen_and_named(start: Start) -> None:
    engine = await start("sleep 0.3; echo 'CUDA error'; kill -ABRT $$")
    end = await until(engine.exit, "the end")
    assert (end.signal, end.code, end.cause) == ("SIGABRT", None, "ended by SIGABRT")
    assert end.last_lines == ("CUDA error",)
    assert engine.state() is ProcessState.ENDED


async def test_an_exit_code_is_seen(start: Start) -> None:
    engine = await start("exit 3")
    end = await until(engine.exit, "the end")
    assert end.cause == "exited with code 3"


async def test_the_whole_tree_goes_with_it(start: Start, bystander: ProcessId) -> None:
    deep = 'sh -c \'sh -c "sh -c \\"sleep 301 & wait\\" & wait" & wait\' &'
    daemon = "(setsid sh -c 'sleep 302 & wait' &);"
    other_group = "python3 -c 'import os, time; os.setpgid(0, 0); time.sleep(303)' &"
    engine = await start(f"{deep} {daemon} {other_group} wait", ready=8)
    members = engine.members()
    assert len({p.session_id for p in members}) == 2
    report = await engine.stop()
    assert report.left == ()
    assert not report.escalated
    assert all(gone(p.id) for p in members)


async def test_a_process_stopped_by_job_control_is_ended_as_well(start: Start) -> None:
    engine = await start("trap 'exit 0' TERM; while :; do sleep 0.2; done", ready=2)
    os.kill(engine.pid, signal.SIGSTOP)
    report = await engine.stop(term_timeout_s=0.3)
    assert (report.left, report.escalated) == ((), True)


class StuckProc(ProcFs):
    """A `/proc` in which one process never goes, as one stuck in a driver."""

    def __init__(self, stuck: ProcessInfo) -> None:
        super().__init__()
        self.stuck = stuck

    def read_process(self, pid: int) -> ProcessInfo | None:
        return self.stuck if pid == self.stuck.pid else super().read_process(pid)

    def read_table(self) -> dict[int, ProcessInfo]:
        return super().read_table() | {self.stuck.pid: self.stuck}


async def test_what_cannot_be_killed_is_reported_and_waited_for_no_longer(
    start: Start, tmp_path: Path
) -> None:
    started = await start("exec sleep 60")
    [leader] = started.members()
    engine = EngineProcess(started.run_dir, started.identity, StuckProc(leader))
    began_s = time.monotonic()
    ticks = 0

    async def screen() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    drawing = asyncio.create_task(screen())
    report = await engine.stop(
        term_timeout_s=0.4, kill_timeout_s=0.4, socket_path=tmp_path / "absent.sock"
    )
    drawing.cancel()
    assert time.monotonic() - began_s < 5
    assert ticks > 20, "the screen stood still meanwhile"
    assert [p.pid for p in report.left] == [leader.pid]
    assert report.unkillable
    assert report.escalated
    assert "unkillable" in report.describe()
    assert "Restart the pod" in report.describe()


async def test_what_we_may_not_signal_is_told_from_the_unkillable(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = await start("exec sleep 60")

    def refuse(*_: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(signal, "pidfd_send_signal", refuse)
        report = await engine.stop(term_timeout_s=0.1, kill_timeout_s=0.1)
    assert [p.pid for p in report.left] == [engine.pid]
    assert not report.unkillable
    assert "may not signal" in report.describe()


async def test_a_run_directory_serves_once(start: Start) -> None:
    engine = await start("exec sleep 60")
    with pytest.raises(EngineStartError, match="earlier start"):
        await EngineProcess.start(engine.run_dir, Launch(("true",), ENV, Path("/")))
    assert engine.leader_alive()


async def test_a_start_cancelled_half_way_leaves_nothing(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    starting = asyncio.create_task(
        EngineProcess.start(run_dir, Launch(("sleep", "300"), ENV, Path("/")))
    )
    await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    engine = EngineProcess.recorded(run_dir)
    assert engine is not None
    assert engine.state() is ProcessState.ENDED


async def test_the_environment_is_the_engines_alone(tmp_path: Path) -> None:
    launch = Launch(("sleep", "300"), ENV | {"TOKEN": "k9q4"}, Path("/"))
    assert "k9q4" not in repr(launch)
    engine = await EngineProcess.start(tmp_path / "run", launch)
    try:
        keeper = Path(f"/proc/{engine.identity.keeper.pid}")
        shown = (keeper / "cmdline").read_bytes() + (keeper / "environ").read_bytes()
        assert b"k9q4" not in shown
        assert b"TOKEN=k9q4" in Path(f"/proc/{engine.pid}/environ").read_bytes()
        assert all(b"k9q4" not in file.read_bytes() for file in engine.run_dir.iterdir())
    finally:
        await engine.stop()


LISTENER = (
    "import socket, sys, time; s = socket.socket(socket.AF_UNIX);"
    "s.bind(sys.argv[1]); s.listen(); time.sleep(300)"
)


async def test_the_socket_file_goes_with_the_engine_but_not_with_a_listener(start: Start) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder) / "engine.sock"
        engine = await start(f'exec {sys.executable} -c "{LISTENER}" {path}')
        await until(path.exists, "the socket")
        report = await engine.stop(socket_path=path)
        assert not path.exists()
        assert not report.socket_left
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            other.listen()
            report = await engine.stop(socket_path=path)
            assert report.socket_left
            assert path.exists()
            assert "still listens" in report.describe()


def test_what_is_left_is_said_in_words() -> None:
    core = ProcessInfo(ProcessId(901, 1), "VLLM::EngineCor", "D", 1, 900, 3)
    report = StopReport((core,), (), escalated=True, elapsed_s=20.04, socket_left=True)
    assert report.describe() == (
        "Still there after 20.0 s: VLLM::EngineCor (pid 901, state D). SIGKILL has no effect, "
        "the kernel holds them: unkillable. Restart the pod."
    )
