"""Reaching the service, and starting one in the background where none runs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

from a40console import files
from a40console.commands.output import note
from a40console.engines.process import EngineProcess
from a40console.errors import ConsoleError, Exit, NoServiceError, TimedOutError
from a40console.model.engine import EngineState
from a40console.paths import Paths, make_private
from a40console.service.client import ServiceClient, client_of

SERVE_COMMAND: tuple[str, ...] = (sys.executable, "-P", "-m", "a40console", "serve")
"""`-P`: started in the root folder, nothing there may stand in for a module."""

START_TIMEOUT_S = 20.0
ADOPTION_TIMEOUT_S = 5.0
POLL_S = 0.1
OUTPUT_LIMIT_BYTES = 1024 * 1024
LAST_LINES = 12


async def connect(paths: Paths) -> ServiceClient:
    """A client of the running service; close it.

    Raises:
        NoServiceError: If none answers.
        RefusedError: If it speaks another protocol.
    """
    client = client_of(paths)
    try:
        await client.hello()
    except NoServiceError as error:
        await client.close()
        if paths.remote or paths.control_socket.exists() or not is_locked(paths):
            raise
        holder = files.holder_told(paths.service_lock)
        raise NoServiceError(
            f"A service runs, {holder}, but its control socket is gone",
            evidence=f"{paths.control_socket} was removed",
            remedy="Restart it: a40console stop, then this command again. "
            "The engine keeps running.",
        ) from error
    except BaseException:
        await client.close()
        raise
    return client


async def ensure_service(
    paths: Paths, *, quiet: bool = False, engine: bool = True
) -> ServiceClient:
    """A client of the service, which is started in the background where none answers.

    Args:
        paths: Where the service lives.
        quiet: Without the note on stderr that a service was started.
        engine: Whether a service that is started begins with the engine of the settings, or that
            ran last; one that runs is taken up either way.

    Raises:
        ConsoleError: If it ends at once, with its exit code and last lines.
        TimedOutError: If it does not answer within 20 s.
    """
    try:
        return await connect(paths)
    except NoServiceError:
        if paths.remote or paths.forbidden:  # for a link that is down a service here is no answer
            raise
    make_private(paths.state)
    start = ServiceStart(paths, engine=engine)
    client = await start.wait()
    if start.is_ours and not quiet:
        note(f"Started the service, process {start.pid}; end it with: a40console stop")
    return client


async def reach_engine(paths: Paths, *, quiet: bool = False) -> ServiceClient:
    """A client of the service; one is started where an engine lives that has none.

    Raises:
        ConsoleError: As `connect` and `ensure_service`.
    """
    if not engine_lives(paths):
        return await connect(paths)
    client = await ensure_service(paths, quiet=quiet)
    deadline = time.monotonic() + ADOPTION_TIMEOUT_S
    # A service that has just come up takes over what runs in its first moments.
    while time.monotonic() < deadline:
        if (await client.snapshot()).engine.state is not EngineState.ABSENT:
            break
        await asyncio.sleep(POLL_S)
    return client


def engine_lives(paths: Paths) -> bool:
    """Whether anything lives of an engine that was started here, by its records and `/proc`."""
    try:
        runs = [path for path in paths.engine_runs.iterdir() if path.is_dir()]
    except OSError:
        return False
    return any(EngineProcess.adopt(run) is not None for run in runs)


class ServiceStart:
    """One attempt to start the service, detached from our terminal and our folder.

    Two attempts may race: the service's own lock lets one win, and both get the winner.
    """

    def __init__(
        self, paths: Paths, *, engine: bool = True, timeout_s: float = START_TIMEOUT_S
    ) -> None:
        self._paths = paths
        self._words = SERVE_COMMAND if engine else (*SERVE_COMMAND, "--no-engine")
        self._timeout_s = timeout_s
        self._output = paths.state / "service.out"
        self._output_start = 0
        self._child = self._spawn()

    @property
    def pid(self) -> int:
        """The process that was started."""
        return self._child.pid

    @property
    def is_ours(self) -> bool:
        """Whether the service that answers is the one started here."""
        return lock_holder(self._paths) == self.pid

    def _spawn(self) -> subprocess.Popen[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        output = os.open(self._output, flags, 0o600)
        try:
            if os.fstat(output).st_size > OUTPUT_LIMIT_BYTES:
                os.ftruncate(output, 0)
            self._output_start = os.fstat(output).st_size
            return subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
                env=_environment(self._paths),
            )
        finally:
            os.close(output)

    async def wait(self) -> ServiceClient:
        """A client, as soon as a service answers, whoever started it.

        Raises:
            ConsoleError: If ours ended and no other holds the lock.
            TimedOutError: If none answers in time.
        """
        deadline = time.monotonic() + self._timeout_s
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left_s):
                    return await connect(self._paths)
            except (NoServiceError, TimeoutError):
                self._check_child()
            await asyncio.sleep(POLL_S)
        raise TimedOutError(
            f"The service does not answer after {self._timeout_s:.0f} s",
            evidence=self._last_lines(),
            remedy=f"Read {self._paths.service_log}, then end it with: a40console stop",
        )

    def _check_child(self) -> None:
        code = self._child.poll()
        if code is None or (code == Exit.REFUSED and is_locked(self._paths)):
            return
        known = {int(item) for item in Exit} - {Exit.DONE}
        raise ConsoleError(
            f"The service ended as it started, with exit code {code}",
            evidence=self._last_lines(),
            remedy="See it in the foreground with: a40console serve",
            exit_code=Exit(code) if code in known else Exit.NO_SERVICE,
        )

    def _last_lines(self) -> str:
        with self._output.open("rb") as file:
            file.seek(self._output_start)
            lines = file.read(OUTPUT_LIMIT_BYTES).decode(errors="replace").split("\n")
        kept = [line for line in lines if line.strip()][-LAST_LINES:]
        return "\n".join(kept) or f"it wrote nothing to {self._output}"


def _environment(paths: Paths) -> dict[str, str]:
    """Ours, with a home that holds in another working folder."""
    environment = dict(os.environ)
    if environment.get("A40CONSOLE_HOME"):
        environment["A40CONSOLE_HOME"] = str(paths.home)
    return environment


def is_locked(paths: Paths) -> bool:
    """Whether a service holds the lock of this home, whether or not it answers."""
    return files.is_locked(paths.service_lock)


def lock_holder(paths: Paths) -> int | None:
    """The pid that the holder of the lock wrote into it; None where it is free or says nothing."""
    return files.lock_holder(paths.service_lock) or None
