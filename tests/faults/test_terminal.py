"""The link drops: the terminal's own commands end, service and engine do not notice."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from itertools import pairwise

import psutil
import pytest

from a40console.engines.run_record import read_identity
from a40console.model.control import HistoryPoint
from a40console.service.client import ServiceClient
from tests.faults.console import FaultConsole, Snapshot, alive, kill
from tests.faults.terminals import terminal

pytestmark = [pytest.mark.pty, pytest.mark.slow]


def service_processes(console: FaultConsole) -> list[int]:
    """The service's parent and its worker."""
    worker = psutil.Process(console.status()["service"]["pid"])
    return [worker.ppid(), worker.pid]


def assert_unharmed(console: FaultConsole, before: Snapshot) -> None:
    """Same worker, same engine, and both at work."""
    after = console.until(lambda s: s["seq"] > before["seq"])
    assert after["service"]["pid"] == before["service"]["pid"]
    assert after["engine"]["pid"] == before["engine"]["pid"]
    assert after["engine"]["state"] == "serving"
    assert "wave" in console.ask()


def history(console: FaultConsole) -> tuple[HistoryPoint, ...]:
    async def read() -> tuple[HistoryPoint, ...]:
        async with ServiceClient(console.paths.control_socket) as client:
            return (await client.history()).points

    return asyncio.run(read())


def test_what_a_command_started_survives_its_terminal(console: FaultConsole) -> None:
    with terminal(console.command("engine", "start", "fake"), console.environment) as link:
        link.until("The engine serves")
        before = console.status()
        link.hang_up()
    assert_unharmed(console, before)


def test_a_link_that_drops_while_an_engine_starts(console: FaultConsole) -> None:
    console.control(ready_s=3)
    with terminal(console.command("engine", "start", "fake"), console.environment) as link:
        link.until("Started the service")
        engine = console.until(lambda s: isinstance(s["engine"]["pid"], int))["engine"]["pid"]
        assert console.status()["engine"]["state"] == "starting"
        link.hang_up()
        assert link.process.wait(10) != 0
    assert console.until_state("serving")["engine"]["pid"] == engine


def test_a_service_in_the_foreground_outlives_its_terminal(console: FaultConsole) -> None:
    command = console.command("serve", "--profile", "fake")
    with terminal(command, console.environment) as link:
        console.succeed("wait", "ready", "--timeout", "30")
        before = console.status()
        link.hang_up()
        time.sleep(1)
        assert link.process.poll() is None
        assert_unharmed(console, before)
        console.succeed("stop", "--engine")
        assert link.process.wait(20) == 0


def test_a_watch_ends_with_its_terminal_and_another_sees_it_all(serving: FaultConsole) -> None:
    before = serving.status()
    past = len(history(serving))
    with terminal(serving.command("watch"), serving.environment) as link:
        link.until("SERVING")
        link.hang_up()
        link.process.wait(10)
        assert not alive(link.process.pid)
    assert_unharmed(serving, before)
    with terminal(serving.command("watch"), serving.environment) as link:
        assert "fake" in link.until("SERVING")
        link.process.send_signal(signal.SIGINT)
        assert link.process.wait(10) == 130
    points = history(serving)
    assert len(points) > past
    gaps = [after.at_s - point.at_s for point, after in pairwise(points)]
    assert max(gaps) < 3, "no hole in the past"


def test_the_console_ends_with_its_terminal_and_comes_back_to_the_same(
    serving: FaultConsole,
) -> None:
    before = serving.status()
    began = len(serving.events())
    for _ in range(2):
        with terminal(serving.command(), serving.environment) as link:
            link.until("SERVING")
            link.hang_up()
            link.process.wait(20)
        assert_unharmed(serving, before)
    assert len(serving.events()) == began, "its coming and going is no event"


def test_a_hang_up_signal_ends_neither_service_nor_engine(serving: FaultConsole) -> None:
    before = serving.status()
    identity = read_identity(serving.run_folder())
    assert identity is not None
    for pid in [*service_processes(serving), identity.keeper.pid]:
        kill(pid, signal.SIGHUP)
    time.sleep(1)
    assert_unharmed(serving, before)
    assert alive(identity.keeper.pid)
    assert os.getsid(before["engine"]["pid"]) == before["engine"]["pid"], "a session of its own"
