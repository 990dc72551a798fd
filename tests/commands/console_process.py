"""Running the console as a process, and waiting for the service's door."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from a40console.paths import Paths

HERE = Path(__file__).parent
CONSOLE = (sys.executable, "-P", "-m", "a40console")
CONSOLE_WITH_STUB = (sys.executable, str(HERE / "console_with_stub.py"))
STUB = (sys.executable, str(HERE / "service_stub.py"), "serve")


Service = Callable[..., subprocess.Popen[bytes]]
"""Starts the stub with the given script."""


class Run(Protocol):
    """Runs the console."""

    def __call__(
        self,
        *arguments: str | bytes,
        command: tuple[str, ...] = CONSOLE,
        stdin: bytes = b"",
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]: ...


def wait_for_door(paths: Paths) -> None:
    """Wait until something accepts connections on the control socket."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(paths.control_socket))
            return
        time.sleep(0.05)
    raise AssertionError("the stub did not start")


def with_stub(environment: dict[str, str], **script: Any) -> dict[str, str]:
    """The environment in which the console starts the stub with this script."""
    return {**environment, "STUB_SCRIPT": json.dumps(script)}
