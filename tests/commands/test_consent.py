"""What a command that stops the engine says and asks before: in a script, and on a terminal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from a40console.errors import Exit
from a40console.model.engine import EngineState
from a40console.model.figures import Missing
from a40console.model.request_named import request_named
from a40console.tui.losses import at_stake, losses
from tests import make_sessions
from tests import make_snapshot as make
from tests.commands.console_process import Run, Service, on_terminal

STOPPING = [
    pytest.param(("stop",), "Stop the engine? Running requests are cut.", id="stop"),
    pytest.param(("restart",), "Restart the engine?", id="restart"),
    pytest.param(("switch", "other"), "Switch? Clients wait", id="switch"),
    pytest.param(("speculation", "24"), "Change speculation?", id="speculation"),
]


@pytest.mark.parametrize(("words", "question"), STOPPING)
def test_nobody_is_cut_unasked(
    words: tuple[str, ...], question: str, console: Run, service: Service
) -> None:
    service(state="serving", slots=3)
    refused = console("engine", *words)
    assert refused.returncode == Exit.USAGE
    assert "Nobody is here to be asked" in refused.stderr
    assert question in refused.stderr
    assert "3 requests running now." in refused.stderr
    assert "Say --yes" in refused.stderr
    assert not refused.stdout
    error = json.loads(console("engine", *words, "--json").stdout)["error"]
    assert (error["exit_code"], "3 requests" in error["evidence"]) == (2, True)
    assert console("engine", *words, "--yes").returncode == 0


@pytest.mark.parametrize(("words", "question"), STOPPING)
@pytest.mark.parametrize(("typed", "code"), [("n\n", Exit.REFUSED), ("y\n", Exit.DONE)])
def test_on_a_terminal_it_asks(
    words: tuple[str, ...],
    question: str,
    typed: str,
    code: Exit,
    environment: dict[str, str],
    service: Service,
) -> None:
    service(state="serving", slots=1)
    returned, said = on_terminal(environment, "engine", *words, stdin=typed)
    assert returned == code, said
    assert said.index("1 request running now.") < said.index(question.split("?")[0])


@pytest.mark.parametrize(("words", "question"), STOPPING)
def test_ctrl_c_at_the_question_ends_it(
    words: tuple[str, ...], question: str, environment: dict[str, str], service: Service
) -> None:
    service(state="serving", slots=1)
    returned, said = on_terminal(environment, "engine", *words, interrupt_at="[y/N]")
    assert returned == 130, said


def test_a_switch_says_what_it_costs_also_where_nobody_is_asked(
    console: Run, service: Service
) -> None:
    service(state="serving")
    run = console("engine", "switch", "other")
    assert run.returncode == 0
    assert "Clients wait ≈ 42 s for other to start (the median of 3 starts)." in run.stderr
    told = console("engine", "speculation", "24").stderr
    assert "By restart, with clients waiting (deeper than the start)" in told


def test_whose_requests_are_at_stake() -> None:
    idle, busy = make.idle(), make.snapshot()
    assert at_stake(idle) == []
    asked = replace(busy.requests, running=1, waiting=2, held=0)
    assert at_stake(replace(busy, requests=asked)) == [
        "1 request running now.",
        "2 requests queued in the engine.",
    ]
    held = replace(idle, requests=replace(idle.requests, held=4))
    assert at_stake(held) == ["4 requests held at the gateway."]
    for state in (EngineState.STARTING, EngineState.FAILED, EngineState.ASLEEP):
        down = replace(held, engine=replace(held.engine, state=state))
        assert at_stake(down) == ["4 requests held at the gateway."]
        assert at_stake(replace(busy, engine=replace(busy.engine, state=state))) == []


def test_what_is_not_known_is_not_nobody() -> None:
    untold = Missing("the engine does not tell")
    snapshot = make.snapshot(slots=(make.slot(slot=0), make.slot(slot=1, phase="held")))
    snapshot = replace(snapshot, requests=replace(snapshot.requests, running=untold, waiting=0))
    assert at_stake(snapshot) == ["1 request running now."]
    blind = replace(snapshot, slots=Missing("nothing is metered"))
    assert at_stake(blind) == ["How many requests run is not known: the engine does not tell."]


def test_contexts_are_lost_only_where_an_engine_serves() -> None:
    serving = make.snapshot(sessions=make_sessions.several())
    failed = replace(serving, engine=replace(serving.engine, state=EngineState.FAILED))
    for command in ("engine.stop", "engine.restart", "engine.apply"):
        assert "tokens read again" in losses(command, serving)[0]
        assert losses(command, failed) == []


def test_another_change_under_way_may_have_ended_so_it_is_asked_all_the_same(
    console: Run, service: Service
) -> None:
    service(state="serving", slots=1, switching=True, refuse_with=5)
    for words in (("restart",), ("switch", "other"), ("speculation", "24")):
        unasked = console("engine", *words)
        assert unasked.returncode == Exit.USAGE
        assert "is under way: until it has ended this is refused." in unasked.stderr
        assert console("engine", *words, "--yes").returncode == Exit.REFUSED
    stop = console("engine", "stop")
    assert stop.returncode == Exit.USAGE
    assert "is under way" not in stop.stderr


@pytest.mark.parametrize("mode", ["1234567", "9" * 5000, "0", "-1", "٣"])
def test_what_is_no_depth_is_a_usage_error(mode: str, console: Run) -> None:
    refused = console("engine", "speculation", "--", mode)
    assert refused.returncode == Exit.USAGE
    assert "Say on, off, or a depth such as 24." in refused.stderr


def test_a_deep_sleep_says_what_is_known_against_it(console: Run, service: Service) -> None:
    service(state="serving")
    known = "The weights are dropped: it may wake to gibberish"
    assert known in console("engine", "sleep", "--level", "2").stderr
    assert known not in console("engine", "sleep").stderr


def test_an_edit_by_restart_says_that_what_still_runs_is_cut(
    console: Run, service: Service
) -> None:
    service(state="serving")
    assert "what still runs after the drain is cut" in console("engine", "apply").stderr


def test_what_json_would_do_is_not_done_silently(console: Run, service: Service) -> None:
    service(state="serving")
    for words in (("engine", "apply"), ("profiles", "fix"), ("engine", "reset-cache")):
        run = console(*words, "--json")
        assert run.returncode == Exit.USAGE, words
        assert json.loads(run.stdout)["error"]["message"] == "Nobody is here to be asked"
    shown = json.loads(console("profiles", "fix", "--show", "--json").stdout)
    assert shown["offer"]["profile"]


def test_a_request_is_named_before_it_is_ended(
    console: Run, service: Service, environment: dict[str, str]
) -> None:
    service(state="serving", slots=2)
    for unnamed in ("7", "nobody"):
        refused = console("engine", "abort", unnamed)
        assert refused.returncode == Exit.REFUSED, "it is told before anything is asked"
        assert "running: 0: " in refused.stderr
    assert "Slot 7 holds no request" in console("engine", "abort", "7", "--yes").stderr
    assert "No 'nobody' runs" in refused.stderr
    unasked = console("engine", "abort", "1")
    assert unasked.returncode == Exit.USAGE
    request = make.slot(slot=1).request_id
    assert f"Slot 1: {request}" in unasked.stderr
    done = console("engine", "abort", "1", "--yes")
    assert done.returncode == Exit.DONE
    assert f"Slot 1 holds {request}." in done.stderr
    code, said = on_terminal(environment, "engine", "abort", "1", stdin="n\n")
    assert code == Exit.REFUSED
    assert said.index(f"Slot 1: {request}") < said.index("Abort it?")


def test_a_request_is_found_by_its_id_before_a_number() -> None:
    slots = (make.slot(slot=0, request_id="1"), make.slot(slot=1, request_id="b"))
    assert request_named(slots, "1") == slots[0]
    assert request_named(slots, "b") == slots[1]
    assert request_named(slots, "2") is None
    assert request_named(slots, "") is None


@pytest.mark.parametrize("words", [("reset-cache",), ("sleep",)])
def test_what_a_control_loses_is_said(
    words: tuple[str, ...], environment: dict[str, str], service: Service
) -> None:
    service(state="serving", sessions=True)
    code, said = on_terminal(environment, "engine", *words, stdin="n\n")
    assert code == Exit.REFUSED
    assert "tokens read again." in " ".join(said.split())
