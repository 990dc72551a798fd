"""Real processes for the tests of the command line: the console, and a service it talks to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from a40console.commands.running import lock_holder
from a40console.paths import Paths, locate
from tests.commands.console_process import CONSOLE, STUB, Run, Service, wait_for_door

ROOT = Path(__file__).parent.parent.parent
"""On the path of the stub, which is built from the tests' snapshots."""


@pytest.fixture
def paths() -> Iterator[Paths]:
    """A home of its own, short enough for sockets; whatever runs in it is ended afterwards."""
    home = Path(tempfile.mkdtemp(prefix="a4c-", dir="/tmp"))
    found = locate({"A40CONSOLE_HOME": str(home)})
    yield found
    if (holder := lock_holder(found)) is not None:
        os.kill(holder, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(found.runtime, ignore_errors=True)


@pytest.fixture
def environment(paths: Paths) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("A40CONSOLE_") and name not in ("NO_COLOR", "COLORTERM")
    }
    return {**kept, "A40CONSOLE_HOME": str(paths.home), "PYTHONPATH": str(ROOT)}


@pytest.fixture
def console(environment: dict[str, str]) -> Run:
    """The console as a process, without a terminal."""

    def run(
        *arguments: str | bytes,
        command: tuple[str, ...] = CONSOLE,
        stdin: bytes = b"",
        environment: dict[str, str] | None = environment,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*command, *arguments],
            input=stdin,
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture
def service(paths: Paths, environment: dict[str, str]) -> Iterator[Service]:
    """Starts the stub with a script, and waits until it answers."""
    started: list[subprocess.Popen[bytes]] = []

    def start(**script: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            STUB, env={**environment, "STUB_SCRIPT": json.dumps(script)}, stderr=subprocess.DEVNULL
        )
        started.append(process)
        wait_for_door(paths)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
