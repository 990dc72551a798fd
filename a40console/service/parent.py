"""The small parent of the service: holds the sockets and the lock, restarts its worker.

It binds what clients connect to, so that a worker that dies leaves the door standing: connections
made meanwhile wait in the backlog instead of being refused.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from a40console.config import Settings
from a40console.engines.ports import describe, who_holds
from a40console.errors import RefusedError
from a40console.log import log_to_file
from a40console.paths import Paths, make_private

BACKLOG = 512
RESTART_DELAYS_S = (0.1, 0.5, 1.0, 2.0, 5.0)
HEALTHY_AFTER_S = 60.0
STOPPED = 0
"""The worker's exit code when it was asked to stop."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Doors:
    """What the service is reached by, bound and listening."""

    control: socket.socket
    gateway: socket.socket
    lock_fd: int

    @property
    def fds(self) -> tuple[int, int, int]:
        """The descriptors that a worker inherits."""
        return self.control.fileno(), self.gateway.fileno(), self.lock_fd


def run(
    paths: Paths, settings: Settings, *, profile: str | None = None, engine: bool = True
) -> int:
    """Serve until told to stop; the exit code.

    Args:
        paths: Where everything lives.
        settings: The operator's settings.
        profile: The profile to start; None takes up what ran before.
        engine: Whether an engine is started at all.

    Raises:
        RefusedError: If another service runs, or an address or a folder cannot be had.
    """
    for folder in (paths.state, paths.runtime, paths.engine_runs, paths.data):
        make_private(folder)
    lock_fd = _lock(paths.service_lock)
    doors = Doors(_bind_control(paths.control_socket), _bind_gateway(settings), lock_fd)
    log_to_file(paths.service_log)
    orders = json.dumps({"fds": doors.fds, "profile": profile, "engine": engine})
    return Parent(lambda first: _spawn(doors, orders, first=first)).run()


class Parent:
    """Keeps one worker running until it ends by its own will or we are told to stop."""

    def __init__(
        self,
        spawn: Callable[[bool], subprocess.Popen[bytes]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spawn = spawn
        self._clock = clock
        self._worker: subprocess.Popen[bytes] | None = None
        self._stopping = False

    def run(self) -> int:
        """Start workers until one ends with 0 or a signal asked us to stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        failures = 0
        while True:
            started = self._clock()
            self._worker = self._spawn(failures == 0)
            if self._stopping:
                self._worker.terminate()
            code = self._worker.wait()
            if code == STOPPED or self._stopping:
                return STOPPED
            if self._clock() - started > HEALTHY_AFTER_S:
                failures = 0
            delay_s = RESTART_DELAYS_S[min(failures, len(RESTART_DELAYS_S) - 1)]
            failures += 1
            log.error("the service's worker ended with %s; again in %.1f s", code, delay_s)
            time.sleep(delay_s)
            if self._stopping:
                return STOPPED

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True
        if self._worker is not None and self._worker.poll() is None:
            self._worker.terminate()


def _spawn(doors: Doors, orders: str, *, first: bool) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-m", "a40console.service.worker", orders]
    if not first:
        arguments.append("--again")
    return subprocess.Popen(arguments, pass_fds=doors.fds, stdin=subprocess.DEVNULL)


def _lock(path: Path) -> int:
    """Take the lock that only one service can hold; its file names the holder."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RefusedError(
            f"{path} cannot be opened",
            evidence=str(error),
            remedy="Make the folder writable, or set A40CONSOLE_HOME to one that is.",
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(fd, 32, 0).decode(errors="replace").strip()
        os.close(fd)
        raise RefusedError(
            "A service already runs for this home",
            evidence=f"process {holder or 'unknown'} holds {path}",
            remedy="Use it (a40console status), or stop it first: a40console stop.",
        ) from error
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        log.warning("the holder of %s could not be written", path)
    return fd


def _bind_control(path: Path) -> socket.socket:
    """Bind the control socket 0600; the lock is ours, so a file that is there is stale."""
    path.unlink(missing_ok=True)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        door.bind(str(path))
    except OSError as error:
        door.close()
        raise RefusedError(
            f"The control socket {path} cannot be made",
            evidence=str(error),
            remedy="Free space or permission there, or set TMPDIR to a short writable folder.",
        ) from error
    finally:
        os.umask(mask)
    door.listen(BACKLOG)
    return door


def _bind_gateway(settings: Settings) -> socket.socket:
    host, port = settings.gateway.host, settings.gateway.port
    door: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        door = socket.socket(family, kind, protocol)
        # Without it the port would be refused for a minute after a stop (TIME_WAIT).
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        door.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        if door is not None:
            door.close()
        raise RefusedError(
            f"The gateway cannot listen on {host}:{port}",
            evidence=f"{error}; {describe(port, who_holds(port))}",
            remedy="Stop what holds the port, or choose another: "
            "a40console serve --port N, or [gateway] port in config.toml.",
        ) from error
    return door
