"""The past survives whatever happens to the service, its disk and its engine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from a40console.model.control import Digest, History
from a40console.model.figures import Missing
from a40console.model.figures import number as known
from a40console.service.client import ServiceClient
from a40console.service.series import packed_at_s
from tests.faults.console import FaultConsole, fault_console, kill
from tests.faults.namespaces import MountNamespace, mount_namespace


def history(console: FaultConsole) -> History:
    async def read() -> History:
        async with ServiceClient(console.paths.control_socket) as client:
            return await client.history(points=5000)

    return asyncio.run(read())


def digest(console: FaultConsole, since_event: int) -> Digest:
    async def read() -> Digest:
        async with ServiceClient(console.paths.control_socket) as client:
            return await client.digest(since_event=since_event)

    return asyncio.run(read())


def serving(console: FaultConsole) -> None:
    console.serve("--profile", "fake")
    console.succeed("wait", "ready", "--timeout", "30")


def starts(console: FaultConsole) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(console.succeed("engine", "history", "--json"))[
        "starts"
    ]
    return found


def written_s(console: FaultConsole) -> float:
    """Begin of the newest second that is on the disk."""
    file = console.paths.state / "history.sqlite"
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as rows:
        newest = "SELECT data FROM rows WHERE step_s = 1 ORDER BY id DESC LIMIT 1"
        row = rows.execute(newest).fetchone()
    return packed_at_s(row[0]) if row else 0.0


def known_points(told: History) -> int:
    return sum(known(one.generation_tokens_per_s) is not None for one in told.points)


def test_a_worker_and_then_the_whole_service_are_killed(console: FaultConsole) -> None:
    serving(console)
    console.ask()
    console.succeed("note", "pruning", "off")
    engine = console.status()["engine"]["pid"]
    console.until(lambda s: known_points(history(console)) >= 3)
    before = history(console)
    console.until(lambda s: written_s(console) >= before.points[-1].at_s)
    [note] = [event for event in console.events() if event["kind"] == "note.added"]
    files = [path for path in console.paths.state.rglob("*") if path.is_file()]
    assert [path for path in files if path.stat().st_mode & 0o077] == [], "ours alone"

    kill(console.status()["service"]["pid"])
    console.until(lambda s: s["engine"]["state"] == "serving", 15)
    again = history(console)
    kept = {one.at_s for one in again.points}
    assert kept >= {one.at_s for one in before.points}, "what is written is not lost"
    assert again.points[0].at_s == before.points[0].at_s

    assert console.service is not None
    worker = console.status()["service"]["pid"]
    os.kill(console.service.pid, signal.SIGKILL)
    kill(worker)
    console.service.wait(10)
    time.sleep(2.5)
    console.serve()
    console.until(lambda s: s["engine"]["state"] == "serving", 15)
    after = console.until(lambda s: s["throughput"]["generation_tokens_per_s"] == 0.0, 15)
    assert after["engine"]["pid"] == engine
    told = history(console)
    assert {one.at_s for one in told.points} >= {one.at_s for one in before.points}
    gaps = [one for one in told.points if isinstance(one.held, Missing)]
    assert gaps, "the time without a service is a gap"
    assert all("the service did not run" in one.held.reason for one in gaps)  # type: ignore[union-attr]
    [start] = starts(console)
    assert start["end"] == {"missing": "it runs"}
    assert known_phase_seconds(start) > 0
    assert note in [
        {name: event[name] for name in note}
        for event in json.loads(console.succeed("events", "--kind", "note", "--json"))["events"]
    ]


def known_phase_seconds(start: dict[str, Any]) -> float:
    return float(sum(phase["seconds"] for phase in start["phases"]))


def test_a_crash_is_told_with_its_start_its_end_and_its_restart(console: FaultConsole) -> None:
    serving(console)
    read = console.status()["events_last_id"]
    console.ask()
    first = console.status()["engine"]
    console.control(ready_s=2.5)  # a second of the history in which nothing serves, at the least
    os.killpg(first["session_id"], signal.SIGKILL)
    console.until(lambda s: s["engine"]["restarts"] == 1 and s["engine"]["state"] == "serving", 40)
    second, ended = starts(console)
    assert ended["id"] == first["id"]
    assert ended["end"]["signal"] == "SIGKILL"
    assert ended["served_s"] >= 0
    assert second["end"] == {"missing": "it runs"}
    assert second["ready_after_s"] > 0
    told = digest(console, read)
    assert [one.id for one in told.starts] == [second["id"]]
    assert [one.id for one in told.ends] == [first["id"]]
    assert told.errors >= 1
    assert known(told.requests_finished) == 1
    assert (known(told.longest_gap_s) or 0) >= 1
    reasons = {
        one.generation_tokens_per_s.reason
        for one in history(console).points
        if isinstance(one.generation_tokens_per_s, Missing)
    }
    assert any("starting" in reason or "failed" in reason for reason in reasons), reasons

    # A worker that finds this engine again has not forgotten what went before.
    shown = console.status()["engine"]
    kill(console.status()["service"]["pid"])
    adopted = console.until(lambda s: s["engine"]["state"] == "serving", 15)["engine"]
    assert (adopted["restarts"], adopted["exit"]) == (1, shown["exit"])
    assert adopted["exit"]["signal"] == "SIGKILL"
    assert starts(console)[0]["ready_after_s"] == second["ready_after_s"]


def test_a_broken_file_is_put_aside_and_the_service_runs(console: FaultConsole) -> None:
    console.paths.state.mkdir(parents=True, exist_ok=True)
    file = console.paths.state / "history.sqlite"
    file.write_bytes(b"\x00 this was a database once" * 400)
    console.serve("--no-engine")
    assert "history.lost" in console.event_kinds()
    assert file.with_name("history.sqlite.broken").exists()
    console.until(lambda s: len(history(console).points) > 2)
    assert history(console).trouble is None


@pytest.fixture
def small_disk() -> Iterator[tuple[FaultConsole, MountNamespace]]:
    with mount_namespace() as space, fault_console(space.prefix) as console:
        home = str(console.home)
        space.run("sh", "-c", f"cp -a {home} {home}-copy")
        space.run("mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", home)
        space.run("sh", "-c", f"cp -a {home}-copy/. {home} && rm -r {home}-copy")
        yield console, space


def test_a_full_disk_costs_the_permanence_and_says_so(
    small_disk: tuple[FaultConsole, MountNamespace],
) -> None:
    console, space = small_disk
    space.run("sh", "-c", f"cat /dev/zero > {console.home}/filler || true")
    console.serve("--no-engine")
    console.until(lambda s: len(history(console).points) > 3)
    told = history(console)
    assert told.trouble is not None
    assert "history.sqlite" in told.trouble
    assert "The disk takes no history" in console.run("history").stderr
    space.run("rm", f"{console.home}/filler")
    deadline_s = time.monotonic() + 20
    while (now := history(console)).trouble is not None:
        assert time.monotonic() < deadline_s, now.trouble
        time.sleep(0.3)
    assert {one.at_s for one in now.points} >= {one.at_s for one in told.points}, "nothing is lost"
    kill(console.status()["service"]["pid"])
    console.until(lambda s: s["service"]["uptime_s"] < 5, 15)
    again = history(console)
    assert again.points[0].at_s == told.points[0].at_s
