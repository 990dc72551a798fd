"""A console with two profiles of one name for clients, on the simulated engine."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.live.console import Console

PROFILE = """
kind = "sim"
served_name = "{served}"
model = "simulated/{model}"
max_model_len = 65536
max_running = 8
prefix_caching = true
tool_call_parser = "hermes"
start_timeout_s = 20
stall_after_s = 5
arguments = [{arguments}]
[speculation]
tokens = 5
{ladder}
"""
SETTINGS = """
[gateway]
port = 0
[service]
interval_s = 0.3
drain_s = 20
"""


class Switching(Console):
    """A console with two profiles of one name for clients."""

    def sim(
        self,
        name: str,
        *faults: str,
        model: str = "qwen3-coder-30b",
        start_s: float = 1.0,
        ladder: str = "",
        served: str = "coder",
        speed: float = 4,
    ) -> None:
        words = ["--start-s", str(start_s), "--speed", f"{speed:g}"]
        words += [word for fault in faults for word in ("--fault", fault)]
        arguments = ", ".join(json.dumps(word) for word in words)
        self.profile(
            name, PROFILE.format(model=model, arguments=arguments, ladder=ladder, served=served)
        )

    told = 0
    """Events before the present test."""

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        lines = self.paths.events.read_text().splitlines()[self.told :]
        return [event for event in map(json.loads, lines) if event["kind"].startswith(kind)]

    def serving(self) -> str:
        engine = self.status()["engine"]
        assert engine["state"] == "serving", engine
        name: str = engine["profile"]
        return name

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on while the test looks."""
        return subprocess.Popen(
            [sys.executable, "-m", "a40console", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def now(self) -> dict[str, Any]:
        """The snapshot of this moment: no command is as quick."""
        there = httpx.HTTPTransport(uds=str(self.paths.control_socket))
        with httpx.Client(transport=there, timeout=10) as client:
            snapshot: dict[str, Any] = client.get("http://service/v1/snapshot").json()
        return snapshot

    def until(self, holds: Any, timeout_s: float = 30) -> dict[str, Any]:
        deadline_s = time.monotonic() + timeout_s
        while not holds(snapshot := self.status()):
            assert time.monotonic() < deadline_s, json.dumps(snapshot["engine"])
            time.sleep(0.02)
        return snapshot


@contextmanager
def switching_console() -> Iterator[Switching]:
    """A service with `alpha` serving and `beta` beside it, ended afterwards."""
    home = Path(tempfile.mkdtemp(prefix="a40w-", dir="/tmp"))
    made = Switching(home)
    try:
        made.configure(SETTINGS)
        made.sim("alpha")
        made.sim("beta", model="kimi-linear-48b")
        made.serve("--profile", "alpha")
        made.succeed("wait", "ready", "--timeout", "60")
        yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)
