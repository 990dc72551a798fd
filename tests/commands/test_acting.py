"""`engine` and its verbs, `env`, and what they tell a person and a script."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from a40console.commands import ask, engine, stop
from a40console.commands.acting import deadline_after
from a40console.commands.progress import Progress
from a40console.errors import Exit, TimedOutError
from a40console.model.client_lines import client_lines
from a40console.model.engine import EngineState
from a40console.paths import Paths, make_private
from tests import make_snapshot as make
from tests.commands.console_process import CONSOLE, CONSOLE_WITH_STUB, Run, Service, with_stub
from tests.commands.service_stub import TOKEN


def test_env_is_ready_to_paste(console: Run, service: Service) -> None:
    service(state="serving")
    run = console("env")
    assert run.returncode == 0
    lines = dict(line.removeprefix("export ").split("=", 1) for line in run.stdout.splitlines())
    assert lines["ANTHROPIC_AUTH_TOKEN"] == f"'{TOKEN}'"
    assert lines["ANTHROPIC_BASE_URL"].startswith("'http://127.0.0.1:")
    assert lines["OPENAI_BASE_URL"].endswith("/v1'")
    document = json.loads(console("env", "--json").stdout)
    assert document["ANTHROPIC_MODEL"] == "it's-tiny"
    assert document.keys() == lines.keys()


@pytest.mark.parametrize("value", ["plain", "it's", "a b $HOME `id`", "", "line\nbreak", "é"])
def test_a_shell_reads_the_value_back(value: str) -> None:
    script = f'{client_lines({"X": value}, "sh")} printf %s. "$X"'
    read = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert read.stdout == f"{value}."


@pytest.mark.parametrize(
    ("verb", "command", "text"),
    [
        (("start", "tiny"), "engine.start", "The engine serves."),
        (("start",), "engine.start", "The engine serves."),
        (("stop",), "engine.stop", "The engine has stopped; nothing of it is left."),
        (("restart",), "engine.restart", "The engine serves again."),
        (("switch", "tiny"), "engine.switch", "The engine serves tiny."),
        (("speculation", "24"), "engine.speculation", "Speculation: 24."),
        (("speculation", "off"), "engine.speculation", "Speculation: off."),
        (("clean",), "engine.clean", "Nothing of an engine is left."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_verb(
    verb: tuple[str, ...], command: str, text: str, console: Run, service: Service
) -> None:
    service(state="serving")
    run = console("engine", *verb)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{text}   profile: tiny\n"
    as_json = console("engine", *verb, "--json")
    document = json.loads(as_json.stdout)
    assert document.keys() == {"command", "id", "result", "events"}
    assert document["command"] == command
    assert document["result"] == {"profile": "tiny"}
    assert [event["kind"] for event in document["events"]] == [command]
    assert not as_json.stderr


def test_phases_are_told_while_waiting(console: Run, service: Service) -> None:
    service(state="absent")
    run = console("engine", "start")
    assert run.stderr.splitlines()[0] == "starting: load"


def test_a_phase_that_is_the_state_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    engine = replace(make.snapshot().engine, state=EngineState.STARTING)
    for phase in ("starting", "load"):
        Progress().show(make.snapshot(engine=replace(engine, phase=phase)))
    assert capsys.readouterr().err == "starting\nstarting: load\n"


def test_no_wait_returns_at_once(console: Run, service: Service) -> None:
    service(state="absent", start="stalls")
    run = console("engine", "start", "--no-wait")
    assert run.returncode == 0
    assert run.stdout == "engine.start has begun; its id is c0.\n"
    document = json.loads(console("engine", "start", "--no-wait", "--json").stdout)
    assert (document["id"], document["events"]) == ("c1", [])


def test_a_start_that_fails_says_why(console: Run, service: Service) -> None:
    service(state="absent", start="fails")
    run = console("engine", "start")
    assert run.returncode == Exit.NOT_SERVING
    assert run.stderr.splitlines()[-3:] == [
        "The engine ended as it started",
        "CUDA out of memory",
        "Lower max_model_len.",
    ]
    assert not run.stdout
    error = json.loads(console("engine", "start", "--json").stdout)["error"]
    assert (error["exit_code"], error["evidence"]) == (4, "CUDA out of memory")


@pytest.mark.parametrize("code", [2, 4, 5, 6, 7])
def test_the_commands_own_exit_code_is_ours(code: int, console: Run, service: Service) -> None:
    service(state="serving", refuse_with=code)
    run = console("engine", "restart")
    assert run.returncode == code
    assert run.stderr == "engine.restart is refused\nthe test says so\nAsk otherwise.\n"


def test_a_start_that_takes_too_long_goes_on(console: Run, service: Service) -> None:
    service(state="absent", start="stalls")
    run = console("engine", "start", "--timeout", "0.5")
    assert run.returncode == Exit.TIMED_OUT
    assert "It goes on" in run.stderr


@pytest.mark.slow
def test_a_service_that_dies_meanwhile_is_not_waited_for_for_ever(
    console: Run, service: Service
) -> None:
    service(state="absent", start="dies")
    run = console("engine", "start", "--timeout", "60")
    assert run.returncode == Exit.NO_SERVICE


@pytest.mark.parametrize("mode", ["maybe", "0", "-1", "2.5", "²", ""])
def test_speculation_takes_on_off_or_a_depth(mode: str, console: Run) -> None:
    assert console("engine", "speculation", "--", mode).returncode == Exit.USAGE


def test_logs_are_the_last_lines(console: Run, service: Service, tmp_path: Path) -> None:
    text = "".join(f"line {number} of many\n" for number in range(20_000))
    log = tmp_path / "output.log"
    log.write_text(text + "\x1b[31mred\x1b[0m\nhalf\rdone\nunended")
    service(state="serving", log_file=str(log))
    run = console("engine", "logs", "-n", "4")
    assert run.stdout.splitlines() == ["red", "half", "done", "unended"]
    assert len(console("engine", "logs").stdout.splitlines()) == 100
    everything = console("engine", "logs", "-n", "30000").stdout.splitlines()
    assert (everything[0], len(everything)) == ("line 0 of many", 20_004)
    document = json.loads(console("engine", "logs", "-n", "1", "--json").stdout)
    expected = {"path": "/runs/output.log", "lines": ["unended"], "levels": ["info"]}
    assert document == expected
    assert console("engine", "logs", "-n", "0").stdout == ""


def test_logs_are_followed(environment: dict[str, str], service: Service, tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_text("before\n")
    service(state="serving", log_file=str(log))
    following = subprocess.Popen(
        [*CONSOLE, "engine", "logs", "-f"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert following.stdout is not None
    assert following.stdout.readline() == "before\n"
    with log.open("a") as file:
        file.write("after\n")
    assert following.stdout.readline() == "after\n"
    following.send_signal(signal.SIGINT)
    assert following.wait(timeout=20) == 130
    following.stdout.close()


def test_logs_without_an_engine(console: Run, service: Service) -> None:
    service(state="absent")
    run = console("engine", "logs")
    assert run.returncode == Exit.NOT_SERVING
    assert "a40console engine start" in run.stderr


def test_start_and_switch_start_the_service_too(console: Run, environment: dict[str, str]) -> None:
    run = console(
        "engine",
        "switch",
        "tiny",
        "--json",
        command=CONSOLE_WITH_STUB,
        environment=with_stub(environment),
    )
    assert run.returncode == 0
    assert json.loads(run.stdout)["command"] == "engine.switch"
    assert not run.stderr


def test_no_start_is_given_up_before_its_profile_gives_it_up() -> None:
    assert deadline_after(None) == math.inf
    verbs = [engine.command.commands[name] for name in ("start", "stop", "restart", "switch")]
    for verb in (*verbs, ask.command, stop.command):
        words = ["tiny"] if verb in (verbs[-1], ask.command) else []
        assert verb.make_context("verb", words).params["timeout_s"] is None


async def test_a_service_that_no_signal_ends_is_told_by_all_its_processes(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "TERMINATED_AFTER_S", 0.5)
    make_private(paths.state)
    service = subprocess.Popen(  # noqa: ASYNC220 - it is not waited for
        [sys.executable, "-c", DEAF, str(paths.service_lock)], stdout=subprocess.PIPE, text=True
    )
    assert service.stdout is not None
    worker = int(service.stdout.readline())
    service.stdout.close()
    try:
        with pytest.raises(TimedOutError) as told:
            await stop._terminate(paths, "it is stuck", math.inf, engine=False)
    finally:
        os.kill(worker, signal.SIGKILL)
        service.kill()
        service.wait()
    assert told.value.remedy == f"End it with: kill -9 {service.pid} {worker}"


DEAF = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(lock, fcntl.LOCK_EX)
os.pwrite(lock, f"{os.getpid()}\\n".encode(), 0)
if worker := os.fork():
    print(worker, flush=True)
time.sleep(60)
"""
