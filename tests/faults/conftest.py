"""Fixtures of the tests that make things go wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.faults.console import FaultConsole, alive, fault_console


@pytest.fixture
def console() -> Iterator[FaultConsole]:
    """A console with nothing running."""
    with fault_console() as made:
        yield made


@pytest.fixture(scope="module")
def serving() -> Iterator[FaultConsole]:
    """A console whose engine serves, shared by the tests of one file."""
    with fault_console() as made:
        made.serve("--profile", "fake")
        made.succeed("wait", "ready", "--timeout", "30")
        yield made


@pytest.fixture
def bystander() -> Iterator[int]:
    """A neighbour's process, which nothing may touch."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as neighbour:
        yield neighbour.pid
        assert alive(neighbour.pid), "a process that is not ours was ended"
        neighbour.kill()


@pytest.fixture(scope="module")
def idle() -> Iterator[FaultConsole]:
    """A service without an engine, shared by the tests that leave it so."""
    with fault_console() as made:
        made.serve("--no-engine")
        yield made


@pytest.fixture(autouse=True)
def _tidy(request: pytest.FixtureRequest) -> Iterator[None]:
    """The shared service is handed on without an engine."""
    yield
    if "idle" in request.fixturenames:
        console: FaultConsole = request.getfixturevalue("idle")
        console.control()
        state = console.status()["engine"]["state"]
        if state == "orphaned":
            console.succeed("engine", "clean")
        elif state in ("starting", "serving"):
            console.succeed("engine", "stop", "--yes")
