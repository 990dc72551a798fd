"""What goes wrong around an experiment ends it with the reason, and never with a figure."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from a40console.model.run import RunTarget
from tests.faults.console import kill
from tests.faults.namespaces import mount_namespace
from tests.faults.odd_server import OddServer, odd_server
from tests.faults.runs import (
    ENDED,
    LONG,
    SHORT,
    Run,
    RunConsole,
    assert_broken_off,
    assert_no_verdict,
    assert_whole,
    figures,
    run_console,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared() -> Iterator[RunConsole]:
    with run_console() as made:
        made.serve("--profile", "sim")
        made.succeed("wait", "ready", "--timeout", "30")
        yield made


@pytest.fixture
def console(shared: RunConsole) -> Iterator[RunConsole]:
    """The shared console, its engine serving and nothing running before and after."""
    if shared.status()["engine"]["state"] != "serving":
        shared.succeed("engine", "start", "sim")
    yield shared
    for run_id, run in shared.listed().items():
        if run["state"] in ("queued", "running"):
            shared.run("run", "cancel", run_id)
            shared.until_ended(run_id)


def engine_pid(console: RunConsole) -> int:
    return int(console.status()["engine"]["pid"])


# --- The engine, the run's process, the service -----------------------------------------------


def test_an_engine_that_dies_in_an_arm_ends_the_run_with_the_reason(console: RunConsole) -> None:
    run_id = console.begin_run("sweep", parameters=LONG)
    console.until_measuring(run_id, 3)
    kill(engine_pid(console))
    run = console.until_ended(run_id)
    assert run["state"] in ("partial", "failed"), run
    assert "engine" in run["reason"]
    assert_no_verdict(run)
    failed = [sample for sample in console.samples(run_id) if sample["error"]]
    assert failed, "the request that was cut is an error"
    assert all("missing" in sample["total_s"] for sample in failed)


def test_a_cancelled_run_keeps_what_it_measured(console: RunConsole) -> None:
    run_id = console.begin_run("sweep", parameters={**LONG, "requests": "4", "streams": "1,2,4"})
    console.wait_for(lambda: "arm" in console.records(run_id), 60)
    console.succeed("run", "cancel", run_id)
    run = console.until_ended(run_id)
    assert_broken_off(run, "cancelled by")
    assert figures(run), "the arm that was measured is told"


def test_a_run_cancelled_before_it_measured_anything_has_no_figure(console: RunConsole) -> None:
    first = console.begin_run("sweep", parameters=LONG)
    waits = console.begin_run("sweep", parameters=SHORT)
    console.succeed("run", "cancel", waits)
    run = console.until_ended(waits)
    assert run["state"] == "failed"
    assert "before it began" in run["reason"]
    assert figures(run) == []
    console.succeed("run", "cancel", first)
    console.until_ended(first)


def test_a_killed_process_of_a_run_leaves_what_it_recorded(console: RunConsole) -> None:
    run_id = console.begin_run("sweep", parameters={**LONG, "requests": "4", "streams": "1,2,4"})
    console.wait_for(lambda: "arm" in console.records(run_id), 60)
    console.child(run_id).kill()
    run = console.until_ended(run_id)
    assert_broken_off(run, "killed")
    assert console.samples(run_id)
    following = console.begin_run("sweep", parameters=SHORT)
    assert_whole(console.until_ended(following))  # the queue goes on


def test_a_killed_service_takes_the_run_up_again(console: RunConsole) -> None:
    run_id = console.begin_run("sweep", parameters=LONG)
    console.until_measuring(run_id, 3)
    child = console.child(run_id)
    kill(int(console.status()["service"]["pid"]))
    console.wait_for(lambda: console.run("status", "--json").returncode == 0, 30)
    assert child.is_running()
    recorded = len(console.records(run_id))
    console.until_run(run_id, lambda run: run["state"] == "running")
    console.wait_for(lambda: len(console.records(run_id)) > recorded, 30)
    console.succeed("run", "cancel", run_id)  # it is known which process carries it out
    assert_broken_off(console.until_ended(run_id), "cancelled by")


def test_two_runs_at_once_take_turns(console: RunConsole) -> None:
    first = console.begin_run("sweep", parameters=SHORT)
    second = console.begin_run("sweep", parameters=SHORT)
    console.until_run(second, lambda run: run["state"] in ("queued", "running", "done"))
    before, after = console.until_ended(first), console.until_ended(second)
    assert_whole(before)
    assert_whole(after)
    assert before["ended_at"] <= after["started_at"]


def test_a_stop_of_the_engine_ends_the_run_and_says_who(console: RunConsole) -> None:
    run_id = console.begin_run("sweep", parameters=LONG)
    console.until_measuring(run_id, 3)
    refused = console.refused(5, "engine", "restart", "--yes")
    assert run_id in refused
    console.succeed("engine", "stop", "--yes")
    run = console.until_ended(run_id)
    assert_broken_off(run, "engine was stopped by")


# --- What is asked for ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"experiment": "speeed"}, "speeed"),
        ({"preset": "huge"}, "huge"),
        ({"parameters": {"strams": "1"}}, "strams"),
        ({"parameters": {"streams": "none"}}, "whole number"),
        ({"parameters": {"streams": "0"}}, "at least 1"),
        ({"parameters": {"streams": "1,1"}}, "twice"),
        ({"parameters": {"output_tokens": "1e9"}}, "whole number"),
        ({"parameters": {"prompt_tokens": "199999"}}, "32"),
        ({"target": RunTarget(kind="url", url="ftp://nowhere")}, "ftp"),
        ({"target": RunTarget(kind="url", url="http://127.0.0.1:9", model="x")}, "127.0.0.1:9"),
    ],
)
def test_what_cannot_be_run_is_refused_or_fails_before_it_measures(
    console: RunConsole, changes: dict[str, Any], said: str
) -> None:
    before = set(console.listed())
    result = console.asked_for(**{"experiment": "sweep", **changes})
    if result["state"] != "done":
        trouble = result["trouble"]
        assert said in json.dumps(trouble), trouble
        assert set(console.listed()) == before
        return
    run = console.until_ended(result["result"]["id"])
    assert run["state"] == "failed", run
    assert said in run["reason"]
    assert figures(run) == []


def test_a_server_without_usage_gives_no_tokens(console: RunConsole) -> None:
    with odd_server(usage=False) as server:
        run = measured_at(console, server)
        samples = console.samples(run["id"])
        assert samples
        assert all("missing" in sample["generated_tokens"] for sample in samples)
    assert "No figure" in run["result"]["headline"]
    assert "no-usage" in {doubt["code"] for doubt in run["result"]["doubts"]}
    assert "tok/s" not in json.dumps(run["result"]["tables"])
    assert_no_verdict(run)


def test_failed_requests_are_counted_apart_from_latencies(console: RunConsole) -> None:
    with odd_server(error_every=10, cut_every=7) as server:
        run = measured_at(console, server, requests="20")
    samples = [one for one in console.samples(run["id"]) if not one["warm_up"]]
    failed = [one for one in samples if one["error"]]
    assert failed
    assert len(failed) < len(samples)
    assert all("missing" in one["total_s"] for one in failed)
    codes = {doubt["code"] for doubt in run["result"]["doubts"]}
    assert "request-errors" in codes


def measured_at(console: RunConsole, server: OddServer, **parameters: str) -> Run:
    target = RunTarget(kind="url", url=server.url, model="odd")
    run_id = console.begin_run("sweep", target=target, parameters={**SHORT, **parameters})
    return console.until_ended(run_id)


# --- The machine ------------------------------------------------------------------------------

STEPPING = """
import sys

if "a40console.service.run_child" in sys.orig_argv:
    import time

    real, began_s = time.time, time.monotonic()
    time.time = lambda: real() + (3600.0 if time.monotonic() - began_s > 3.0 else 0.0)
"""


def test_a_clock_that_is_set_during_an_arm_makes_the_run_invalid(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(STEPPING)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with run_console(PYTHONPATH=path) as console:
        console.serve("--profile", "sim")
        console.succeed("wait", "ready", "--timeout", "30")
        parameters = {**LONG, "streams": "1", "requests": "12"}
        run = console.until_ended(console.begin_run("sweep", parameters=parameters))
    assert run["state"] == "invalid"
    assert "clock" in run["reason"]
    assert "clock-step" in {doubt["code"] for doubt in run["result"]["doubts"]}


def test_a_disk_that_fills_during_a_run_ends_it_and_loses_no_other() -> None:
    with mount_namespace() as namespace, run_console(prefix=namespace.prefix) as console:
        namespace.run("mkdir", "-p", str(console.paths.runs))
        size = "size=48k"
        namespace.run("mount", "-t", "tmpfs", "-o", size, "tmpfs", str(console.paths.runs))
        console.serve("--profile", "sim")
        console.succeed("wait", "ready", "--timeout", "30")
        kept = console.until_ended(console.begin_run("sweep", parameters=SHORT))
        assert_whole(kept)
        run_id = console.begin_run("sweep", parameters={**LONG, "streams": "4", "requests": "50"})
        console.wait_for(lambda: console.status()["engine"]["state"] == "serving", 10)
        run = console.until_ended(run_id, 120)
        assert run["state"] in ("partial", "failed"), run
        assert_no_verdict(run)
        assert console.run_of(kept["id"])["result"] == kept["result"]


def test_a_run_that_ends_on_a_full_disk_is_kept_once_there_is_room() -> None:
    with mount_namespace() as namespace, run_console(prefix=namespace.prefix) as console:
        for folder, size in ((console.paths.state, "24m"), (console.paths.runs, "8m")):
            namespace.run("mkdir", "-p", str(folder))
            namespace.run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
        console.serve("--profile", "sim")
        console.succeed("wait", "ready", "--timeout", "30")
        assert console.listed() == {}  # the ledger is there
        run_id = console.begin_run("sweep", parameters={**SHORT, "requests": "30"})
        ballast = namespace.inside(console.paths.state / "ballast")
        fill(ballast)
        console.until_run(run_id, lambda run: run["state"] in ENDED)
        time.sleep(1)  # several attempts of the service's
        assert not console.has_document(run_id), "the ledger took it, full as its disk is"
        assert_whole(console.run_of(run_id))  # it is shown all the same
        ballast.unlink()
        console.wait_for(lambda: console.has_document(run_id), 60)
        assert console.samples(run_id)
        assert_whole(console.run_of(run_id))


def fill(ballast: Path) -> None:
    """Leave no byte of the disk free."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
