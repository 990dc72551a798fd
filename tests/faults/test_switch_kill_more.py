"""Engines that do not heed a stop, crash again and again, and operators who cross each other."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.console import alive
from tests.faults.kills import SETTINGS, Asking, KillConsole, loss_in_words, losses
from tests.faults.load import load

pytestmark = [pytest.mark.slow, pytest.mark.pty]

LONG = {"vllm_xargs": {"answer_tokens": 400}}
TOLD = ("No engine runs", "is stopping", "is starting", "failed")


@pytest.fixture(scope="module")
def shared() -> Iterator[KillConsole]:
    home = Path(tempfile.mkdtemp(prefix="a40k-", dir="/tmp"))
    made = KillConsole(home)
    try:
        made.configure(SETTINGS)
        made.engine("alpha", "slow_stop=0.8", start_s=0.2, speed=4)
        made.engine("beta", start_s=1.0, speed=1)
        made.serve("--profile", "alpha")
        yield made
    finally:
        made.close()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def console(shared: KillConsole) -> KillConsole:
    """The service with `alpha` serving."""
    engine = shared.now()["engine"]
    if engine["state"] != "serving" or engine["profile"] != "alpha":
        shared.run("engine", "stop", "--yes")
        shared.run("engine", "start", "alpha")
        shared.succeed("wait", "ready", "--timeout", "30")
    shared.told = len(shared.paths.events.read_text().splitlines())
    return shared


@pytest.mark.parametrize("phase", ["drain", "stop", "start", "canary"])
def test_a_stop_ends_a_switch_in_each_phase(console: KillConsole, phase: str) -> None:
    with load(console.door, "coder", clients=4, answer_tokens=400, extras=LONG) as clients:
        clients.until(4)
        asking = Asking(console, "beta")
        console.in_phase(phase)
        began_s = time.monotonic()
        console.ask("engine.stop")
        code, said = asking.ended()
        assert time.monotonic() - began_s < 8
        clients.until(4, timeout_s=10)
    console.wait_for_event("command.done")
    assert code == 5, said
    assert "interrupted by a stop" in said
    after = console.now()
    assert after["engine"]["state"] == "stopped"
    assert after["requests"]["gate"] is None
    console.assert_true(after)
    refused = [each.error for each in clients.errors]
    assert set(losses(clients)) <= {"503", "cut short, said so"}, refused
    assert all("[retry-after " in error for error in refused if loss_in_words(error) == "503")
    (done,) = [each["data"] for each in console.events("command.done")]
    begun = "alpha" if phase in ("drain", "stop") else "beta"
    assert (done["who"], done["after"]) == ("bob@pod, pid 8", f"stopped ({begun})")
    assert done["before"]
    assert done["result"]
    console.succeed("engine", "start", "alpha")
    console.assert_true(console.now())


def test_an_engine_deaf_to_a_stop_is_replaced_all_the_same(console: KillConsole) -> None:
    """It ignores SIGTERM, and leaves a process that holds its output open and ignores it too."""
    console.engine("deaf", "ignore_term", "orphan", start_s=0.2, speed=4)
    console.succeed("engine", "switch", "deaf", "--yes")
    deaf = [pid for pid, what in console.living().items() if what == "engine"]
    assert len(deaf) == 2
    with load(console.door, "coder", clients=4) as clients:
        clients.until(4)
        console.succeed("engine", "switch", "beta", "--yes")
        clients.until(4)
    assert clients.errors == []
    assert [pid for pid in deaf if alive(pid)] == []
    (stopped,) = console.events("engine.stopped")[1:]
    assert "Stopped after SIGKILL" in stopped["text"]
    console.assert_true(console.now())


def test_where_neither_comes_up_clients_are_told_and_nothing_goes_round(
    console: KillConsole,
) -> None:
    console.engine("frail", "crash=load", start_s=0.2, speed=4)
    console.stand_in("brittle", ready_s=0.1)
    console.succeed("engine", "switch", "brittle", "--yes")
    console.stand_in("brittle", ready_s=0.1, start="fails")
    console.told = len(console.paths.events.read_text().splitlines())
    with load(console.door, "coder", clients=4) as clients:
        clients.until(4)
        code, said = Asking(console, "frail").ended()
        clients.until(8, timeout_s=10)
        time.sleep(2)
    assert code == 4, said
    assert "frail did not start" in said
    assert "and brittle could not be put back" in said
    after = console.now()
    assert after["engine"]["state"] == "failed"
    assert after["requests"]["gate"] is None
    console.assert_true(after)
    assert len(console.events("engine.starting")) == 2
    assert console.events("engine.restarting") == []
    refused = [each.error for each in clients.errors]
    assert set(losses(clients)) == {"503"}, refused
    assert all("brittle failed" in each and "[retry-after " in each for each in refused)


def test_a_command_beside_a_console_is_refused_and_told_who(console: KillConsole) -> None:
    console.engine("beta", start_s=4.0, speed=1)
    first = Asking(console, "beta", by_console=True)
    console.in_phase("start")
    second = console.run("engine", "switch", "alpha", "--yes")
    assert second.returncode == 5, (second.stdout, second.stderr)
    assert "A switch to beta is under way" in second.stderr
    assert f"console, pid {first.pid}" in second.stderr
    console.wait_for_event("engine.switched")
    first.ended()
    assert console.serving() == "beta"


def test_two_commands_at_the_same_moment_make_one_switch(console: KillConsole) -> None:
    both = [Asking(console, "beta"), Asking(console, "beta")]
    (code, said), (refused, why) = sorted(each.ended() for each in both)
    assert (code, refused) == (0, 5), (said, why)
    assert "A switch to beta is under way" in why
    assert len(console.events("engine.switched")) == 1
    assert console.serving() == "beta"
    console.assert_true(console.now())
