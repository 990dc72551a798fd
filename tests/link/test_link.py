"""The console here, the service there: through a real ssh and a real sshd."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from textual.message import Message

from a40console.errors import Exit
from a40console.link.place import LinkPlace
from a40console.link.target import parse_target
from a40console.model.figures import number
from a40console.service.client import client_of
from a40console.tui.feed import Feed
from a40console.tui.messages import ServiceFound, SnapshotArrived
from a40console.tui.past import Past
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
    url = f"{variables['ANTHROPIC_BASE_URL']}/v1/messages"
    key = {"x-api-key": variables["ANTHROPIC_AUTH_TOKEN"]}
    answer = httpx.post(url, json=body, headers=key, timeout=30)
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


def test_a_command_while_the_link_is_down_leaves_it_to_its_holder(
    near: Near, machine: Sshd
) -> None:
    near.far("endpoint", "--start")
    holder = holders(near)[0].pid
    machine.cut()
    until(lambda: near.links()[0]["state"] == "down")
    done = near.far("env")
    assert done.returncode == Exit.NO_SERVICE
    assert "The link to pod is down" in done.stderr
    assert "tried again by itself" in done.stderr
    machine.mend()
    until(lambda: near.links()[0]["state"] == "up", 30)
    assert [process.pid for process in holders(near)] == [holder]


def test_the_command_over_there_need_be_said_once(near: Near) -> None:
    near.far("endpoint", "--start")
    done = near.run("--ssh", "pod", "endpoint", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["running"] is True


def test_the_link_outlives_its_console_and_ends_when_closed(near: Near) -> None:
    near.far("endpoint", "--start")
    holder = holders(near)
    assert len(holder) == 1
    near.far("status", "--line")
    assert [process.pid for process in holders(near)] == [holder[0].pid]
    assert "Closed link to pod" in near.succeed("links", "close", "pod")
    until(lambda: not holders(near))
    assert near.links() == []


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
        terminal.press("n")
        terminal.wait_for("Note")
        terminal.type("typed on the laptop")
        terminal.press("Enter")
        until(lambda: "typed on the laptop" in Console(machine.far_home).succeed("events"))
        terminal.press("3")
        terminal.wait_for(lambda screen: "INFO" in screen and "pod " in screen)
        terminal.press("e")
        terminal.wait_for("Connect a client to pod")
        terminal.press("Escape")
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


def test_in_sentences_the_words_reach_the_other_machine(near: Near, machine: Sshd) -> None:
    near.far("endpoint", "--start")
    words = [sys.executable, "-m", "a40console", "--ssh", "pod", "--there", THERE, "--plain"]
    done = subprocess.run(
        words,
        input="note seen from the laptop\nevents\nconnect\nquit\n",
        env=near.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "a40console in sentences, of pod." in done.stdout
    assert 'eval "$(a40console --ssh pod env)"' in done.stdout
    there = Console(machine.far_home).succeed("events", "--kind", "note.added")
    assert "seen from the laptop" in there


def test_a_wait_for_the_first_request_outlasts_a_cut(near: Near, machine: Sshd) -> None:
    near.far("endpoint", "--start")
    near.far("engine", "start", "sim")
    said = near.home / "said"
    words = ["--ssh", "pod", "--there", THERE, "env", "--json", "--wait", "--timeout", "60"]
    with said.open("w") as file:
        waiting = subprocess.Popen(
            [sys.executable, "-m", "a40console", *words],
            env=near.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    try:
        until(lambda: "Waiting for a request" in said.read_text(), 30)
        machine.cut()
        until(lambda: "Waiting all the same" in said.read_text(), 30)
        machine.mend()
        until(lambda: near.links()[0]["state"] == "up", 30)
        variables = Console(machine.far_home).client_environment()
        body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
        url, key = f"{variables['ANTHROPIC_BASE_URL']}/v1/messages", variables["OPENAI_API_KEY"]
        until(
            lambda: (
                httpx.post(url, json=body, headers={"x-api-key": key}).status_code == 200
                and waiting.poll() is not None
            ),
            30,
        )
    finally:
        waiting.kill()
        waiting.communicate()
    assert waiting.returncode == 0
    assert "Seen: " in said.read_text()


def test_a_home_that_cannot_be_written_there_is_told_from_here(near: Near) -> None:
    there = f"env A40CONSOLE_HOME=/dev/null/home {THERE}"
    done = near.run("--ssh", "pod", "--there", there, "endpoint", "--start")
    assert done.returncode == Exit.REFUSED
    assert "/dev/null/home" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_token_is_in_no_arguments_and_in_no_file_of_the_link(near: Near) -> None:
    near.far("endpoint", "--start")
    token = json.loads(near.far("env", "--json").stdout)["ANTHROPIC_AUTH_TOKEN"]
    assert len(token) > 20
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            assert token not in " ".join(process.cmdline())
    kept = [file for file in near.home.rglob("*") if file.is_file()]
    assert any(file.suffix == ".json" for file in kept)
    assert [file for file in kept if token.encode() in file.read_bytes()] == []


async def test_after_a_cut_the_history_has_no_hole_that_the_service_knew(
    near: Near, machine: Sshd
) -> None:
    """Tokens flow on while the link is down; the console has their seconds once it is back."""
    near.far("endpoint", "--start")
    near.far("engine", "start", "sim")  # where no test before has
    assert Console(machine.far_home).run("status", "--check").returncode == 0
    place = LinkPlace(near.paths, parse_target("pod"))
    paths = replace(near.paths, runtime=place.folder, remote="pod")
    past, found = Past(), asyncio.Queue[ServiceFound]()

    def take(message: Message) -> None:
        if isinstance(message, ServiceFound):
            past.recall(message.history)
            found.put_nowait(message)
        elif isinstance(message, SnapshotArrived):
            past.observe(message.snapshot)

    feed = Feed(lambda: client_of(paths), take)
    following = asyncio.create_task(feed.follow())
    asking = asyncio.create_task(asked_long(Console(machine.far_home)))
    try:
        await asyncio.wait_for(found.get(), 20)
        await asyncio.sleep(1.5)
        machine.cut()
        cut_s = time.time()
        await asyncio.sleep(4)
        machine.mend()
        mended_s = time.time()
        await asyncio.wait_for(found.get(), 30)
        known = await (await feed.client()).history(cut_s)
        assert not asking.done()
    finally:
        for task in (asking, following):
            task.cancel()
        await asyncio.gather(asking, following, return_exceptions=True)
        await feed.close()
    there = [point.at_s for point in known.points if point.at_s < mended_s]
    here = [point.at_s for point in past.speed]
    assert len(there) >= 3
    assert any(number(point.generation_tokens_per_s) for point in known.points)
    assert [at_s for at_s in there if min(abs(at_s - own) for own in here) > 1.0] == []


async def asked_long(there: Console) -> None:
    """Let tokens flow until cancelled."""
    variables = await asyncio.to_thread(there.client_environment)
    body = {"max_tokens": 30_000, "messages": [{"role": "user", "content": "go on"}], "model": "m"}
    async with httpx.AsyncClient(timeout=60) as client:
        while True:
            answer = await client.post(
                f"{variables['ANTHROPIC_BASE_URL']}/v1/messages",
                json=body,
                headers={"x-api-key": variables["ANTHROPIC_AUTH_TOKEN"]},
            )
            answer.raise_for_status()


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
