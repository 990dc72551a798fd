"""Speculation turned by the command line while clients stream: service, gateway, engine, and back.

On the simulated engine; SIMULATED figures are compared with each other only.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.live.console import Console, console

PROFILE = """
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = 65536
max_running = 8
prefix_caching = true
start_timeout_s = 30
arguments = ["--start-s", "0.4", "--enable-mfu-metrics"]

[speculation]
{speculation}
tokens = 5
max_batched_tokens = 16384
"""
QUICK = "[gateway]\nport = 0\n[service]\ninterval_s = 0.3\nrestart_engine = false\n"


@pytest.fixture(scope="module")
def service() -> Iterator[Console]:
    with console() as made:
        made.configure(QUICK)
        made.serve("--no-engine")
        yield made


@pytest.fixture
def served(service: Console) -> Iterator[Console]:
    yield service
    service.run("engine", "stop", "--yes")


def start(made: Console, speculation: str) -> None:
    made.profile("sim", PROFILE.format(speculation=speculation))
    made.succeed("engine", "start", "sim")


def turn(made: Console, mode: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        made.succeed("engine", "speculation", mode, "--yes", "--json")
    )
    assert told["command"] == "engine.speculation"
    return told


def until(made: Console, condition: Any, timeout_s: float = 15) -> dict[str, Any]:
    deadline_s = time.monotonic() + timeout_s
    while not condition(snapshot := made.status()):
        assert time.monotonic() < deadline_s, json.dumps(snapshot["speculation"])
    return snapshot


async def stream(gateway: str, name: str, tokens: int) -> int:
    """One streamed message through the gateway, to its end; its tokens."""
    body = {
        "max_tokens": tokens,
        "stream": True,
        "messages": [{"role": "user", "content": f"{name}: change this code " * 40}],
        "vllm_xargs": {"answer_tokens": tokens, "regime": "code_edit"},
    }
    async with (
        httpx.AsyncClient(timeout=90) as client,
        client.stream("POST", f"{gateway}/v1/messages", json=body) as answer,
    ):
        assert answer.status_code == 200
        events = [
            json.loads(line[6:]) async for line in answer.aiter_lines() if line.startswith("data: ")
        ]
    assert events[-1]["type"] == "message_stop"
    return int(events[-2]["usage"]["output_tokens"])


async def turned_under_streams(made: Console) -> tuple[list[dict[str, Any]], list[int]]:
    streams = [asyncio.create_task(stream(made.gateway, f"s{n}", 1500)) for n in range(4)]
    await asyncio.sleep(1.0)
    told = []
    for mode in ("on", "off", "3"):
        told.append(await asyncio.to_thread(turn, made, mode))
        await asyncio.sleep(0.3)
    return told, [await one for one in streams]


def test_it_is_turned_while_four_clients_stream_and_none_notices(served: Console) -> None:
    start(served, 'start = "off"')
    speculation = until(served, lambda now: now["speculation"]["control"] == "live")["speculation"]
    assert (speculation["mode"], speculation["started_with"]) == ("off", 5)
    run_id = served.status()["engine"]["id"]
    told, generated = asyncio.run(turned_under_streams(served))
    assert generated == [1500] * 4
    results = [one["result"] for one in told]
    assert [(r["how"], r["before"], r["after"]) for r in results] == [
        ("live", "off", "5"),
        ("live", "5", "off"),
        ("live", "off", "3"),
    ]
    assert all(float(result["took_s"]) < 1.0 for result in results)
    events = [event for one in told for event in one["events"]]
    assert {event["kind"] for event in events} <= {"speculation.changed", "engine.messages"}
    changed = [event["data"] for event in events if event["kind"] == "speculation.changed"]
    assert all("completion passed" in data["canary"] and data["who"] for data in changed)
    now = until(served, lambda now: now["speculation"]["depth"] == 3)
    assert now["engine"]["id"] == run_id
    assert (now["speculation"]["mode"], now["speculation"]["control"]) == ("on", "live")
    assert now["speculation"]["depth_max"] == 5


def test_what_was_turned_outlives_the_service_and_a_restart_of_the_engine(served: Console) -> None:
    start(served, "enabled = true")
    until(served, lambda now: now["speculation"]["mode"] == "on")
    turn(served, "off")
    until(served, lambda now: now["speculation"]["mode"] == "off")
    served.succeed("engine", "restart", "--yes")
    now = until(served, lambda now: now["speculation"]["control"] == "live")["speculation"]
    assert (now["mode"], now["started_with"]) == ("off", 5)


def test_without_it_ready_it_goes_by_a_restart_which_is_said_first(served: Console) -> None:
    start(served, "enabled = false")
    assert served.status()["speculation"]["control"] == "restart"
    done = served.run("engine", "speculation", "on", "--yes")
    assert done.returncode == 0
    said = "By restart, with clients waiting (it was started without speculation): the last start"
    assert said in done.stderr
    # At once: what the service says of the new engine counts, not the snapshot of the one before.
    live = served.run("engine", "speculation", "off", "--yes")
    assert "Live, from the next pass on" in live.stderr
    assert "Speculation is off, was 5 (live)" in live.stdout
    deeper = turn(served, "7")["result"]
    assert (deeper["how"], deeper["after"]) == ("restart", "7")
    assert deeper["why"] == "7 is deeper than the 5 that it was started with"


def test_a_locked_profile_refuses(served: Console) -> None:
    start(served, 'start = "off"\nlocked = "drafts corrupt code here"')
    speculation = until(served, lambda now: now["slots"] == [])["speculation"]
    assert (speculation["control"], speculation["locked_reason"]) == (
        "none",
        "drafts corrupt code here",
    )
    refused = served.run("engine", "speculation", "on", "--yes", "--json")
    assert refused.returncode == 5
    assert json.loads(refused.stdout)["error"]["evidence"] == "drafts corrupt code here"
