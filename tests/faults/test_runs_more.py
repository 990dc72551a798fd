"""What else ends an experiment: a limit, a window that is too small, services that come and go."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from a40console.model.run import RunTarget
from tests.faults.console import kill
from tests.faults.runs import (
    LONG,
    SETTINGS,
    RunConsole,
    assert_broken_off,
    assert_whole,
    run_console,
)

pytestmark = pytest.mark.slow

ONE_ARM = {**LONG, "streams": "1", "requests": "12"}
"""Some seconds of one stream."""


@pytest.fixture(scope="module")
def shared() -> Iterator[RunConsole]:
    with run_console() as made:
        made.configure(SETTINGS.replace("restart_engine = false", "restart_engine = true"))
        made.serve("--profile", "sim")
        yield made


@pytest.fixture
def console(shared: RunConsole) -> RunConsole:
    """An engine that is started again when it ends by itself."""
    shared.succeed("wait", "ready", "--timeout", "60")
    return shared


def set_fault(console: RunConsole, name: str, argument: str | None) -> None:
    token = (console.run_folder() / "plugin.token").read_text()
    transport = httpx.HTTPTransport(uds=console.engine_socket())
    with httpx.Client(transport=transport, base_url="http://engine") as engine:
        headers = {"authorization": f"Bearer {token}"}
        engine.post("/sim/v1/faults", json={name: argument}, headers=headers).raise_for_status()


def test_a_request_that_hangs_ends_with_the_limit_of_the_run(console: RunConsole) -> None:
    run_id = console.begin_run("sweep", max_minutes=0.1, parameters=ONE_ARM)
    console.until_measuring(run_id, 3)
    set_fault(console, "hang", "")
    try:
        run = console.until_ended(run_id, 60)
    finally:
        set_fault(console, "hang", None)
    assert_broken_off(run, "its limit of 0.1 min is met")


def test_a_service_that_is_stopped_leaves_the_run_to_the_next_one(console: RunConsole) -> None:
    run_id = console.begin_run("sweep", parameters=ONE_ARM)
    console.until_measuring(run_id, 3)
    assert "keeps running" in console.succeed("stop")
    run = console.until_ended(run_id)  # `runs list` starts a service
    assert_whole(run)
    assert not [one for one in console.samples(run_id) if one["error"]]


def test_a_run_whose_service_was_killed_with_it_is_told_by_the_next_one(
    console: RunConsole,
) -> None:
    run_id = console.begin_run("sweep", parameters={**LONG, "requests": "6"})
    console.wait_for(lambda: "arm" in console.records(run_id), 60)
    child = console.child(run_id)
    kill(int(console.status()["service"]["pid"]))
    child.kill()
    run = console.until_ended(run_id)
    assert_broken_off(run, "killed")
    assert console.samples(run_id), "what it had recorded is kept"


def test_a_run_does_not_go_on_with_the_engine_that_came_after(console: RunConsole) -> None:
    for kind in ("engine", "gateway"):
        console.succeed("wait", "ready", "--timeout", "60")
        run_id = console.begin_run("sweep", target=RunTarget(kind=kind), parameters=ONE_ARM)
        console.until_measuring(run_id, 3)
        kill(int(console.status()["engine"]["pid"]))
        run = console.until_ended(run_id)
        assert run["state"] in ("partial", "failed", "invalid"), run
        assert run["reason"]
        assert run["result"]["verdict"]["kind"] == "none"


def test_a_turn_that_overflows_the_window_costs_its_arm_alone(console: RunConsole) -> None:
    lengths = "2400;6000/40*6"
    parameters = {
        "ways": "none,block",
        "thresholds": "16000",
        "lengths": lengths,
        "repeats": "1",
        "facts": "1",
    }
    run = console.until_ended(console.begin_run("compaction", parameters=parameters))
    assert_whole(run)
    (score, *_) = run["result"]["tables"]
    assert "overflows the window" in score["note"]
    rows = {row[0]: row[1:] for row in score["rows"]}
    assert "missing" in rows["none"][0], "no seconds of a session that was not whole"
    assert isinstance(rows["block-16k"][0], int | float)
    assert "none" not in json.dumps(run["result"]["verdict"]["winner"])
