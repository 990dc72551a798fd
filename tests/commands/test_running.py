"""Starting the service in the background, stopping it, and waiting for the engine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.commands import stop
from a40console.commands.running import OUTPUT_LIMIT_BYTES, is_locked, lock_holder
from a40console.engines.keeper import boot_id, start_ticks
from a40console.errors import Exit
from a40console.paths import Paths, make_private
from a40console.profiles.loader import load_profiles
from tests.commands.console_process import CONSOLE, CONSOLE_WITH_STUB, Run, Service, with_stub
from tests.operations.living import living_engine


def test_a_service_is_started_detached(
    console: Run, environment: dict[str, str], paths: Paths
) -> None:
    run = console("engine", "start", command=CONSOLE_WITH_STUB, environment=with_stub(environment))
    assert run.returncode == 0, run.stderr
    pid = lock_holder(paths)
    assert pid is not None
    assert f"Started the service, process {pid}; end it with: a40console stop" in run.stderr
    assert os.getsid(pid) == pid, "a session of its own: it survives our terminal"
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
    assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
    assert Path(f"/proc/{pid}/fd/1").readlink() == paths.state / "service.out"
    again = console("engine", "restart", command=CONSOLE_WITH_STUB)
    assert again.returncode == 0
    assert "Started the service" not in again.stderr


def test_two_starters_get_one_service(environment: dict[str, str], paths: Paths) -> None:
    starters = [
        subprocess.Popen(
            [*CONSOLE_WITH_STUB, "engine", "start", "--no-wait", "--json"],
            env=with_stub(environment, start_delay_s=1.5),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for starter in starters:
        stdout, stderr = starter.communicate(timeout=60)
        assert (starter.returncode, stderr) == (0, b"")
        assert json.loads(stdout)["command"] == "engine.start"
    log = (paths.state / "service.out").read_text()
    assert log.count("A service already runs") == 1


@pytest.mark.parametrize("code", [1, 2, 5, 9])
def test_a_service_that_ends_at_once_says_why(
    code: int, console: Run, environment: dict[str, str]
) -> None:
    began = time.monotonic()
    run = console(
        "ask",
        "x",
        command=CONSOLE_WITH_STUB,
        environment=with_stub(environment, exit_code=code),
    )
    assert time.monotonic() - began < 10, "it is not waited for once it is gone"
    assert run.returncode == (code if code < 8 else Exit.NO_SERVICE)
    message, evidence, remedy = run.stderr.splitlines()
    assert message == f"The service ended as it started, with exit code {code}"
    assert evidence == "The stub's last words"
    assert "a40console serve" in remedy


def test_its_output_does_not_grow_for_ever(
    console: Run, environment: dict[str, str], paths: Paths
) -> None:
    make_private(paths.state)
    output = paths.state / "service.out"
    output.write_bytes(b"old\n" * (OUTPUT_LIMIT_BYTES // 4 + 1))
    run = console(
        "ask", "x", command=CONSOLE_WITH_STUB, environment=with_stub(environment, exit_code=1)
    )
    assert "old" not in run.stderr
    assert output.stat().st_size < 1000


def test_a_home_named_relatively_is_the_same_for_the_service(
    environment: dict[str, str], paths: Paths
) -> None:
    run = subprocess.run(
        [*CONSOLE_WITH_STUB, "engine", "start"],
        env={**with_stub(environment), "A40CONSOLE_HOME": paths.home.name},
        cwd=paths.home.parent,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert is_locked(paths)


def test_stop_waits_until_another_service_could_start(
    console: Run, service: Service, paths: Paths
) -> None:
    process = service(state="serving")
    run = console("stop", "--json")
    assert run.returncode == 0, run.stderr
    assert not is_locked(paths)
    assert process.wait(timeout=10) == 0
    document = json.loads(run.stdout)
    assert document.keys() == {"command", "id", "result", "events"}
    assert document["command"] == "service.stop"
    assert console("stop").returncode == Exit.NO_SERVICE


def test_stop_times_out(console: Run, service: Service) -> None:
    service(state="serving", ignore_stop=True)
    run = console("stop", "--timeout", "1")
    assert run.returncode == Exit.TIMED_OUT
    assert run.stderr.startswith("The service has not stopped in time\n")


def test_stop_passes_a_refusal_on(console: Run, service: Service) -> None:
    service(state="serving", refuse_with=5)
    run = console("stop", "--engine")
    assert run.returncode == Exit.REFUSED
    assert run.stderr.splitlines()[0] == "service.stop is refused"


def test_stop_ends_a_service_of_another_version(
    console: Run, service: Service, paths: Paths
) -> None:
    service(state="serving", protocol=99)
    assert console("stop").returncode == 0
    assert not is_locked(paths)


def test_stop_ends_a_service_whose_socket_is_gone(
    console: Run, service: Service, paths: Paths
) -> None:
    process = service(state="serving")
    paths.control_socket.unlink()
    refused = console("stop", "--engine")
    assert refused.returncode == Exit.REFUSED
    assert f"process {process.pid} holds" in refused.stderr
    run = console("stop")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("The service has stopped; no engine runs"), "it was looked for"
    assert process.wait(timeout=10) in (0, -signal.SIGTERM)


async def test_what_is_left_is_looked_for_and_else_not_known(paths: Paths) -> None:
    assert stop._left(paths) == "no engine runs"
    profile = load_profiles(paths.profiles).find("sim-a40-qwen3-coder-30b")
    async with living_engine(paths, profile):
        assert stop._left(paths) == "the engine keeps running"
        far = replace(paths, remote="ubuntu@pod")
        assert stop._left(far) == "whether an engine runs is not known"
    assert stop._left(paths) == "no engine runs"
    shutil.rmtree(paths.engine_runs)
    paths.engine_runs.touch()
    assert stop._left(paths) == "whether an engine runs is not known"


def test_stop_signals_nobody_who_does_not_hold_the_lock(
    console: Run, service: Service, paths: Paths
) -> None:
    service(state="serving")
    paths.control_socket.unlink()
    bystander = subprocess.Popen(["sleep", "60"])
    paths.service_lock.write_text(f"{bystander.pid}\n")
    try:
        assert console("stop").returncode == Exit.REFUSED
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_wait_before_the_service_is_up(
    environment: dict[str, str], service: Service, paths: Paths
) -> None:
    waiting = subprocess.Popen(
        [*CONSOLE, "wait", "ready", "--timeout", "30", "--json"],
        env=environment,
        stdout=subprocess.PIPE,
    )
    time.sleep(0.7)
    assert waiting.poll() is None
    service(state="serving")
    stdout, _ = waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    document = json.loads(stdout)
    assert (document["reached"], document["engine"]) == ("ready", "serving")
    assert 0.5 < document["waited_s"] < 20


@pytest.mark.parametrize(
    ("goal", "script", "code", "text"),
    [
        ("ready", {"state": "serving"}, 0, "ready after"),
        ("ready", {"state": "starting"}, 7, "The engine is starting: load 42 s, ≈35 s left"),
        ("ready", {"state": "failed"}, 4, "out of GPU memory"),
        ("ready", {"state": "absent"}, 7, "The engine is absent"),
        ("idle", {"state": "serving"}, 0, "idle after"),
        ("idle", {"state": "serving", "running": 2}, 7, "2 running"),
        ("idle", {"state": "failed"}, 4, "The engine failed"),
        ("stopped", {"state": "serving"}, 7, "The engine is serving"),
        ("stopped", {"state": "stopped"}, 0, "stopped after"),
        ("stopped", {"state": "failed"}, 0, "stopped after"),
        ("stopped", {"state": "orphaned"}, 7, "orphaned"),
    ],
)
def test_wait(
    goal: str,
    script: dict[str, object],
    code: int,
    text: str,
    console: Run,
    service: Service,
) -> None:
    service(**script)
    run = console("wait", goal, "--timeout", "1.5")
    assert run.returncode == code, run.stderr
    assert text in run.stderr


def test_wait_without_a_service_tells_what_it_can(console: Run) -> None:
    assert console("wait", "stopped", "--timeout", "1").returncode == 0
    run = console("wait", "ready", "--timeout", "0.5")
    assert run.returncode == Exit.TIMED_OUT
    assert "No service answers" in run.stderr
    assert console("wait", "gone").returncode == Exit.USAGE


@pytest.fixture
def left_engine(paths: Paths) -> Iterator[subprocess.Popen[bytes]]:
    """An engine whose service is gone: a process with the record that a keeper leaves."""
    process = subprocess.Popen(["sleep", "300"], start_new_session=True)
    run = paths.engine_runs / "2026-11-29T10-55-12-tiny"
    run.mkdir(parents=True)
    identity = {"pid": process.pid, "start_ticks": start_ticks(process.pid)}
    record = {
        **identity,
        **{f"keeper_{name}": value for name, value in identity.items()},
        "boot_id": boot_id(),
        "started_at": "2026-11-29T10:55:12Z",
        "started_monotonic_s": 1.0,
    }
    (run / "engine.json").write_text(json.dumps(record))
    yield process
    process.kill()
    process.wait()


def test_an_engine_without_a_service_is_not_called_stopped(
    console: Run, left_engine: subprocess.Popen[bytes]
) -> None:
    run = console("wait", "stopped", "--timeout", "0.5")
    assert run.returncode == Exit.TIMED_OUT
    assert "an engine still runs" in run.stderr
    left_engine.kill()
    left_engine.wait()
    assert console("wait", "stopped", "--timeout", "5").returncode == 0


@pytest.mark.parametrize("options", [(), ("--engine",)], ids=["stop", "stop --engine"])
@pytest.mark.parametrize("ran", [False, True], ids=["never ran", "ran"])
def test_where_nothing_runs_stop_starts_nothing_and_says_so(
    options: tuple[str, ...],
    ran: bool,
    console: Run,
    environment: dict[str, str],
    paths: Paths,
    left_engine: subprocess.Popen[bytes],
) -> None:
    left_engine.kill()
    left_engine.wait()
    if not ran:
        shutil.rmtree(paths.engine_runs)
    script = with_stub(environment, state="serving")
    run = console("stop", *options, command=CONSOLE_WITH_STUB, environment=script)
    assert run.returncode == Exit.NO_SERVICE
    assert run.stderr.startswith("Nothing to stop: neither a service nor an engine runs\n")
    assert "serve" not in run.stderr
    assert not is_locked(paths)
    assert not paths.control_socket.exists()


def test_stop_without_a_service_names_the_engine_that_it_leaves(
    console: Run, paths: Paths, left_engine: subprocess.Popen[bytes]
) -> None:
    run = console("stop")
    assert run.returncode == Exit.NO_SERVICE
    assert run.stderr.startswith("No service runs, but the engine does\n")
    assert run.stderr.endswith("Stop it with: a40console stop --engine\n")
    assert left_engine.poll() is None
    assert not is_locked(paths)


@pytest.mark.parametrize("verb", [("engine", "stop"), ("stop", "--engine")], ids=" ".join)
def test_a_service_comes_back_to_stop_an_engine_that_has_none(
    verb: tuple[str, ...],
    console: Run,
    environment: dict[str, str],
    left_engine: subprocess.Popen[bytes],
) -> None:
    script = with_stub(environment, state="serving")
    run = console(*verb, command=CONSOLE_WITH_STUB, environment=script)
    assert run.returncode == 0, run.stderr
    assert run.stderr.startswith("Started the service")
