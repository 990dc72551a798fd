"""Starts a keeper for an engine, and says what went wrong when that fails."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from a40console.engines.run_record import ENGINE_FILE, EXIT_FILE, KEEPER_LOG, EngineExit
from a40console.engines.signalling import send_signal
from a40console.engines.tree import ProcessId, ProcFs, with_descendants
from a40console.errors import ConsoleError, Exit

KEEPER_SCRIPT = Path(__file__).with_name("keeper.py")
KEEPER_ENV = ("PATH", "LD_LIBRARY_PATH")
"""All that the keeper's interpreter may need; the rest of our environment stays with us."""

FULL_DISK_BYTES = 64 * 1024

KILLED_WITHIN_S = 1.0
"""On a busy machine a process that was killed is still there for a moment."""


class EngineStartError(ConsoleError):
    """The engine's process could not be started."""

    exit_code = Exit.NOT_SERVING


@dataclass(frozen=True, slots=True)
class Launch:
    """What the keeper starts."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """The whole environment of the engine; may hold secrets, so it is shown nowhere."""

    cwd: Path
    output_limit_bytes: int = 64 * 1024 * 1024
    """Above it `output.log` begins anew and its last half is kept in `output.log.1`."""


def prepare_run_dir(run_dir: Path) -> None:
    """Makes the folder, ours alone; raises EngineStartError when it cannot or has been used."""
    try:
        run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EngineStartError(
            "The folder for the engine's run cannot be made.",
            evidence=str(error),
            remedy="Free space on the disk or move the console's home.",
        ) from error
    for name in (ENGINE_FILE, EXIT_FILE):
        if (run_dir / name).exists():
            raise EngineStartError(
                "This run directory belongs to an earlier start.",
                evidence=str(run_dir / name),
                remedy="Start the engine in a fresh one.",
            )


def start_keeper(run_dir: Path, launch: Launch, python: str, timeout_s: float) -> ProcessId | None:
    """Starts the keeper, which detaches itself; None when it has ended already.

    The launch goes through a pipe: its secrets reach no command line and no disk.
    """
    document = {
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "cwd": str(launch.cwd),
        "output_limit_bytes": launch.output_limit_bytes,
    }
    try:
        starter = subprocess.run(
            [python, "-I", "-S", str(KEEPER_SCRIPT), str(run_dir.absolute())],
            input=json.dumps(document).encode(),
            capture_output=True,
            cwd="/",
            env={name: os.environ[name] for name in KEEPER_ENV if name in os.environ},
            timeout=timeout_s,
            check=True,
        )
        pid = int(starter.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
        raise EngineStartError(
            "The engine's keeper could not be started.",
            evidence=said.rpartition("\n")[2] or str(error),
            remedy=f"Check that {python} runs; reinstall the console if not.",
        ) from error
    found = ProcFs().read_process(pid)
    return None if found is None else found.id


def end_keeper(keeper: ProcessId | None) -> None:
    """Kills a keeper that told us nothing, and whatever it may have started."""
    proc = ProcFs()
    if keeper is None or not proc.is_alive(keeper):
        return
    send_signal(proc, keeper, signal.SIGSTOP)  # it starts nothing more while we look
    table = proc.read_table()
    below = with_descendants(table, {keeper.pid}) - {keeper.pid}
    killed = [*(table[pid].id for pid in below), keeper]
    for process in killed:
        send_signal(proc, process, signal.SIGKILL)
    deadline_s = time.monotonic() + KILLED_WITHIN_S
    while any(map(proc.is_alive, killed)) and time.monotonic() < deadline_s:
        time.sleep(0.01)


def keeper_silent(run_dir: Path) -> EngineStartError:
    """The error for a keeper that recorded neither a start nor a failure."""
    disk = os.statvfs(run_dir)
    if disk.f_bavail * disk.f_frsize < FULL_DISK_BYTES:
        return EngineStartError(
            "The engine was not started: the disk is full.",
            evidence=f"no space left for {run_dir}",
            remedy="Free space on that disk, then start again.",
        )
    try:
        said = (run_dir / KEEPER_LOG).read_text(errors="replace").strip().rpartition("\n")[2]
    except OSError:
        said = ""
    return EngineStartError(
        "The engine was not started: its keeper recorded nothing.",
        evidence=said or f"neither {ENGINE_FILE} nor {EXIT_FILE} in {run_dir}",
        remedy="Start again; the machine may be too busy.",
    )


def never_began(launch: Launch, end: EngineExit) -> EngineStartError:
    """The error for a program that could not be executed, with the usual reason behind it."""
    remedy = "Check the profile's engine and working folder."
    program = shutil.which(launch.argv[0], path=launch.env.get("PATH")) if launch.argv else None
    if end.error_number == errno.ENOENT and launch.cwd.is_dir() and program is not None:
        # The kernel reports a script whose interpreter is missing as missing itself.
        remedy = f"{program} is there, but the interpreter its first line names is not: reinstall."
    elif end.error_number == errno.ENOENT and launch.cwd.is_dir():
        remedy = "Install the engine, or set the profile's path to it."
    elif end.error_number == errno.EACCES:
        remedy = "Make the file executable for this user (chmod +x)."
    return EngineStartError(
        f"The engine was not started: {end.error}.",
        evidence=f"program {launch.argv[0] if launch.argv else '(none)'}, folder {launch.cwd}",
        remedy=remedy,
    )
