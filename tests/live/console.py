"""A console of its own for a test: a private home, the real command line, a real service."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import jsonschema
import psutil

from a40console.model.schema import json_schema
from a40console.model.snapshot import Snapshot
from a40console.paths import Paths, locate

C = TypeVar("C", bound="Console")

SCHEMA = jsonschema.Draft202012Validator(json_schema(Snapshot))


class Console:
    """Runs `a40console` commands against one private home."""

    def __init__(self, home: Path, **variables: str) -> None:
        self.home = home
        kept = {k: v for k, v in os.environ.items() if not k.startswith("A40CONSOLE_")}
        self.environment = {**kept, "A40CONSOLE_HOME": str(home), "NO_COLOR": "1", **variables}
        self.service: subprocess.Popen[bytes] | None = None

    @property
    def paths(self) -> Paths:
        return locate({"A40CONSOLE_HOME": str(self.home)})

    def configure(self, text: str) -> None:
        self.paths.config_file.parent.mkdir(parents=True, exist_ok=True)
        self.paths.config_file.write_text(text)

    def profile(self, name: str, text: str) -> None:
        self.paths.profiles.mkdir(parents=True, exist_ok=True)
        (self.paths.profiles / f"{name}.toml").write_text(text)

    def run(self, *words: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "a40console", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def succeed(self, *words: str, timeout_s: float = 120) -> str:
        done = self.run(*words, timeout_s=timeout_s)
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def serve(self, *words: str) -> None:
        """Start the service in the foreground of a process of ours, and wait until it answers."""
        self.service = subprocess.Popen(
            [sys.executable, "-m", "a40console", "serve", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )
        self.wait_for(lambda: self.run("status", "--json").returncode == 0, 20)

    def status(self) -> dict[str, Any]:
        """A snapshot, checked against the contract."""
        snapshot: dict[str, Any] = json.loads(self.succeed("status", "--json"))
        SCHEMA.validate(snapshot)
        return snapshot

    def client_environment(self) -> dict[str, str]:
        environment: dict[str, str] = json.loads(self.succeed("env", "--json"))
        return environment

    @property
    def gateway(self) -> str:
        return self.client_environment()["ANTHROPIC_BASE_URL"]

    def engine_socket(self) -> str:
        """The engine's own socket, for requests beside the gateway."""
        record: dict[str, Any] = json.loads((self.run_folder() / "run.json").read_text())
        path: str = record["socket_path"]
        return path

    def run_folder(self) -> Path:
        return max(self.paths.engine_runs.iterdir())

    @staticmethod
    def wait_for(condition: Callable[[], bool], timeout_s: float) -> float:
        """Seconds until the condition held."""
        began_s = time.monotonic()
        while not condition():
            assert time.monotonic() - began_s < timeout_s, "it did not happen in time"
            time.sleep(0.1)
        return time.monotonic() - began_s

    def close(self) -> None:
        """Stop service and engine; end what the test left, by pid."""
        try:
            self.run("stop", "--engine", timeout_s=60)
        finally:
            if self.service is not None:
                self.service.send_signal(signal.SIGTERM)
                self.service.wait(20)
            for process in processes_of(self.home):
                process.kill()
            shutil.rmtree(self.paths.runtime, ignore_errors=True)


def processes_of(home: Path) -> list[psutil.Process]:
    """Living processes that were started for a home: by their working folder or arguments."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if str(home) in words or process.cwd().startswith(str(home)):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def session_members(session_id: int) -> list[int]:
    """Living processes of a session; zombies count as gone."""
    members = []
    for process in psutil.process_iter():
        try:
            same = os.getsid(process.pid) == session_id
            if same and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return members


@contextmanager
def console(**variables: str) -> Iterator[Console]:
    """A console in a short private home, closed at the end."""
    with console_of(Console, **variables) as made:
        yield made


@contextmanager
def console_of(kind: type[C], **variables: str) -> Iterator[C]:
    """The same of a kind that a test has more of."""
    home = Path(tempfile.mkdtemp(prefix="a40t-", dir="/tmp"))
    made = kind(home, **variables)
    made.configure("[gateway]\nport = 0\n")
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)
