"""The service's parent: a worker that dies comes back, a stop is a stop, one service a home."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from a40console.config import GatewaySettings, Settings
from a40console.errors import RefusedError
from a40console.files import is_locked
from a40console.service import parent
from a40console.service.supervisor import RESTART_DELAYS_S, Process, Supervisor
from tests.live.console import Console, console


def script(text: str, *arguments: str) -> Process:
    return Process([sys.executable, "-c", text, *arguments])


@pytest.fixture(autouse=True)
def _signals() -> object:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_a_worker_that_dies_is_replaced_and_told_so() -> None:
    told: list[int] = []

    def spawn(failures: int) -> Process:
        told.append(failures)
        deadly = "import os; os.kill(os.getpid(), 9)"
        return script(deadly if len(told) < 3 else "pass")

    notes: list[str] = []
    Supervisor(spawn, notes.append).run()
    assert told == [0, 1, 2]
    assert notes[0] == "the service's worker ended with -9; again in 0.1 s"


def test_one_that_ends_again_and_again_is_started_ever_more_seldom() -> None:
    assert RESTART_DELAYS_S[0] <= 0.1, "a client hardly notices the first"
    assert list(RESTART_DELAYS_S) == sorted(RESTART_DELAYS_S)
    assert 30 <= RESTART_DELAYS_S[-1] <= 60
    notes: list[str] = []

    def spawn(failures: int) -> Process:
        return script("raise SystemExit(3)" if failures < 5 else "pass")

    Supervisor(spawn, notes.append, delays_s=(0.0, 0.1, 0.2)).run()
    told = [note.removeprefix("the service's worker ended with 3; again in ") for note in notes]
    assert told == ["0.0 s", "0.1 s", "0.2 s", "0.2 s", "0.2 s"]


def test_a_stop_does_not_wait_for_the_next_start() -> None:
    def spawn(failures: int) -> Process:
        assert failures == 0, "none is started after the stop"
        return script("raise SystemExit(3)")

    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    began_s = time.monotonic()
    Supervisor(spawn, delays_s=(60.0,)).run()
    assert time.monotonic() - began_s < 10


def test_a_signal_ends_the_worker_and_us() -> None:
    workers: list[Process] = []

    def spawn(failures: int) -> Process:
        workers.append(script("import time; time.sleep(60)"))
        return workers[-1]

    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    began = time.monotonic()
    Supervisor(spawn).run()
    assert time.monotonic() - began < 10
    assert [worker.wait() for worker in workers] == [-signal.SIGTERM]


def test_a_worker_that_does_not_end_is_killed(tmp_path: Path) -> None:
    workers: list[Process] = []
    deaf = (
        "import signal, sys, time; signal.signal(15, signal.SIG_IGN);"
        "open(sys.argv[1], 'w'); time.sleep(60)"
    )
    is_deaf = tmp_path / "deaf"

    def spawn(failures: int) -> Process:
        workers.append(script(deaf, str(is_deaf)))
        while not is_deaf.exists():
            time.sleep(0.01)
        return workers[-1]

    notes: list[str] = []
    for delay_s in (0.5, 0.8):  # a second signal does not put the end off
        threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGTERM)).start()
    began_s = time.monotonic()
    Supervisor(spawn, notes.append, kill_after_s=1.0).run()
    assert 1.4 < time.monotonic() - began_s < 10
    assert [worker.wait() for worker in workers] == [-signal.SIGKILL]
    assert "killed" in notes[0]


def test_a_second_service_is_refused_and_names_the_first(tmp_path: Path) -> None:
    lock = tmp_path / "service.lock"
    fd = parent._lock(lock)
    with pytest.raises(RefusedError) as refused:
        parent._lock(lock)
    assert str(os.getpid()) in refused.value.evidence
    os.close(fd)
    os.close(parent._lock(lock))


def test_a_stale_control_socket_is_replaced_and_ours_is_private() -> None:
    path = Path(f"/tmp/a40-{os.getpid()}.sock")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()
    door = parent._bind_control(path)
    try:
        assert path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    finally:
        door.close()
        path.unlink()


def test_a_port_that_is_taken_is_refused_with_what_to_do() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(RefusedError) as refused:
            parent._bind_gateway(Settings(gateway=GatewaySettings(port=port)))
    assert f"127.0.0.1:{port}" in refused.value.message
    assert "--port" in refused.value.remedy


def test_the_worker_has_a_session_of_its_own_and_an_interrupt_still_ends_all() -> None:
    """Busy clients in the service's session must not starve the gateway, nor a terminal end it."""
    with console() as made:
        made.configure("[gateway]\nport = 0\n")
        made.serve()
        assert made.service is not None
        worker = made.status()["service"]["pid"]
        assert os.getsid(worker) == worker != made.service.pid
        made.service.send_signal(signal.SIGINT)  # as Ctrl-C does: to the foreground alone
        assert made.service.wait(20) == 0
        assert not psutil.pid_exists(worker)


def test_a_service_that_ends_leaves_no_socket_and_said_everything_once() -> None:
    with console() as made:
        made.serve()
        assert made.paths.control_socket.exists()
        made.succeed("stop")
        assert not made.paths.control_socket.exists()
        assert not made.paths.runtime.exists()
        log = made.paths.service_log.read_text()
        said = [line.partition(" ")[2] for line in log.splitlines() if "uvicorn" in line]
        assert len(said) == len(set(said)), said


def test_a_service_that_is_refused_leaves_no_socket() -> None:
    with console() as made, socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        refused = made.run("serve", "--port", str(holder.getsockname()[1]))
        assert refused.returncode == 5
        assert not made.paths.control_socket.exists()


def test_a_worker_whose_supervisor_is_gone_says_so_and_is_named() -> None:
    with console() as made:
        made.serve()
        assert made.service is not None
        worker = made.status()["service"]["pid"]
        assert "service-unsupervised" not in codes(made)
        made.service.kill()
        made.service.wait()
        made.wait_for(lambda: "service-unsupervised" in codes(made), 10)
        again = made.run("serve")
        assert again.returncode == 5
        named = f"process {worker} (unsupervised: process {made.service.pid} is gone) holds"
        assert named in again.stderr
        made.succeed("stop")
        assert not is_locked(made.paths.service_lock)
        assert not made.paths.runtime.exists(), "the worker tidies up where nobody else does"


def test_a_worker_that_cannot_go_on_says_why_in_the_log_alone() -> None:
    with console() as made:
        words = [sys.executable, "-m", "a40console.service.worker", "{}"]
        made.paths.state.mkdir(parents=True)
        ended = subprocess.run(
            words, env=made.environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert ended.returncode == 1
        assert ended.stdout + ended.stderr == ""
        log = made.paths.service_log.read_text()
        assert "CRITICAL" in log
        assert "KeyError: 'fds'" in log


def codes(made: Console) -> list[str]:
    return [found["code"] for found in made.status()["findings"]]
