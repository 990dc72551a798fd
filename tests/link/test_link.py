"""The console here, the service there: through a real ssh and a real sshd."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from a40console.errors import Exit
from tests.link.sshd import Sshd, sshd
from tests.live.console import Console
from tests.live.terminal import Tmux

THERE = f"{sys.executable} -m a40console"
PROFILE = """
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = 32768
prefix_caching = true
arguments = ["--start-s", "0.3"]

[speculation]
enabled = false
tokens = 5
"""


class Near(Console):
    """The operator's own machine."""

    def far(self, *words: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """A command with `--ssh` before it."""
        return self.run("--ssh", "pod", "--there", THERE, *words, timeout_s=timeout_s)

    def links(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.succeed("links", "--json"))["links"]
        return found


@pytest.fixture(scope="module")
def machine() -> Iterator[Sshd]:
    with sshd() as made:
        there = Console(made.far_home)
        there.profile("sim", PROFILE)
        try:
            yield made
        finally:
            there.close()


@pytest.fixture
def near(machine: Sshd) -> Iterator[Near]:
    machine.mend()
    machine.delay(0)
    home = Path(tempfile.mkdtemp(prefix="a40nr-", dir="/tmp"))
    made = Near(home, **machine.variables)
    try:
        yield made
    finally:
        machine.mend()
        made.run("links", "close", "pod")
        made.close()
        shutil.rmtree(home, ignore_errors=True)


def test_a_command_runs_there_and_its_exit_code_comes_back(near: Near, machine: Sshd) -> None:
    done = near.far("endpoint", "--start", "--json")
    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)
    assert there["running"] is True
    assert there["gateway"].startswith("127.0.0.1:")
    assert near.far("engine", "start", "no-such-profile").returncode == Exit.USAGE
    assert near.far("profiles", "show", "sim").returncode == 0


def test_the_gateway_and_the_environment_are_those_of_this_machine(near: Near) -> None:
    near.far("endpoint", "--start")
    assert near.far("engine", "start", "sim").returncode == 0
    variables = json.loads(near.far("env", "--json").stdout)
    port = near.links()[0]["gateway_port"]
    assert variables["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:{port}"
    body = {
        "model": "whatever",
        "max_tokens": 20,
        "messages": [{"role": "user", "content": "say something"}],
    }
    answer = httpx.post(f"{variables['ANTHROPIC_BASE_URL']}/v1/messages", json=body, timeout=30)
    assert answer.status_code == 200
    assert answer.json()["usage"]["output_tokens"] > 0


def test_a_cut_link_comes_back_with_the_same_gateway_port(near: Near, machine: Sshd) -> None:
    near.far("endpoint", "--start")
    before = near.links()[0]
    assert before["state"] == "up"
    machine.cut()
    until(lambda: near.links()[0]["state"] == "down")
    said = near.links()[0]["reason"]
    assert said
    machine.mend()
    until(lambda: near.links()[0]["state"] == "up", 30)
    after = near.links()[0]
    assert after["gateway_port"] == before["gateway_port"]
    assert after["drops"] == 1
    base = json.loads(near.far("env", "--json").stdout)["ANTHROPIC_BASE_URL"]
    assert httpx.get(f"{base}/health", timeout=10).status_code == 200


def test_the_link_outlives_its_console_and_ends_when_closed(near: Near) -> None:
    near.far("endpoint", "--start")
    holder = holders(near)
    assert len(holder) == 1
    near.far("status", "--line")
    assert [process.pid for process in holders(near)] == [holder[0].pid]
    assert "Closed link to pod" in near.succeed("links", "close", "pod")
    until(lambda: not holders(near))
    assert near.links() == []


def test_a_killed_holder_is_replaced_and_leaves_no_second_link(near: Near) -> None:
    near.far("endpoint", "--start")
    holders(near)[0].kill()
    until(lambda: not holders(near))
    assert near.far("status", "--line").returncode == 0
    assert len(holders(near)) == 1
    assert near.links()[0]["state"] == "up"


def test_without_a_service_there_and_nobody_to_ask_nothing_is_started(
    near: Near, machine: Sshd
) -> None:
    Console(machine.far_home).run("stop", "--engine")
    done = near.far("env", "--json")
    assert done.returncode == Exit.NO_SERVICE
    error = json.loads(done.stdout)["error"]
    assert error["message"] == "No service runs on pod"
    assert "endpoint --start" in error["remedy"]
    assert holders(near) == []
    assert Console(machine.far_home).run("status").returncode == Exit.NO_SERVICE


def test_an_unknown_host_key_is_told_in_sshs_words(near: Near, machine: Sshd) -> None:
    (machine.folder / "known").write_text("")
    try:
        done = near.far("env")
    finally:
        machine.trust_host()
    assert done.returncode == Exit.NO_SERVICE
    assert "Host key verification failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_console_there_is_told(near: Near) -> None:
    done = near.run("--ssh", "pod", "--there", "no-such-console", "env")
    assert done.returncode == Exit.REFUSED
    assert "pod has no command no-such-console" in done.stderr
    assert "--there" in done.stderr


def test_a_missing_ssh_is_told(near: Near) -> None:
    near.environment["A40CONSOLE_SSH"] = "/no/such/ssh"
    done = near.far("env")
    assert done.returncode == Exit.NO_SERVICE
    assert "openssh-client" in done.stderr


def test_the_console_asks_before_it_starts_and_survives_a_cut(near: Near, machine: Sshd) -> None:
    Console(machine.far_home).run("stop", "--engine")
    words = [sys.executable, "-m", "a40console", "--ssh", "pod", "--there", THERE]
    with Tmux(words, near.environment, folder=near.home) as terminal:
        terminal.wait_for("No service runs on pod. Start it there? [Y/n]", 30)
        terminal.press("Enter")
        terminal.wait_for("1 Overview", 40)
        assert near.far("engine", "start", "sim").returncode == 0
        terminal.wait_for("SERVING", 30)
        machine.cut()
        terminal.wait_for("The link to pod is down", 30)
        machine.mend()
        terminal.wait_for(lambda screen: "SERVING" in screen and "is down" not in screen, 40)


def test_over_a_slow_link_the_figures_still_come(near: Near, machine: Sshd) -> None:
    near.far("endpoint", "--start")
    machine.delay(200)
    words = [sys.executable, "-m", "a40console", "--ssh", "pod", "--there", THERE]
    with Tmux(words, near.environment, folder=near.home) as terminal:
        terminal.wait_for("live", 40)
        first = terminal.capture()
        terminal.wait_for(lambda screen: "live" in screen and screen != first, 20)


def holders(near: Near) -> list[psutil.Process]:
    """Living holders of links that this test's console opened."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("A40CONSOLE_HOME") == str(near.home)
            held = "a40console.link.holder" in process.cmdline()
            if ours and held and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def until(condition: Callable[[], Any], timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.1)
