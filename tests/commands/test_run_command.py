"""`a40console run`: from the words of a command to a result in the ledger, with a real service."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a40console import cli
from a40console.commands import run, run_progress
from a40console.commands.run_progress import told
from a40console.commands.run_words import parameter_help, plan_lines
from a40console.errors import Exit, NotServingError
from a40console.model.experiment import Experiment, Parameter
from a40console.model.figures import Estimated, Missing
from a40console.model.run import Run, RunProgress, RunSpec, RunState, RunTarget, TargetKind
from a40console.model.run_result import RunResult, Verdict, VerdictKind
from tests import make_runs
from tests.live.console import Console, console
from tests.service import orders

PROFILE = """
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = 32768
max_running = 8
prefix_caching = true
start_timeout_s = 60
usd_per_hour = 0.44
arguments = ["--start-s", "0.2"]

[speculation]
enabled = true
tokens = 5
"""
SETTINGS = 'profile = "sim"\n[gateway]\nport = 0\n[service]\ninterval_s = 0.3\ndrain_s = 2\n'
SHORT = ("--set", "streams=1", "--set", "output_tokens=16", "--set", "prompt_tokens=32")
LONG = ("--set", "streams=1", "--set", "output_tokens=128", "--set", "requests=50")
"""Its one arm takes a minute: it is ended before a busy machine's client is judged by it."""
USAGE, REFUSED, CHECK_FAILED, INTERRUPTED = 2, 5, 6, 130


@pytest.fixture(scope="module")
def service() -> Iterator[Console]:
    """A home without a service yet, whose default engine is simulated."""
    with console() as made:
        made.configure(SETTINGS)
        made.profile("sim", PROFILE)
        yield made


def run_json(made: Console, *words: str) -> dict[str, Any]:
    """The run, which a busy machine's client may have spoiled: then that is what it says."""
    done = made.run("run", *words, "--json", "--yes", timeout_s=300)
    answer: dict[str, Any] = json.loads(done.stdout)
    spoiled = answer["state"] == "invalid" and "the client was the limit" in answer["reason"]
    assert done.returncode == (CHECK_FAILED if spoiled else 0), (done.stdout, done.stderr)
    return answer


@pytest.mark.slow
def test_one_command_starts_what_it_needs_and_keeps_what_it_found(service: Console) -> None:
    done = service.run("run", "canary")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "SIMULATED" in done.stdout
    assert "tells how it was asked and where it was made" in done.stdout
    assert "vCPU" not in done.stdout, "that stands in runs show"
    assert "3 requests" in done.stderr, "what it takes is told before it starts"
    run = run_json(service, "sweep", "--preset", "quick", *SHORT, "--seed", "7", "--gateway")
    assert run["settled"]["repeats"] == "1", "a preset's value is written down, too"
    assert (run["spec"]["seed"], run["spec"]["target"]["kind"]) == (7, "gateway")
    assert_environment(run["environment"])
    listed = json.loads(service.succeed("runs", "list", "--json"))["runs"]
    assert [run["experiment"] for run in listed] == ["sweep", "canary"]
    assert all(run["simulated"] for run in listed)
    sessions = json.loads(service.succeed("sessions", "list", "--json"))
    assert "a40console-run-" in json.dumps(sessions), "it has a name of its own"
    asked = service.run("run", "sweep", "--plan", *SHORT)
    assert "sweep (standard)" in asked.stdout, "a plan is what was asked for"
    assert "at work" not in asked.stdout, "and is no client that another run disturbs"


def assert_environment(environment: dict[str, Any]) -> None:
    """Everything that a comparison must know is there."""
    assert environment["simulated"] is True
    assert environment["engine_kind"] == "sim"
    assert environment["engine_version"].endswith("+sim")
    assert environment["effective"]["max_model_len"] == "32768"
    assert environment["effective"]["speculation"].startswith("ngram")
    assert environment["usd_per_h"] == 0.44
    assert environment["argv"]
    assert environment["vcpu_quota"] > 0


@pytest.mark.slow
def test_a_run_goes_on_without_its_command_and_is_cancelled_by_another(service: Console) -> None:
    words = [sys.executable, "-m", "a40console", "run", "sweep", *LONG, "--yes"]
    command = subprocess.Popen(
        words, env=service.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    service.wait_for(lambda: bool(in_state(service, "running")), 60)
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=60)
    assert command.returncode == INTERRUPTED
    assert "goes on" in errors
    [run] = in_state(service, "running")
    assert run["id"] in service.succeed("run", "cancel")
    service.wait_for(lambda: not in_state(service, "running"), 60)
    ended = json.loads(service.succeed("runs", "show", run["id"], "--json"))
    assert ended["state"] in ("partial", "failed"), ended["reason"]
    assert "cancelled by" in ended["reason"]
    done = service.run("run", "cancel")
    assert (done.returncode, "No run waits or runs" in done.stderr) == (REFUSED, True)


def in_state(made: Console, state: str) -> list[dict[str, Any]]:
    listed = json.loads(made.succeed("runs", "list", "--json"))["runs"]
    return [run for run in listed if run["state"] == state]


@pytest.mark.slow
def test_the_engine_is_put_back_after_arms_that_change_it(service: Console) -> None:
    settings = ("--set", "settings=off,on", "--set", "streams=1", "--set", "repeats=1")
    small = ("--set", "output_tokens=16", "--set", "requests=1", "--set", "regimes=prose")
    run = run_json(service, "regimes", *settings, *small)
    assert "off" in {row[2] for row in run["result"]["tables"][0]["rows"]}
    service.wait_for(lambda: service.status()["speculation"]["mode"] == "on", 60)
    after = service.status()
    assert after["speculation"]["depth"] == 5
    assert after["engine"]["state"] == "serving"


@pytest.mark.parametrize(
    ("words", "told_words"),
    [
        (("sweep", "--set", "streams"), "NAME=VALUE"),
        (("nonsense",), "no experiment 'nonsense'"),
        (("sweep", "--max-usd", "0"), "--max-usd"),
        (("sweep", "--max-usd", "nan"), "--max-usd"),
        (("sweep", "--max-usd", "1E999999999"), "at most 1,000,000"),
        (("sweep", "--max-usd", "1_0"), "--max-usd"),
        (("sweep", "--max-minutes", "0"), "--max-minutes"),
        (("sweep", "--max-minutes", "inf"), "--max-minutes"),
        (("sweep", "--max-minutes", "1_0"), "not a plain number"),
        (("sweep", "--url", ""), "--url names no server"),
        (("sweep", "--url", "http://x", "--gateway"), "not both"),
        (("sweep", "--key", "sk-x"), "No such option"),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(
    words: tuple[str, ...],
    told_words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A key is no option: whoever lists processes reads command lines."""
    monkeypatch.setenv("A40CONSOLE_HOME", str(tmp_path))
    assert cli._run(["run", *words]) == USAGE
    assert told_words in capsys.readouterr().err
    assert not (tmp_path / "state").exists(), "no service was started"


def test_help_names_every_experiment_and_its_parameters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli._run(["run", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("compaction", "protocol", "canary", "cancel", "follow"))
    assert cli._run(["run", "sweep", "--help"]) == 0
    text = capsys.readouterr().out
    assert "quick" in text
    assert "streams: " in text


# --- Words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("experiment", "state", "kind", "code"),
    [
        ("protocol", "done", "passed", Exit.DONE),
        ("protocol", "done", "failed", Exit.CHECK_FAILED),
        ("protocol", "done", "none", Exit.CHECK_FAILED),
        ("lossless", "partial", "none", Exit.CHECK_FAILED),
        ("canary", "done", "failed", Exit.CHECK_FAILED),
        ("canary", "done", "none", Exit.DONE),
        ("compaction", "done", "none", Exit.DONE),
        ("sweep", "partial", "none", Exit.DONE),
        ("sweep", "invalid", "difference", Exit.CHECK_FAILED),
    ],
)
def test_a_check_that_could_not_be_tried_whole_has_not_passed(
    experiment: str, state: RunState, kind: VerdictKind, code: Exit
) -> None:
    """A look by a preset that gives no verdict is a success, as is a canary that skips."""
    result = RunResult(headline="2 of 5 passed", verdict=Verdict(kind=kind, text="told"))
    found = make_runs.run(spec=RunSpec(experiment=experiment), state=state, result=result)
    assert run.exit_of(found) is code


def test_a_run_without_a_result_is_no_success() -> None:
    assert run.exit_of(make_runs.run(result=Missing("it ended before"))) is Exit.CHECK_FAILED


@pytest.mark.parametrize(
    ("kind", "state", "goes_on"),
    [("engine", "running", True), ("url", "running", False), ("engine", "done", False)],
)
async def test_an_engine_that_a_run_has_in_hand_is_not_asked_to_serve_first(
    kind: TargetKind, state: RunState, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It drains or starts for that run, and is put back after it: the next one queues."""

    async def not_serving(*_asked: object, **_how: object) -> None:
        raise NotServingError("The engine is draining")

    async def runs() -> tuple[Run, ...]:
        spec = RunSpec(experiment="regimes", target=RunTarget(kind=kind))
        return (make_runs.run(spec=spec, state=state),)

    monkeypatch.setattr(run, "serving_engine", not_serving)
    client: Any = SimpleNamespace(runs=runs)
    invocation: Any = None
    with nullcontext() if goes_on else pytest.raises(NotServingError):
        await run._see_to_engine(client, invocation, quiet=True)


def test_a_plan_is_told_with_what_is_not_known() -> None:
    lines = plan_lines(RunSpec(experiment="sweep"), orders.plan("evicts", refusal="not so"))
    text = "\n".join(lines)
    assert "time unknown (not known)" in text
    assert "cost unknown (no price)" in text
    assert "cached prefixes" in text
    assert "Refused: not so" in text


def test_a_plan_for_a_server_elsewhere_speaks_of_no_clients_of_ours() -> None:
    target = RunTarget(kind="url", url="http://x")
    lines = plan_lines(RunSpec(experiment="sweep", target=target), orders.plan("shares"))
    assert "clients" not in "\n".join(lines)


def test_progress_tells_a_step_once_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_progress, "QUIET_S", 0.0)
    shown = run_progress.Shown(quiet=False)
    first, second = (
        RunProgress(
            arm="block",
            done=turn,
            total=120,
            text=f"turn {turn} of 120",
            elapsed_s=float(turn),
            eta_s=Missing("unknown"),
            usd=Missing("no price"),
        )
        for turn in (1, 2)
    )
    for progress in (first, first, first, second, second):
        shown.show(make_runs.run(state="running", progress=progress))
    lines = capsys.readouterr().err.splitlines()
    assert ["turn 1 of 120" in line for line in lines] == [True, False]


def test_a_run_that_waits_says_for_what() -> None:
    waits = make_runs.queued(reason="it waits: 1 session is at work")
    assert told(waits).endswith("it waits: 1 session is at work")


def test_parameters_are_told_with_bounds_and_presets() -> None:
    parameter = Parameter(
        name="streams",
        kind="wholes",
        help="Streams at once.",
        default=(1, 2),
        presets={"quick": (1,)},
        least=1,
        most=512,
    )
    offer = Experiment(name="x", title="X", question="?", parameters=(parameter,))
    text = "\n".join(parameter_help(offer))
    assert "1,2; quick 1; at least 1, at most 512" in text


@given(
    done=st.integers(min_value=0, max_value=120),
    elapsed_s=st.floats(min_value=0, max_value=1e6),
    eta_s=st.one_of(st.none(), st.floats(min_value=0, max_value=1e6)),
)
def test_progress_is_one_line_whatever_it_is(
    done: int, elapsed_s: float, eta_s: float | None
) -> None:
    progress = RunProgress(
        arm="block",
        done=done,
        total=120,
        text=f"turn {done} of 120",
        elapsed_s=elapsed_s,
        eta_s=Missing("unknown") if eta_s is None else Estimated(eta_s),
        usd=Missing("no price"),
    )
    line = told(make_runs.run(state="running", progress=progress))
    assert "\n" not in line
    assert f"turn {done} of 120" in line
    assert ("left" in line) == (eta_s is not None)
