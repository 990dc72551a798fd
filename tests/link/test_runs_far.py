"""Experiments are run over there and read here: both consoles, a real ssh and a real sshd."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from a40console.errors import Exit
from tests.link.sshd import Sshd, sshd
from tests.link.test_link import PROFILE, Near
from tests.live.console import Console

# A session over there has an environment of its own; what is tested is the same code all the same.
CODE = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"
THERE = shlex.join(["env", CODE, sys.executable, "-m", "a40console"])
SWEEP = ("sweep", "--preset", "quick", "--yes", "--set", "output_tokens=16", "--set", "streams=1")


@pytest.fixture(scope="module")
def machine() -> Iterator[Sshd]:
    with sshd() as made:
        there = Console(made.far_home)
        there.profile("sim", PROFILE)
        settings = there.paths.config_file
        settings.write_text(settings.read_text() + '[runs]\npassing = "yes"\n')
        try:
            yield made
        finally:
            there.close()


@pytest.fixture
def near(machine: Sshd) -> Iterator[Near]:
    machine.mend()
    home = Path(tempfile.mkdtemp(prefix="a40nr-", dir="/tmp"))
    made = Near(home, **machine.variables)
    made.configure("[gateway]\nport = 0\n")
    try:
        yield made
    finally:
        machine.mend()
        made.run("links", "close", "pod")
        made.close()
        shutil.rmtree(home, ignore_errors=True)


def until(holds: Callable[[], bool], timeout_s: float = 40) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.2)


def pull(near: Near, *words: str) -> dict[str, Any]:
    done = near.run("runs", "pull", "--ssh", "pod", "--there", THERE, "--json", *words)
    assert done.returncode == 0, done.stderr
    pulled: dict[str, Any] = json.loads(done.stdout)
    return pulled


def listed(console: Console) -> dict[str, dict[str, Any]]:
    """Every run that the service knows; one that is away is started, as a command would."""
    if console.run("status", "--line").returncode != Exit.DONE:
        console.succeed("runs", "list")
    return asked(console)


def asked(console: Console) -> dict[str, dict[str, Any]]:
    """The same of a service that runs."""
    transport = httpx.HTTPTransport(uds=str(console.paths.control_socket), verify=False)
    with httpx.Client(transport=transport, base_url="http://service", timeout=30) as client:
        return {run["id"]: run for run in client.get("/v1/runs").raise_for_status().json()}


def measure(console: Console) -> None:
    """Make a run; on a busy machine it may end as invalid, and is one all the same."""
    assert console.run("run", *SWEEP).returncode in (Exit.DONE, Exit.CHECK_FAILED)


def test_a_run_over_there_is_pulled_kept_here_and_noted_there(near: Near, machine: Sshd) -> None:
    there = Console(machine.far_home)
    there.succeed("engine", "start", "sim")
    measure(there)
    (run_id,) = listed(there)
    told = there.succeed("status")
    assert f"1 run is on this machine alone, and lost with it: {run_id}" in told
    assert pull(near)["copied"] in ([run_id], [])  # the link may have brought it before
    assert near.run("runs", "pull", "--ssh", "elsewhere.invalid").returncode != Exit.DONE
    assert pull(near)["copied"] == []
    assert pull(near, "--again", run_id[:20])["copied"] == [run_id]
    here = listed(near)[run_id]
    original = asked(there)[run_id]
    assert here["origin"] == "pod"
    assert (here["state"], here["reason"]) == (original["state"], original["reason"])
    until(lambda: asked(there)[run_id]["copied_to"] != [])
    assert "on this machine alone" not in there.succeed("status")
    assert_the_same(near, there, run_id)
    # Whatever is added over there comes by itself while the link stands.
    there.succeed("runs", "note", run_id, "the fan was loud")
    measure(there)
    until(lambda: [note["text"] for note in asked(near)[run_id]["notes"]] == ["the fan was loud"])
    until(lambda: len(asked(near)) == 2)
    # And a service over there that ends says what is lost with it.
    machine.cut()
    measure(there)
    said = there.run("stop", "--engine")
    assert "1 run is on this machine alone" in said.stderr
    machine.mend()
    there.succeed("endpoint", "--start")
    until(lambda: len(asked(near)) == 3)


def assert_the_same(near: Near, there: Console, run_id: str) -> None:
    documents = []
    for console in (near, there):
        file = console.home / "document.json"
        console.succeed("runs", "export", run_id, "--format", "json", "--output", str(file))
        documents.append(json.loads(file.read_text()))
    here, original = documents
    assert here["samples"] == original["samples"]
    assert here["run"]["result"] == original["run"]["result"]
    assert here["run"]["environment"] == original["run"]["environment"]


def test_what_cannot_be_pulled_is_told(near: Near, machine: Sshd) -> None:
    done = near.run("runs", "pull")
    assert done.returncode == Exit.USAGE
    assert "From which machine?" in done.stderr
    Console(machine.far_home).succeed("endpoint", "--start")
    done = near.run("runs", "pull", "--ssh", "pod", "--there", THERE, "20200101")
    assert done.returncode == Exit.USAGE
    assert "names no one run over there" in done.stderr
    assert near.run("runs", "pull", "--json").returncode == 0, "the link that stands"
    assert near.run("--read-only", "runs", "pull", "--ssh", "pod").returncode == Exit.REFUSED
