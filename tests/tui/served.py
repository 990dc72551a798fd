"""The fake service on its socket in a private home, for consoles that are run as processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from a40console.paths import Paths, locate

CONSOLE = (sys.executable, "-m", "tests.tui.open_console")


@dataclass(frozen=True)
class Served:
    """A home with a service in it."""

    home: Path
    environment: dict[str, str]
    paths: Paths

    def configure(self, settings: str) -> None:
        """Write the operator's settings."""
        self.paths.config.mkdir(parents=True, exist_ok=True)
        self.paths.config_file.write_text(settings)


@contextmanager
def served(scenario: str, **environment: str) -> Iterator[Served]:
    """The service for a while; `scenario` as the socket service takes it."""
    home = Path(tempfile.mkdtemp(prefix="a40s", dir="/tmp"))
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TMUX", "STY")}
    variables = {**inherited, "A40CONSOLE_HOME": str(home), **environment}
    made = Served(home, variables, locate(variables))
    socket = str(made.paths.control_socket)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.tui.socket_service", socket, scenario],
        cwd=Path(__file__).parents[2],
        env=variables,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not made.paths.control_socket.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    try:
        yield made
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(made.paths.runtime, ignore_errors=True)
