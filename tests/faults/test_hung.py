"""Rows 13 and 14: engines that live and do nothing; `/health` is one signal, tokens are another."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from a40console.engines.process import EngineProcess
from tests.faults.console import (
    FaultConsole,
    Snapshot,
    fault_console,
    finding,
    kill,
    number,
    source,
)

pytestmark = pytest.mark.slow

LOAD = {"running": 2, "waiting": 3}
HANG_DEADLINE_S = 60
"""A standstill counts as a hang after 30 s; the rest is for a slow machine."""


@pytest.fixture(scope="module")
def consoles() -> Iterator[dict[str, FaultConsole]]:
    """Engines that went still in three ways at about the same time: one wait does for all."""
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(fault_console())
            for name in ("frozen", "core killed", "server stopped", "idle")
        }
        for console in made.values():
            console.serve("--profile", "fake")
        for name, console in made.items():
            console.succeed("wait", "ready", "--timeout", "30")
            console.control(**({} if name == "idle" else LOAD))
        for name, console in made.items():
            console.until(waiting(0 if name == "idle" else 3))
        made["idle"].control(frozen=True)
        made["frozen"].control(**LOAD, frozen=True)
        core = EngineProcess.recorded(made["core killed"].run_folder())
        assert core is not None
        kill(next(p.pid for p in core.members() if p.name == "VLLM::EngineCor"))
        stopped = made["server stopped"].status()["engine"]["pid"]
        kill(stopped, signal.SIGSTOP)
        try:
            yield made
        finally:
            kill(stopped, signal.SIGCONT)


def waiting(count: int) -> Callable[[Snapshot], bool]:
    return lambda snapshot: number(snapshot["requests"]["waiting"]) == count


def hung(snapshot: Snapshot) -> bool:
    return bool(snapshot["engine"]["state"] == "hung")


def test_a_standstill_is_no_hang_at_once(consoles: dict[str, FaultConsole]) -> None:
    for console in consoles.values():
        assert finding(console.status(), "engine-hung") is None
        assert console.run("status", "--check").returncode == 0


@pytest.mark.parametrize("how", ["frozen", "core killed"])
def test_an_engine_without_tokens_is_hung_although_it_says_it_is_well(
    consoles: dict[str, FaultConsole], how: str
) -> None:
    """Row 13."""
    console = consoles[how]
    snapshot = console.until(hung, HANG_DEADLINE_S)
    found = finding(snapshot, "engine-hung")
    assert found is not None
    assert "hangs: no token for" in found["title"]
    for part in ("2 running", "3 waiting", "/health says 200"):
        assert part in found["evidence"]
    assert found["severity"] == "error"
    assert found["command"] == "engine.restart"
    assert source(snapshot, "vllm.health")["state"] == "ok"
    assert source(snapshot, "vllm.metrics")["state"] == "ok"
    assert console.run("status", "--check").returncode == 4
    assert "HUNG" in console.succeed("status", "--line")


def test_health_that_fails_later_is_told_beside_the_standstill(
    consoles: dict[str, FaultConsole],
) -> None:
    """Row 14."""
    console = consoles["frozen"]
    console.until(hung, HANG_DEADLINE_S)
    console.control(**LOAD, frozen=True, health=503)
    snapshot = console.until(lambda s: "503" in str(finding(s, "engine-hung")), 20)
    found = finding(snapshot, "engine-hung")
    assert found is not None
    assert "hangs: no token for" in found["title"]
    assert "/health says 503" in found["evidence"]
    assert "3 waiting" in found["evidence"]
    assert hung(snapshot)

    # Tokens flow again, and health still says no: that alone is no hang.
    console.control(**LOAD, health=503)
    snapshot = console.until(lambda s: not hung(s), 20)
    found = finding(snapshot, "engine-hung")
    assert found is not None
    assert found["title"] == "The engine says that it is not healthy"
    assert "/health says 503" in found["evidence"]
    assert snapshot["engine"]["state"] == "serving"

    console.control(**LOAD)
    console.until(lambda s: finding(s, "engine-hung") is None, 20)
    assert console.status()["engine"]["state"] == "serving"


def test_an_engine_that_answers_nothing_any_more_is_hung(
    consoles: dict[str, FaultConsole],
) -> None:
    """Its server is stopped: it accepts connections and answers none."""
    console = consoles["server stopped"]
    snapshot = console.until(hung, HANG_DEADLINE_S)
    found = finding(snapshot, "engine-hung")
    assert found is not None
    assert found["command"] == "engine.restart"
    assert "answer" in found["title"]
    assert console.run("status", "--check").returncode == 4
    assert "Requests are served" not in console.succeed("status")


def test_a_hung_engine_can_be_restarted(consoles: dict[str, FaultConsole]) -> None:
    console = consoles["core killed"]
    console.until(hung, HANG_DEADLINE_S)
    began_s = time.monotonic()
    console.succeed("engine", "restart", "--yes")
    assert time.monotonic() - began_s < 30
    assert console.status()["engine"]["state"] == "serving"
    assert "wave" in console.ask()


def test_an_idle_engine_is_never_hung(consoles: dict[str, FaultConsole]) -> None:
    """Nor is one at whose first request after a quiet time nothing has come out yet."""
    console = consoles["idle"]
    consoles["frozen"].until(lambda s: s["engine"]["phase_s"] > 35, HANG_DEADLINE_S)
    snapshot = console.status()
    assert snapshot["engine"]["phase_s"] > 35
    assert snapshot["engine"]["state"] == "serving"
    console.control(**LOAD, frozen=True)
    snapshot = console.until(waiting(3))
    assert snapshot["engine"]["state"] == "serving"
    assert finding(snapshot, "engine-hung") is None
