"""Claude Code as its user runs it: a throw-away home, the lines of `a40console env`, no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "A40CONSOLE_TEST_CLAUDE"
TIMEOUT_S = 90
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",
    "TERM": "xterm-256color",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}


def program() -> str:
    """The client's program; skips the test where there is none."""
    path = os.environ.get(VARIABLE, "")
    if not path:
        pytest.skip(f"{VARIABLE} names no Claude Code (CONTRIBUTING.md says how to get one)")
    if not os.access(path, os.X_OK):
        pytest.skip(f"{VARIABLE}={path} cannot be run")
    return path


@dataclass
class Result:
    """What one call printed."""

    code: int
    output: dict[str, Any]
    stderr: str

    @property
    def text(self) -> str:
        return str(self.output.get("result", ""))


@dataclass
class ClaudeCode:
    """One user of the client, with a home and a folder to work in."""

    program: str
    prefix: Sequence[str]
    variables: dict[str, str]
    home: Path
    session: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def folder(self) -> Path:
        return self.home / "work"

    @property
    def environment(self) -> dict[str, str]:
        return {**QUIET, **self.variables, "HOME": str(self.home)}

    def command(self, *words: str) -> list[str]:
        setting = [f"{name}={value}" for name, value in self.environment.items()]
        return [*self.prefix, "env", "-i", *setting, self.program, *words]

    def ask(self, prompt: str, *words: str, timeout_s: float = TIMEOUT_S) -> Result:
        """One prompt, without a terminal; the session goes on from call to call."""
        known = self.home / "asked"
        same = ["--resume", self.session] if known.exists() else ["--session-id", self.session]
        done = subprocess.run(
            self.command("-p", prompt, "--output-format", "json", *same, *words),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        known.touch()
        try:
            output = json.loads(done.stdout)
        except ValueError:
            output = {"result": done.stdout}
        return Result(done.returncode, output, done.stderr)

    def start_again(self) -> None:
        """The next prompt begins another session."""
        self.session = str(uuid.uuid4())
        (self.home / "asked").unlink(missing_ok=True)

    def trust(self) -> None:
        """What a user has answered before: the client opens without asking."""
        settings = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "numStartups": 5,
            "projects": {str(self.folder): {"hasTrustDialogAccepted": True, "allowedTools": []}},
        }
        (self.home / ".claude.json").write_text(json.dumps(settings))


@contextmanager
def claude_code(prefix: Sequence[str], variables: dict[str, str]) -> Iterator[ClaudeCode]:
    """A user whose home is thrown away."""
    home = Path(tempfile.mkdtemp(prefix="a40cc-", dir="/tmp"))
    made = ClaudeCode(program(), prefix, variables, home)
    made.folder.mkdir()
    made.trust()
    try:
        yield made
    finally:
        shutil.rmtree(home, ignore_errors=True)


def until(condition: Any, timeout_s: float = 15, what: str = "") -> Any:
    """The first truthy answer."""
    deadline_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline_s, what or "it did not happen in time"
        time.sleep(0.1)
    return found
