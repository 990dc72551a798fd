"""The parent of the service: takes the sockets and the lock, then becomes its supervisor.

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
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from a40console.config import Settings
from a40console.engines.ports import describe, who_holds
from a40console.errors import RefusedError
from a40console.files import holder_told
from a40console.model.codec import encode
from a40console.operations.gateway_address import gateway_address
from a40console.paths import Paths, make_private
from a40console.service.demo_owner import Demo, owner
from a40console.service.supervisor import ENDING, command_line

BACKLOG = 512

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
    paths: Paths,
    settings: Settings,
    *,
    profile: str | None = None,
    engine: bool = True,
    demo_ending: Sequence[str],
) -> NoReturn:
    """Serve until told to stop, as another program in this process.

    Args:
        paths: Where everything lives.
        settings: The operator's settings.
        profile: The profile to start; None takes up what ran before.
        engine: Whether an engine is started at all.
        demo_ending: The command that ends what is left where this is a demo.

    Raises:
        RefusedError: If another service runs, or an address or a folder cannot be had.
    """
    for folder in (paths.state, paths.engine_runs, paths.data):
        make_private(folder)
    make_private(paths.runtime, link=False)
    lock_fd = _lock(paths.service_lock)
    gateway = _bind_gateway(settings)  # first: where it is refused, no control socket is left
    doors = Doors(_bind_control(paths.control_socket), gateway, lock_fd)
    # The worker reads no settings itself: a file broken since must not keep it from coming back.
    # Nor does it ask whose demo this is: the folder that says so may be gone by then.
    whose = owner(paths.home)
    demo = None if whose is None else Demo(whose, tuple(demo_ending))
    orders = json.dumps(
        {
            "fds": doors.fds,
            "profile": profile,
            "engine": engine,
            "settings": encode(settings),
            "demo": encode(demo),
        }
    )
    _become_supervisor(orders, doors, paths)


def _become_supervisor(orders: str, doors: Doors, paths: Paths) -> NoReturn:
    """Replace this process, which has imported the whole command line, by one of a third its size.

    Its number stays, and so do the lock and the sockets.
    """
    for fd in doors.fds:
        os.set_inheritable(fd, True)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk under them must not keep the service from starting
            stream.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    files = str(paths.service_log), str(paths.control_socket)
    os.execv(sys.executable, command_line("supervisor", orders, *files))  # noqa: S606


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
        os.close(fd)
        raise RefusedError(
            "A service already runs for this home",
            evidence=f"{holder_told(path)} holds {path}",
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
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        path.unlink(missing_ok=True)
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
    family, address = gateway_address(host, port)
    door: socket.socket | None = None
    try:
        door = socket.socket(family, socket.SOCK_STREAM)
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
