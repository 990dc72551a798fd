"""An engine found again by its record: what proves it, and what outlives whom."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from a40console.engines.process import EngineProcess, ProcessState
from a40console.engines.run_record import UNSEEN_EXIT
from a40console.engines.tree import ProcessId, ProcFs
from tests.engines.trees import Start, gone, until


async def test_a_stale_pid_is_never_signalled(tmp_path: Path, bystander: ProcessId) -> None:
    record = {
        "keeper_pid": bystander.pid,
        "keeper_start_ticks": bystander.start_ticks - 2,
        "pid": bystander.pid,
        "session_id": bystander.pid,
        "start_ticks": bystander.start_ticks - 1,
        "boot_id": ProcFs().boot_id(),
        "started_at": "2026-11-29T10:55:12.000Z",
        "started_monotonic_s": 1.0,
    }
    (tmp_path / "engine.json").write_text(json.dumps(record))
    assert EngineProcess.adopt(tmp_path) is None
    engine = EngineProcess.recorded(tmp_path)
    assert engine is not None
    assert engine.members() == []
    assert engine.state() is ProcessState.ENDED
    await engine.stop(term_timeout_s=0.2, kill_timeout_s=0.2)
    assert not gone(bystander)


async def test_a_record_from_before_a_reboot_proves_nothing(
    tmp_path: Path, bystander: ProcessId
) -> None:
    record = {
        "keeper_pid": 1,
        "keeper_start_ticks": 1,
        "pid": bystander.pid,
        "session_id": bystander.pid,
        "start_ticks": bystander.start_ticks,
        "boot_id": "another",
        "started_at": "2026-11-29T10:55:12.000Z",
        "started_monotonic_s": 1.0,
    }
    (tmp_path / "engine.json").write_text(json.dumps(record))
    assert EngineProcess.adopt(tmp_path) is None
    engine = EngineProcess.recorded(tmp_path)
    assert engine is not None
    await engine.stop(term_timeout_s=0.2)
    assert engine.exit() == UNSEEN_EXIT


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "null", '{"pid": "x"}'])
def test_a_damaged_record_is_no_engine(tmp_path: Path, text: str) -> None:
    assert EngineProcess.recorded(tmp_path) is None
    (tmp_path / "engine.json").write_text(text)
    (tmp_path / "exit.json").write_text(text)
    assert EngineProcess.adopt(tmp_path) is None


async def test_the_engine_goes_on_without_its_keeper(start: Start) -> None:
    engine = await start("while :; do echo tick; sleep 0.1; done")
    os.kill(engine.identity.keeper.pid, signal.SIGKILL)
    await until(lambda: not engine.keeper_alive(), "the keeper's end")
    log = engine.run_dir / "output.log"
    size = log.stat().st_size
    await until(lambda: log.stat().st_size > size, "more output")
    adopted = EngineProcess.adopt(engine.run_dir)
    assert adopted is not None
    assert adopted.state() is ProcessState.RUNNING
    assert (await adopted.stop()).left == ()
    end = adopted.exit()
    assert end is not None
    assert (end.code, end.signal, end.ended_at) == (None, None, None)
    assert "keeper was gone" in end.cause


async def test_survivors_stay_ours_when_the_keeper_dies_before_the_leader(
    start: Start, bystander: ProcessId
) -> None:
    engine = await start("sleep 301 & (setsid sleep 302 &); exec sleep 303", ready=3)
    for pid in (engine.identity.keeper.pid, engine.pid):
        os.kill(pid, signal.SIGKILL)
    await until(lambda: not engine.leader_alive(), "the leader's end")
    assert engine.state() is ProcessState.ORPHANED
    assert len(engine.members()) == 2
    # Nothing on record proves them to one who did not see them before.
    assert EngineProcess.adopt(engine.run_dir) is None
    assert (await engine.clean()).left == ()


async def test_recorded_survivors_are_adopted_without_a_keeper(start: Start) -> None:
    engine = await start("sleep 301 & (setsid sleep 302 &); exec sleep 303", ready=3)
    os.kill(engine.pid, signal.SIGKILL)
    await until(lambda: engine.exit(), "the record")
    os.kill(engine.identity.keeper.pid, signal.SIGKILL)
    await until(lambda: not engine.keeper_alive(), "the keeper's end")
    adopted = EngineProcess.adopt(engine.run_dir)
    assert adopted is not None
    assert adopted.state() is ProcessState.ORPHANED
    assert len(adopted.members()) == 2
    assert (await adopted.clean()).left == ()


SERVICE = """
import asyncio, os, signal, sys
from pathlib import Path
from a40console.engines.launching import Launch
from a40console.engines.process import EngineProcess

async def serve():
    script = "while :; do echo tick; sleep 0.1; done"
    launch = Launch(("sh", "-c", script), dict(os.environ), Path("/"))
    await EngineProcess.start(Path(sys.argv[1]), launch)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(serve())
"""


async def test_the_engine_outlives_the_service_and_its_end_is_still_recorded(
    tmp_path: Path,
) -> None:
    run_dir = tmp_path / "run"
    service = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", SERVICE, str(run_dir)], check=False
    )
    assert service.returncode == -signal.SIGKILL
    engine = EngineProcess.adopt(run_dir)
    assert engine is not None
    size = (run_dir / "output.log").stat().st_size
    await until(lambda: (run_dir / "output.log").stat().st_size > size, "more output")
    os.kill(engine.pid, signal.SIGSEGV)
    end = await until(engine.exit, "the record")
    assert end.signal == "SIGSEGV"
    assert (await engine.stop()).left == ()
    # One who comes after the end finds the cause as well.
    assert EngineProcess.adopt(run_dir) is None
    later = EngineProcess.recorded(run_dir)
    assert later is not None
    assert later.exit() == engine.exit()
