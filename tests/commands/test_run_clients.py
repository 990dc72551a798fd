"""`a40console run` beside others: whom it disturbs, what it waits for, and engines elsewhere."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_run_command import LONG, PROFILE, REFUSED, SETTINGS, SHORT, run_json
from tests.live.console import Console, console

pytestmark = pytest.mark.slow

SESSION = "7f3a9c52-1111-4222-8333-444455556666"
NO_SERVICE = 3


@pytest.fixture(scope="module")
def service() -> Iterator[Console]:
    """A home without a service yet, whose default engine is simulated."""
    with console() as made:
        made.configure(SETTINGS)
        made.profile("sim", PROFILE)
        yield made


@pytest.fixture(scope="module")
def working(service: Console) -> Console:
    """The same with an engine, and a session that has just had an answer."""
    service.run("engine", "start")  # refused where a service that has just begun starts it
    service.succeed("wait", "ready")
    turn(service)
    service.wait_for(lambda: bool(service.status()["sessions"]), 30)
    return service


def turn(made: Console) -> None:
    environment = made.client_environment()
    key = environment.get("ANTHROPIC_AUTH_TOKEN") or environment["ANTHROPIC_API_KEY"]
    asked = {
        "model": "sim",
        "max_tokens": 8,
        "messages": [{"role": "user", "content": "hello " * 300}],
    }
    request = urllib.request.Request(
        f"{environment['ANTHROPIC_BASE_URL']}/v1/messages",
        data=json.dumps(asked).encode(),
        headers={
            "content-type": "application/json",
            "authorization": f"Bearer {key}",
            "x-claude-code-session-id": SESSION,
        },
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def listed(made: Console) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(made.succeed("runs", "list", "--json"))["runs"]
    return runs


def test_who_only_looks_starts_no_engine(service: Console) -> None:
    assert service.run("--read-only", "runs", "list").returncode == NO_SERVICE
    assert listed(service) == []
    planned = service.run("run", "sweep", "--plan", *SHORT)
    assert planned.returncode == REFUSED
    assert "no engine runs" in planned.stderr
    assert service.status()["engine"]["state"] == "absent"


def test_a_session_at_work_keeps_what_is_cached_for_it(working: Console) -> None:
    for words in (("run",), ("--read-only", "run")):
        done = working.run(*words, "compaction", "--preset", "quick", "--plan")
        assert done.returncode == REFUSED
        assert f"Refused: session {SESSION} asked " in done.stdout, "it is idle, and may go on"
        assert "--when idle" in done.stdout
        assert "--yes" in done.stdout
    assert working.run("--read-only", "run", "sweep", *SHORT).returncode == REFUSED
    done = working.run("run", "compaction", "--preset", "quick")
    assert done.returncode == REFUSED
    assert "--when idle" in done.stderr
    assert "--yes" in done.stderr
    assert listed(working) == []


def test_when_idle_waits_and_says_for_whom(working: Console) -> None:
    words = ("run", "compaction", "--preset", "quick", "--when", "idle", "--detach", "--json")
    run_id = json.loads(working.succeed(*words))["id"]
    working.wait_for(lambda: "1 session is at work" in listed(working)[0]["headline"], 30)
    assert listed(working)[0]["state"] == "queued"
    working.succeed("run", "cancel", run_id)
    working.wait_for(lambda: listed(working)[0]["state"] == "failed", 30)


def test_a_limit_of_dollars_ends_it_and_is_told_as_it_was_asked(working: Console) -> None:
    done = working.run("run", "sweep", *LONG, "--yes", "--max-usd", "0.0006", timeout_s=300)
    assert "its limit of $0.0006 is met" in done.stdout
    shown = working.succeed("runs", "show", "last")
    assert "$0.0006" in shown.split("limits", 1)[1].splitlines()[0]
    assert listed(working)[0]["state"] in ("partial", "failed", "invalid")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    """The URL of another simulated engine."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    words = ("--port", str(port), "--start-s", "0.1")
    output = tmp_path / "output.log"
    with output.open("wb") as file:
        engine = subprocess.Popen(
            [sys.executable, "-m", "a40console.sim", "serve", "x/qwen3-coder-30b", *words],
            stdout=file,
            stderr=file,
        )
    try:
        Console.wait_for(lambda: "startup complete" in output.read_text(), 120)
        yield f"http://127.0.0.1:{port}"
    finally:
        engine.kill()
        engine.wait()


def test_another_engine_is_measured_by_its_url(working: Console, elsewhere: str) -> None:
    asked = ("sweep", "--preset", "quick", *SHORT, "--url", elsewhere)
    planned = working.run("run", *asked, "--plan")
    assert planned.returncode == 0
    assert "requests" in planned.stdout, "a plan is what was asked for"
    assert SESSION not in planned.stdout, "no session of ours is there"
    assert "clients" not in planned.stdout
    run = run_json(working, *asked)
    assert run["spec"]["target"] | {"dialect": ""} == {
        "kind": "url",
        "url": elsewhere,
        "model": "",
        "dialect": "",
    }
    environment = run["environment"]
    assert (environment["simulated"], environment["engine_kind"]) == (True, "sim")
    assert environment["model"] == "qwen3-coder-30b"
