"""The gateway with a scripted SIMULATED engine inside a network of loopback alone."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client import claude_code as client
from tests.client.network import LoopbackOnly, loopback_only
from tests.faults.console import FaultConsole

PROFILE = """
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = {window}
max_running = 8
prefix_caching = true
start_timeout_s = 30
usd_per_hour = 0.44
arguments = ["--start-s", "0.3", "--speed", "{speed}", "--script", "{script}"{more}]

[speculation]
enabled = false
tokens = 5
"""
Rules = list[dict[str, Any]]


@pytest.fixture(scope="module")
def network() -> Iterator[LoopbackOnly]:
    client.program()
    with loopback_only() as made:
        yield made


@pytest.fixture(scope="module")
def service(network: LoopbackOnly) -> Iterator[FaultConsole]:
    home = Path(tempfile.mkdtemp(prefix="a40cl-", dir="/tmp"))
    made = FaultConsole(home, prefix=network.prefix)
    made.configure("[gateway]\nport = 0\n[service]\ninterval_s = 0.3\n")
    try:
        made.serve("--no-engine")
        yield made
    finally:
        made.close()


@pytest.fixture
def scripted(service: FaultConsole) -> Iterator[Callable[..., FaultConsole]]:
    """Starts an engine that says what the rules say."""

    def start(
        rules: Rules, *, window: int = 131_072, speed: float = 20, fault: str = ""
    ) -> FaultConsole:
        script = service.home / "script.json"
        script.write_text(json.dumps(rules))
        more = f', "--fault", "{fault}"' if fault else ""
        profile = PROFILE.format(window=window, speed=speed, script=script, more=more)
        service.profile("sim", profile)
        done = service.run("engine", "start", "sim")
        assert done.returncode == 0, done.stderr
        return service

    yield start
    service.run("engine", "stop", "--yes")


@pytest.fixture
def claude(
    network: LoopbackOnly, scripted: Callable[..., FaultConsole]
) -> Iterator[Callable[..., tuple[FaultConsole, client.ClaudeCode]]]:
    """A scripted engine and a client that is set up as the console says."""
    users = []

    def start(rules: Rules, **engine: Any) -> tuple[FaultConsole, client.ClaudeCode]:
        console = scripted(rules, **engine)
        variables = {
            name: value
            for name, value in console.client_environment().items()
            if not name.startswith("OPENAI_")
        }
        user = client.claude_code(network.prefix, variables)
        users.append(user)
        return console, user.__enter__()

    yield start
    for user in users:
        user.__exit__(None, None, None)
