"""Engines that die, half die, or will not die: what the status says, and what may be done."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from a40console.engines.process import EngineProcess
from tests.faults.console import (
    FaultConsole,
    Snapshot,
    alive,
    fault_console,
    finding,
    kill,
    missing,
    process_name,
    source,
)
from tests.faults.control_groups import memory_group

pytestmark = pytest.mark.slow


def start(console: FaultConsole, **wishes: Any) -> Snapshot:
    """Bring the stand-in up in a service of its own."""
    console.control(**wishes)
    if console.service is None:
        console.serve("--no-engine")
    console.succeed("engine", "start", "fake")
    return console.status()


def tree(console: FaultConsole) -> dict[int, str]:
    """The engine's living processes by pid."""
    process = EngineProcess.recorded(console.run_folder())
    return {member.pid: member.name for member in process.members()} if process else {}


def core_of(console: FaultConsole) -> int:
    return next(pid for pid, name in tree(console).items() if name == "VLLM::EngineCor")


# --- 1 and 2: the server dies, its core lives on ---------------------------------------------


def test_a_core_that_outlived_its_server_is_named_and_blocks_a_start(
    console: FaultConsole, bystander: int
) -> None:
    serving = start(console)
    core = core_of(console)
    assert process_name(core) == "VLLM::EngineCor"
    kill(serving["engine"]["pid"])

    snapshot = console.until_state("orphaned")
    found = finding(snapshot, "engine-orphaned")
    assert found is not None
    assert f"VLLM::EngineCor (pid {core})" in found["evidence"]
    assert found["command"] == "engine.clean"
    assert snapshot["engine"]["exit"]["signal"] == "SIGKILL"
    assert "SIGKILL" in snapshot["engine"]["exit"]["cause"]
    assert "leader is gone" in missing(snapshot["engine"]["pid"])
    assert console.run("status", "--check").returncode == 4

    lost = console.until(lambda s: source(s, "vllm.metrics")["state"] == "failed")
    assert lost["throughput"]["age_s"] > 1, "the last figures show their age"

    for verb in (("start", "fake"), ("restart",), ("switch", "fake")):
        said = console.refused(5, "engine", *verb)
        assert f"(pid {core})" in said
        assert "a40console engine clean" in said
    assert alive(core), "refusing has ended nothing"

    # A service that comes back finds it as it was, and starts nothing beside it.
    console.end_service()
    console.serve()
    again = console.until_state("orphaned")
    assert str(core) in (finding(again, "engine-orphaned") or {})["evidence"]
    assert again["engine"]["exit"]["signal"] == "SIGKILL"

    assert "no process is left" in console.succeed("engine", "clean")
    assert not alive(core)
    assert console.status()["engine"]["state"] == "stopped"
    assert alive(bystander)
    console.succeed("engine", "start", "fake")
    assert console.status()["engine"]["state"] == "serving"


@pytest.mark.parametrize("verb", ["clean", "stop"])
def test_once_an_orphan_is_ended_nobody_is_held_for_it(idle: FaultConsole, verb: str) -> None:
    serving = start(idle)
    kill(serving["engine"]["pid"])
    held = idle.until_state("orphaned")
    assert "is started again" in held["requests"]["gate"]
    idle.succeed("engine", verb)
    assert idle.status()["requests"]["gate"] is None
    idle.succeed("engine", "start", "fake")
    assert idle.status()["requests"]["gate"] is None
    assert idle.ask()


def test_nothing_is_left_to_clean_where_an_engine_serves(idle: FaultConsole) -> None:
    start(idle)
    assert "Nothing of an engine is left over" in idle.refused(5, "engine", "clean")
    assert idle.status()["engine"]["state"] == "serving"


def test_an_orphan_that_ends_by_itself_frees_the_way(idle: FaultConsole) -> None:
    serving = start(idle)
    before = len(idle.events())
    core = core_of(idle)
    kill(serving["engine"]["pid"])
    idle.until_state("orphaned")
    kill(core)
    # The engine ended by itself: the policy starts it again.
    snapshot = idle.until_state("serving")
    assert snapshot["engine"]["restarts"] == 1
    kinds = idle.event_kinds()[before:]
    told = [kinds.index(f"engine.{kind}") for kind in ("orphaned", "ended", "restarting")]
    assert told == sorted(told)


def test_an_exit_code_that_stands_for_a_kill_is_told_as_one(idle: FaultConsole) -> None:
    start(idle)
    core = core_of(idle)
    idle.control(exit=137)
    snapshot = idle.until_state("orphaned")
    idle.control()
    assert snapshot["engine"]["exit"]["code"] == 137
    assert "SIGKILL" in snapshot["engine"]["exit"]["cause"]
    assert alive(core)
    idle.succeed("engine", "clean")
    assert not alive(core)


def test_a_server_that_the_kernel_killed_for_memory_is_told_as_that() -> None:
    with memory_group(400 * 1024 * 1024) as prefix, fault_console(prefix) as console:
        start(console)
        core = core_of(console)
        console.control(oom=True)
        snapshot = console.until_state("orphaned", 60)
        console.control()
        assert snapshot["engine"]["exit"]["signal"] == "SIGKILL"
        assert "memory" in snapshot["engine"]["exit"]["cause"]
        assert str(core) in (finding(snapshot, "engine-orphaned") or {})["evidence"]
        console.succeed("engine", "clean")
        assert not alive(core)


# --- 3, 6 and 8: those that do not heed a signal ---------------------------------------------


def stop_in_the_first_seconds(console: FaultConsole) -> None:
    console.serve("--no-engine")
    console.control(start="waits", deaf=["core"], workers=1)
    console.succeed("engine", "start", "fake", "--no-wait")
    console.wait_for(lambda: len(tree(console)) == 3, 20)
    assert console.status()["engine"]["state"] == "starting"
    members = tree(console)
    assert "Stopped after SIGKILL" in console.succeed("engine", "stop")
    assert not [pid for pid in members if alive(pid)]
    assert console.status()["engine"]["state"] == "stopped"


def start_that_takes_too_long(console: FaultConsole) -> None:
    console.serve("--no-engine")
    console.fake_profile("hasty", "served_name = 'hasty'")
    profile = console.paths.profiles / "hasty.toml"
    profile.write_text(profile.read_text().replace("timeout_s = 30", "timeout_s = 4"))
    console.control(start="waits", deaf=["core"])
    console.succeed("engine", "start", "hasty", "--no-wait")
    console.wait_for(lambda: len(tree(console)) == 2, 20)
    members = tree(console)
    snapshot = console.until_state("failed", 60)
    assert not [pid for pid in members if alive(pid)]
    missing(snapshot["engine"]["pid"])
    assert "does not serve after 4 s" in snapshot["engine"]["exit"]["cause"]
    console.control()
    console.succeed("engine", "start", "fake")


def deaf_and_three_deep(console: FaultConsole) -> None:
    """They ignore SIGTERM, left the session, and hold the engine's output open."""
    start(console, deaf=["server", "core", "worker"], workers=3)
    members = tree(console)
    workers = ["VLLM::Worker_TP"] * 3
    assert sorted(members.values()) == ["VLLM::EngineCor", *workers, "vllm"]
    assert len({os.getsid(pid) for pid in members}) == 4
    began_s = time.monotonic()
    assert "Stopped after SIGKILL" in console.succeed("engine", "stop")
    assert time.monotonic() - began_s < 30
    assert not [pid for pid in members if alive(pid)]
    assert console.status()["engine"]["state"] == "stopped"
    console.control()
    console.succeed("engine", "start", "fake")


def test_what_ignores_a_stop_is_ended_for_good() -> None:
    """Three engines at once: each is given ten seconds to end by itself."""
    deeds = (stop_in_the_first_seconds, start_that_takes_too_long, deaf_and_three_deep)
    with ExitStack() as stack, ThreadPoolExecutor(len(deeds)) as pool:
        done = [pool.submit(deed, stack.enter_context(fault_console())) for deed in deeds]
        for future in done:
            future.result()


def test_an_interrupted_service_leaves_a_start_to_the_next_one(console: FaultConsole) -> None:
    """Ctrl-C on the service in the foreground, while the engine warms up."""
    console.control(ready_s=4)
    console.serve("--profile", "fake")
    console.until_state("starting")
    console.wait_for(lambda: len(tree(console)) == 2, 10)
    members = tree(console)
    console.end_service(signal.SIGINT)
    assert tree(console) == members
    console.serve()
    snapshot = console.until_state("serving")
    assert snapshot["engine"]["pid"] in members, "the same one, taken over"


def test_a_command_does_not_wait_for_what_it_started(console: FaultConsole) -> None:
    """Service and engine hold no pipe of the command that started them."""
    console.control(workers=1)
    began_s = time.monotonic()
    done = console.run("engine", "start", "fake", timeout_s=60)
    assert done.returncode == 0
    assert time.monotonic() - began_s < 30
    assert len(tree(console)) == 3
    console.succeed("stop", "--engine")
    assert not tree(console)
    said = console.refused(3, "status")
    assert "a40console serve" in said


# --- 7: an engine that breaks off ------------------------------------------------------------


def test_an_engine_that_dies_is_started_again_and_the_next_request_works(
    idle: FaultConsole,
) -> None:
    start(idle)
    for pid in sorted(tree(idle), reverse=True):
        kill(pid)
    snapshot = idle.until(lambda s: s["engine"]["restarts"] == 1 and _serves(s), 30)
    assert snapshot["engine"]["exit"]["signal"] == "SIGKILL"
    assert "wave" in idle.ask()


def test_a_crash_during_a_request_is_told_and_the_next_one_is_served(idle: FaultConsole) -> None:
    """The client's stream ends with an error, not in silence."""
    start(idle, rate=5.0)
    variables = idle.client_environment()
    told, lines = len(idle.events()), []
    with httpx.stream(
        "POST",
        f"{variables['OPENAI_BASE_URL']}/chat/completions",
        json={
            "model": "fake",
            "messages": [{"role": "user", "content": "hello"}],
            "max_tokens": 200,
            "stream": True,
        },
        headers={"authorization": f"Bearer {variables['OPENAI_API_KEY']}"},
        timeout=30,
    ) as answer:
        for line in answer.iter_lines():
            lines.append(line)
            if len(lines) == 4:
                idle.control(abort=True)
    assert any("wave" in line for line in lines)
    assert any('"error"' in line for line in lines), lines[-3:]
    idle.until(lambda s: isinstance(s["engine"]["exit"], dict) and "signal" in s["engine"]["exit"])
    idle.control()
    snapshot = idle.until(lambda s: s["engine"]["restarts"] == 1 and _serves(s), 30)
    assert snapshot["engine"]["exit"]["signal"] == "SIGABRT"
    assert "SIGABRT" in snapshot["engine"]["exit"]["cause"]
    kinds = idle.event_kinds()[told:]
    assert kinds.count("engine.ended") == 1
    assert kinds.count("engine.restarting") == 1
    assert "wave" in idle.ask()


def _serves(snapshot: Snapshot) -> bool:
    return bool(snapshot["engine"]["state"] == "serving")


# --- 9: pids that belong to somebody else ----------------------------------------------------


def test_a_recorded_pid_that_is_a_strangers_now_is_never_signalled(
    console: FaultConsole, bystander: int
) -> None:
    start(console)
    console.succeed("stop", "--engine")
    record = console.run_folder() / "engine.json"
    identity = json.loads(record.read_text())
    record.write_text(json.dumps(identity | {"pid": bystander, "keeper_pid": bystander}))
    (console.run_folder() / "exit.json").unlink()

    assert console.succeed("wait", "stopped", "--timeout", "5") == ""
    console.serve("--no-engine")
    assert console.status()["engine"]["state"] == "absent"
    assert "No engine runs" in console.refused(5, "engine", "stop")
    console.succeed("engine", "start", "fake")
    assert console.status()["engine"]["pid"] != bystander


def test_a_record_of_an_earlier_boot_proves_nothing(console: FaultConsole, bystander: int) -> None:
    start(console)
    console.succeed("stop", "--engine")
    ticks = int(Path(f"/proc/{bystander}/stat").read_text().rpartition(")")[2].split()[19])
    record = console.run_folder() / "engine.json"
    identity = json.loads(record.read_text())
    identity |= {"pid": bystander, "start_ticks": ticks, "boot_id": "another"}
    record.write_text(json.dumps(identity))
    (console.run_folder() / "exit.json").unlink()
    console.serve("--no-engine")
    assert console.status()["engine"]["state"] == "absent"


def test_a_stale_lock_file_ends_nobody(console: FaultConsole, bystander: int) -> None:
    console.paths.state.mkdir(parents=True, exist_ok=True)
    console.paths.service_lock.write_text(f"{bystander}\n")
    assert "neither a service nor an engine runs" in console.refused(3, "stop")
    console.serve("--no-engine")
    assert console.paths.service_lock.read_text() != f"{bystander}\n"
