"""Clients of a service whose engine goes away for a while: held, seen, and answered.

Row 43 of the bug replays: a request during a model switch of 40 s timed out, or failed at once.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.live.console import SCHEMA, Console, console

pytestmark = pytest.mark.slow

PROFILE = """
kind = "sim"
served_name = "{served}"
model = "simulated/qwen3-coder-30b"
max_model_len = 262144
max_running = 16
prefix_caching = true
start_timeout_s = 30
arguments = ["--start-s", "{start_s}", "--speed", "1"]
"""
SETTINGS = "[gateway]\nport = 0\nhold_requests = 6\n[service]\ninterval_s = 0.2\n"
SAY = [{"role": "user", "content": "count the waves"}]
HTTP = httpx.Client(timeout=90, trust_env=False)
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "messages": ("/v1/messages", {"messages": SAY, "stream": True}),
    "whole": ("/v1/messages", {"messages": SAY}),
    "chat": ("/v1/chat/completions", {"messages": SAY, "stream": True}),
    "completions": ("/v1/completions", {"prompt": "count", "stream": True}),
    "count": ("/v1/messages/count_tokens", {"messages": SAY}),
}
ENDS = {
    "messages": '"type":"message_stop"',
    "whole": '"stop_reason":"',
    "chat": "data: [DONE]",
    "completions": "data: [DONE]",
    "count": '"input_tokens"',
}


@pytest.fixture(scope="module")
def serving() -> Iterator[Console]:
    """A console whose engine takes a few seconds to start."""
    with console() as made:
        made.configure(SETTINGS)
        made.profile("old", PROFILE.format(served="old-name", start_s=2))
        made.profile("new", PROFILE.format(served="new-name", start_s=9))
        made.serve("--profile", "old")
        made.succeed("wait", "ready", "--timeout", "60")
        yield made


@pytest.fixture
def clients() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(12) as pool:
        yield pool


def ask(
    console: Console, kind: str, session: str = "", **more: Any
) -> tuple[int, str, httpx.Headers]:
    path, body = ASKED[kind]
    body = {"model": "old-name", "max_tokens": 24, **body, **more}
    headers = {"x-claude-code-session-id": session or kind}
    said = HTTP.post(console.gateway + path, json=body, headers=headers)
    return said.status_code, said.text, said.headers


def until(console: Console, holds: Any, timeout_s: float = 20) -> dict[str, Any]:
    deadline_s = time.monotonic() + timeout_s
    while not holds(snapshot := now(console)):
        assert time.monotonic() < deadline_s, json.dumps(snapshot["requests"])
        time.sleep(0.05)
    return snapshot


def now(console: Console) -> dict[str, Any]:
    """The snapshot of this moment: no command is as quick."""
    there = httpx.HTTPTransport(uds=str(console.paths.control_socket))
    with httpx.Client(transport=there) as client:
        snapshot: dict[str, Any] = client.get("http://service/v1/snapshot").json()
    SCHEMA.validate(snapshot)
    return snapshot


def test_43_through_a_switch_every_route_is_held_seen_and_answered(
    serving: Console, clients: ThreadPoolExecutor
) -> None:
    switching = clients.submit(serving.succeed, "engine", "switch", "new", "--yes")
    until(serving, lambda seen: seen["requests"]["gate"] is not None)
    asking = {kind: clients.submit(ask, serving, kind) for kind in ASKED}
    held = until(serving, lambda seen: seen["requests"]["held"] == 4)
    assert "new" in held["requests"]["gate"]
    assert {slot["session"] for slot in held["slots"]} == {
        "messages", "whole", "chat", "completions",
    }  # fmt: skip
    assert {slot["phase"] for slot in held["slots"]} == {"held"}
    assert {slot["model"] for slot in held["slots"]} == {"old-name"}
    assert all(0 <= slot["age_s"] < 20 for slot in held["slots"])
    phases = {one["session"]: (one["phase"], one["phase_s"]) for one in held["sessions"]}
    assert all(phases[kind][0] == "held" for kind in ("messages", "whole", "chat"))
    extra = [clients.submit(ask, serving, "chat", f"extra-{number}") for number in range(3)]
    refused = [said for said in map(Future.result, extra) if said[0] != 200]
    switching.result(60)
    for kind, answer in asking.items():
        status, text, _ = answer.result(60)
        assert status == 200, (kind, text)
        assert ENDS[kind] in text.replace('": "', '":"'), (kind, text)
    assert len(refused) == 2  # five were held, of six at most
    for status, text, headers in refused:
        assert (status, headers["retry-after"], "new" in text) == (503, "10", True)
    after = now(serving)
    assert (after["requests"]["gate"], after["requests"]["held"]) == (None, 0)
    assert after["engine"]["served_name"] == "new-name"


def test_43_what_a_crash_took_before_its_first_token_is_asked_again(
    serving: Console, clients: ThreadPoolExecutor
) -> None:
    words = [{"role": "user", "content": "the gauge folds what the ledger drops " * 3_000}]
    before = now(serving)
    kinds = ("messages", "whole", "chat")
    asking = {
        kind: clients.submit(ask, serving, kind, f"long-{kind}", messages=words) for kind in kinds
    }
    until(serving, lambda seen: len(seen["slots"]) == 3)
    assert {slot["phase"] for slot in now(serving)["slots"]} <= {"queued", "prefill"}
    os.kill(before["engine"]["pid"], signal.SIGKILL)
    held = until(serving, lambda seen: seen["requests"]["held"] == 3)
    assert held["requests"]["gate"] is not None
    for kind, answer in asking.items():
        status, text, _ = answer.result(60)
        assert status == 200, (kind, text)
        assert "error" not in text, (kind, text)
        assert ENDS[kind] in text.replace('": "', '":"'), (kind, text)
    after = now(serving)
    assert after["requests"]["resent"] == before["requests"]["resent"] + 3
    assert after["engine"]["restarts"] == 1
    told = [json.loads(line) for line in serving.paths.events.read_text().splitlines()]
    resent = [event for event in told if event["kind"] == "request.resent"]
    assert {event["data"]["session"] for event in resent} == {f"long-{kind}" for kind in kinds}
    sessions = {one["session"]: one for one in after["sessions"]}
    assert sessions["long-messages"]["turns"] == 1


def test_43_once_the_operator_stops_the_engine_nothing_is_held(serving: Console) -> None:
    serving.succeed("engine", "stop", "--yes")
    for kind in ASKED:
        began_s = time.monotonic()
        status, text, headers = ask(serving, kind)
        assert (status, "engine start" in text) == (503, True), text
        assert "retry-after" in headers
        assert time.monotonic() - began_s < 5


def test_43_a_service_that_stops_tells_those_it_holds(
    serving: Console, clients: ThreadPoolExecutor
) -> None:
    serving.succeed("engine", "start", "old")
    serving.succeed("engine", "pause")
    asking = [clients.submit(ask, serving, kind) for kind in ("messages", "whole", "chat")]
    until(serving, lambda seen: seen["requests"]["held"] == 3)
    serving.succeed("stop", "--engine")
    for answer in asking:
        status, text, headers = answer.result(20)
        assert (status, headers["retry-after"]) == (503, "10")
        assert "Send it again" in text
