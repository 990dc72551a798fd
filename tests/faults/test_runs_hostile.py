"""What is thrown at a run on purpose: servers that never end, keys given back, files taken away."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from a40console.model.codec import encode
from a40console.model.run import RunSpec, RunTarget
from tests.faults.console import kill
from tests.faults.hostile_server import HostileServer, hostile_server
from tests.faults.runs import ENDED, LONG, SHORT, Run, RunConsole, assert_whole, run_console

pytestmark = pytest.mark.slow

KEY = "sk-0123456789abcdefABCDEF"
MOST_CHILD_BYTES = 700 * 1024 * 1024


@pytest.fixture(scope="module")
def console() -> Iterator[RunConsole]:
    with run_console() as made:
        made.serve("--profile", "sim")
        made.succeed("wait", "ready", "--timeout", "60")
        yield made


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with hostile_server() as made:
        yield made


def order(server: HostileServer, **changes: Any) -> str:
    target = RunTarget(kind="url", url=server.url, model=changes.pop("model", "odd"))
    spec = RunSpec(experiment="sweep", preset="quick", parameters=SHORT, target=target, **changes)
    return json.dumps(encode(spec))


def told(console: RunConsole, command: str, **arguments: str) -> dict[str, Any]:
    """What became of a command, whose arguments may hold what no command line takes."""
    with console._http() as client:
        body = json.dumps(arguments).encode()
        result: dict[str, Any] = client.post(f"/v1/commands/{command}", content=body).json()
        deadline_s = time.monotonic() + 60
        while result.get("state") == "running":
            assert time.monotonic() < deadline_s, result
            time.sleep(0.05)
            result = client.get(f"/v1/commands/{result['id']}").json()
    return result


def run_at(console: RunConsole, server: HostileServer, **changes: Any) -> Run:
    key = changes.pop("key", "")
    result = told(
        console, "run.start", spec=order(server, **changes), **({"key": key} if key else {})
    )
    assert result["state"] == "done", result
    return console.until_ended(result["result"]["id"], 180)


# --- Servers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["head", "line", "content"])
def test_an_answer_without_an_end_ends_the_run_and_not_the_machine(
    console: RunConsole, server: HostileServer, way: str
) -> None:
    server.answers = way
    result = told(console, "run.start", spec=order(server, max_minutes=1.0))
    run_id, most = result["result"]["id"], 0
    while console.listed()[run_id]["state"] not in ENDED:
        try:
            most = max(most, console.child(run_id).memory_info().rss)
        except (OSError, ValueError, psutil.Error):
            time.sleep(0.1)
    run = console.until_ended(run_id)
    assert run["state"] == "failed", run
    assert any(why in run["reason"] for why in ("does not end", "larger than", "limit")), run
    assert most < MOST_CHILD_BYTES


@pytest.mark.parametrize("way", ["deep", "huge", "odd names"])
def test_a_list_of_models_that_nobody_can_read_is_a_reason(
    console: RunConsole, server: HostileServer, way: str
) -> None:
    server.answers, server.lists = "well", way
    try:
        result = told(console, "run.start", spec=order(server, model=""))
        if result["state"] == "done":
            run = console.until_ended(result["result"]["id"], 120)
            assert "bug of ours" not in run["reason"]
        else:
            assert "bug of ours" not in result["trouble"]["message"]
    finally:
        server.lists = "well"
    assert console.listed() is not None, "what it was called can be told again"


# --- Keys -------------------------------------------------------------------------------------


def test_a_key_is_on_no_disk_and_in_no_command_line(
    console: RunConsole, server: HostileServer
) -> None:
    server.answers = "key"
    runs = []
    for before in (300, 376, 380, 388):
        server.before_key = before
        runs.append(run_at(console, server, key=KEY))
    server.answers, server.lists = "well", "key"
    runs.append(run_at(console, server, key=KEY, model=""))
    server.lists = "well"
    result = told(console, "run.start", spec=order(server), key=KEY)
    run_id = result["result"]["id"]
    console.wait_for(lambda: (console.folder(run_id) / "child.json").exists(), 60)
    assert KEY not in " ".join(_command_lines())
    runs.append(console.until_ended(run_id))
    assert KEY[:6] not in json.dumps(runs)
    files = [file for file in console.home.rglob("*") if file.is_file()]
    assert [file for file in files if KEY[:6].encode() in file.read_bytes()] == []


@pytest.mark.parametrize("key", ["two\nlines", "é", "x" * 5000])
def test_a_key_that_no_header_takes_is_refused_unseen(
    console: RunConsole, server: HostileServer, key: str
) -> None:
    result = told(console, "run.start", spec=order(server), key=key)
    assert result["state"] == "refused"
    assert key not in json.dumps(result, ensure_ascii=False)


def test_a_key_in_a_url_is_refused_unseen(console: RunConsole) -> None:
    for url in ("http://me:secret@x", "htp://me:secret@x", "http://x?key=secret"):
        result = console.asked_for("sweep", target=RunTarget(kind="url", url=url))
        assert result["state"] == "refused"
        assert "secret" not in json.dumps(result)


def _command_lines() -> list[str]:
    lines: list[str] = []
    for process in psutil.process_iter(["cmdline"]):
        lines += process.info["cmdline"] or []
    return lines


# --- Words and numbers ------------------------------------------------------------------------


def test_half_a_character_spoils_no_list(console: RunConsole, server: HostileServer) -> None:
    server.answers = "well"
    run = run_at(console, server, note="\ud800 \x1b[2J")
    for command, name in (("runs.note", "text"), ("runs.invalidate", "reason")):
        result = told(console, command, id=run["id"], **{name: "\udfff \x1b]0;owned\x07"})
        assert result["state"] == "done", result
    shown = console.succeed("runs", "show", run["id"]) + console.succeed("runs", "list")
    assert "\x1b]" not in shown
    assert console.listed()[run["id"]]["state"] == "invalid"


def test_numbers_that_no_table_holds_are_refused(console: RunConsole) -> None:
    for number in ("9" * 30, "9" * 5000):
        result = told(console, "hypotheses.conclude", id=number, state="open", runs="", why="")
        assert result["state"] == "refused", result
    with console._http() as client:
        some = next(iter(console.listed()))
        answer = client.get(f"/v1/runs/{some}/records?after={'9' * 30}")
    assert answer.json()["records"] == []


# --- Files ------------------------------------------------------------------------------------


def test_an_order_that_cannot_be_read_any_more_holds_up_nobody(console: RunConsole) -> None:
    first = console.begin_run("sweep", parameters={**LONG, "streams": "1", "requests": "3"})
    waits = console.begin_run("sweep", parameters=SHORT)
    last = console.begin_run("sweep", parameters=SHORT)
    (console.folder(waits) / "order.json").write_bytes(b"\xff\0 no order")
    assert_whole(console.until_ended(first, 120))
    assert_whole(console.until_ended(last, 120))


def test_a_ledger_that_is_removed_is_whole_after_the_next_run(console: RunConsole) -> None:
    before = console.until_ended(console.begin_run("sweep", parameters=SHORT))
    for file in console.paths.ledger.parent.glob(f"{console.paths.ledger.name}*"):
        file.unlink()
    after = console.until_ended(console.begin_run("sweep", parameters=SHORT))
    os.sync()
    kill(int(console.status()["service"]["pid"]))
    console.wait_for(lambda: console.run("runs", "list").returncode == 0, 60)
    assert {before["id"], after["id"]} <= set(console.listed())
