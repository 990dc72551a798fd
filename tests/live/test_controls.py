"""The controls of a running engine, from the command line to the simulated engine and back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.live.console import Console, console_of

PROFILE = """
kind = "sim"
served_name = "coder"
model = "simulated/qwen3-coder-30b"
max_model_len = 65536
max_running = 8
prefix_caching = true
tool_call_parser = "hermes"
start_timeout_s = 20
stall_after_s = 5
arguments = ["--start-s", "0.3", "--speed", "4"{more}]
"""
SETTINGS = """
[gateway]
port = 0
[service]
interval_s = 0.2
drain_s = 1
restart_engine = false
"""
SLEEPS = ', "--enable-sleep-mode"'
WORDS = "the window keeps what the ledger drops and the gauge folds it " * 40


class Controlled(Console):
    """A console whose journal and requests a test looks at."""

    def start(self, more: str = SLEEPS, route: str = "auto") -> None:
        self.profile("sim", PROFILE.format(more=more) + f'messages_route = "{route}"\n')
        self.succeed("engine", "start", "sim")

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = self.paths.events.read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["kind"] == kind]

    def newest(self, kind: str) -> dict[str, Any]:
        return self.events(kind)[-1]

    def until(self, holds: Any, timeout_s: float = 20) -> dict[str, Any]:
        deadline_s = time.monotonic() + timeout_s
        while not holds(snapshot := self.status()):
            assert time.monotonic() < deadline_s, json.dumps(snapshot)
            time.sleep(0.05)
        return snapshot

    def ask(self, tokens: int = 20, text: str = WORDS) -> httpx.Response:
        body = {
            "model": "coder",
            "max_tokens": tokens,
            "messages": [{"role": "user", "content": text}],
            "vllm_xargs": {"answer_tokens": tokens},
        }
        url = f"{self.gateway}/v1/chat/completions"
        return httpx.post(url, json=body, timeout=60, trust_env=False)

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """A command that goes on while the test looks."""
        return subprocess.Popen(
            [sys.executable, "-m", "a40console", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @contextmanager
    def streaming(self, count: int) -> Iterator[list[str]]:
        """Clients that stream inside the block; how each ended is listed as it ends."""
        gateway, stop = self.gateway, threading.Event()
        ended: list[str] = []
        clients = [
            threading.Thread(target=stream, args=(gateway, number, stop, ended), daemon=True)
            for number in range(count)
        ]
        for client in clients:
            client.start()
        try:
            self.until(lambda s: s["requests"]["running"] == count)
            yield ended
        finally:
            stop.set()
            for client in clients:
                client.join(30)


def stream(gateway: str, number: int, stop: threading.Event, ended: list[str]) -> None:
    """Stream until told to stop, or until the answer ends."""
    body = {
        "model": "coder",
        "max_tokens": 40_000,
        "stream": True,
        "messages": [{"role": "user", "content": f"stream {number}"}],
        "vllm_xargs": {"answer_tokens": 40_000},
    }
    url, reason = f"{gateway}/v1/chat/completions", "left"
    with (
        httpx.Client(timeout=60, trust_env=False) as http,
        http.stream("POST", url, json=body) as answer,
    ):
        for line in answer.iter_lines():
            if stop.is_set():
                return
            if '"finish_reason":' in line and '"finish_reason":null' not in line:
                reason = json.loads(line[6:])["choices"][0]["finish_reason"] or reason
    ended.append(reason)


@pytest.fixture(scope="module")
def service() -> Iterator[Controlled]:
    with console_of(Controlled) as made:
        made.configure(SETTINGS)
        made.serve("--no-engine")
        yield made


@pytest.fixture
def served(service: Controlled) -> Iterator[Controlled]:
    """One service for all, with no engine and an open gate before a test."""
    yield service
    service.run("engine", "stop", "--yes")
    service.run("engine", "resume")


def test_one_slot_is_aborted_and_the_others_go_on(served: Controlled) -> None:
    served.start()
    with served.streaming(3) as ended:
        slots = {slot["slot"]: slot for slot in served.status()["slots"]}
        said = served.succeed("engine", "abort", "1", "--yes")
        assert slots[1]["request_id"] in said
        assert re.search(r"slot 1 is aborted, ≈ [\d,]+ tokens generated, as last read", said)
        after = served.until(lambda s: s["requests"]["running"] == 2)
        left = {slot["request_id"] for slot in after["slots"]}
        assert left == {slots[0]["request_id"], slots[2]["request_id"]}
        served.wait_for(lambda: ended == ["abort"], 5)
    event = served.newest("request.aborted")
    assert event["data"]["request"] == slots[1]["request_id"]
    assert (event["data"]["before"], event["data"]["after"]) == ("decode", "aborted")
    assert ", pid " in event["data"]["who"]
    assert event["data"]["result"].startswith("≈ ")
    refused = served.run("engine", "abort", "7", "--yes")
    assert refused.returncode == 5
    assert "Slot 7 holds no request" in refused.stderr


@pytest.mark.parametrize(
    "command", [("abort", "0"), ("sleep", "--drain", "0")], ids=["abort", "sleep"]
)
@pytest.mark.parametrize("called", [False, True], ids=["text", "call"])
@pytest.mark.parametrize("route", ["native", "translated"])
def test_a_message_that_the_operator_ends_does_not_look_finished(
    served: Controlled, command: tuple[str, ...], called: bool, route: str
) -> None:
    served.start(route=route)
    events: list[dict[str, Any]] = []
    client = threading.Thread(target=ask_message, args=(served.gateway, called, events))
    client.start()
    served.until(lambda s: s["slots"] and (s["slots"][0]["generated_tokens"] or 0) != 0)
    served.succeed("engine", *command, "--yes")
    client.join(20)
    kinds = [event["type"] for event in events]
    assert "content_block_delta" in kinds
    blocks = {event["content_block"]["type"] for event in events if "content_block" in event}
    assert blocks == {"tool_use" if called else "text"}
    assert kinds[-1] == "error"
    assert not {"message_delta", "message_stop"} & set(kinds)
    assert events[-1]["error"]["type"] == "api_error"
    assert "The operator ended this request" in events[-1]["error"]["message"]


def ask_message(gateway: str, called: bool, events: list[dict[str, Any]]) -> None:
    """Stream a message to its end."""
    body = {
        "model": "coder",
        "max_tokens": 40_000,
        "stream": True,
        "messages": [{"role": "user", "content": "say it all"}],
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
        "vllm_xargs": {"answer_tokens": 40_000, **({"tool": "Bash"} if called else {})},
    }
    with (
        httpx.Client(timeout=60, trust_env=False) as http,
        http.stream("POST", f"{gateway}/v1/messages", json=body) as answer,
    ):
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    events += [json.loads(line[6:]) for line in lines]


def test_without_a_terminal_an_abort_needs_a_yes(served: Controlled) -> None:
    served.start()
    nobody = served.run("engine", "abort", "0")
    assert nobody.returncode == 5
    assert "no request is running" in nobody.stderr
    with served.streaming(1):
        (slot,) = served.until(lambda s: len(s["slots"]) == 1)["slots"]
        refused = served.run("engine", "abort", str(slot["slot"]))
        assert refused.returncode == 2
        assert slot["request_id"] in refused.stderr
        assert "--yes" in refused.stderr


def test_the_prefix_cache_is_forgotten(served: Controlled) -> None:
    served.start()

    def cached() -> int:
        usage = served.ask().json()["usage"]
        return int((usage["prompt_tokens_details"] or {}).get("cached_tokens") or 0)

    assert cached() == 0
    assert cached() > 100
    with served.streaming(1):
        refused = served.run("engine", "reset-cache", "--yes")
        assert refused.returncode == 5
        assert "a running request holds some of it" in refused.stderr
    served.until(lambda s: s["requests"]["running"] == 0)
    assert "prefix cache is reset" in served.succeed("engine", "reset-cache", "--yes")
    assert cached() == 0
    data = served.newest("cache.reset")["data"]
    assert (data["after"], data["result"]) == ("empty", "reset")
    assert data["before"] == "unknown (the engine does not tell cached blocks from free ones)"


def test_paused_admission_holds_requests_and_says_who_paused_it(served: Controlled) -> None:
    served.start()
    served.succeed("engine", "pause")
    answers: list[int] = []
    client = threading.Thread(target=lambda: answers.append(served.ask().status_code))
    client.start()
    held = served.until(lambda s: s["requests"]["held"] == 1)
    assert held["requests"]["gate"].startswith("admission is paused by ")
    assert answers == []
    again = served.run("engine", "pause")
    assert again.returncode == 5
    assert "paused already" in again.stderr
    assert "1 held requests go on" in served.succeed("engine", "resume")
    client.join(20)
    assert answers == [200]
    assert served.newest("admission.resumed")["data"]["before"].startswith("admission is paused")
    assert served.run("engine", "resume").returncode == 5


def test_a_pause_outlasts_a_switch_and_a_crash_of_the_service(served: Controlled) -> None:
    served.start()
    served.succeed("engine", "pause")
    served.succeed("engine", "restart", "--yes")
    assert served.status()["requests"]["gate"].startswith("admission is paused by ")
    worker = served.status()["service"]["pid"]
    os.kill(worker, signal.SIGKILL)
    served.wait_for(lambda: served.run("status", "--json").returncode == 0, 15)
    snapshot = served.until(lambda s: s["engine"]["state"] == "serving")
    assert snapshot["service"]["pid"] != worker
    assert snapshot["requests"]["gate"].startswith("admission is paused by ")
    served.succeed("engine", "resume")
    assert served.ask().status_code == 200


def test_a_drain_is_bounded_and_says_what_is_left(served: Controlled) -> None:
    served.start()
    with served.streaming(1) as ended:
        said = served.succeed("engine", "drain", "--drain", "0.5")
        assert "1 of 1 requests still run after 0.5 s: slot 0 (" in said
        assert ended == []
        assert served.status()["requests"]["gate"].startswith("admission is paused by ")
    data = served.newest("engine.drained")["data"]
    assert (data["before"], data["after"]) == ("1 running", "1 running")
    served.until(lambda s: s["requests"]["running"] == 0)
    assert "Drained in 0.0 s: 0 requests ended" in served.succeed("engine", "drain")
    served.succeed("engine", "resume")


def test_an_engine_sleeps_and_wakes_to_serve(served: Controlled) -> None:
    served.start()
    said = served.succeed("engine", "sleep", "--yes")
    assert "sleeps" in said
    snapshot = served.status()
    assert (snapshot["engine"]["state"], snapshot["engine"]["phase"]) == (
        "asleep",
        "asleep, level 1",
    )
    refused = served.ask()
    assert refused.status_code == 503
    assert "engine wake" in refused.text
    woke = served.succeed("engine", "wake")
    assert "stands the canary" in woke
    assert served.status()["engine"]["state"] == "serving"
    assert served.ask().status_code == 200
    assert served.newest("engine.slept")["data"]["after"] == "asleep, level 1"
    data = served.newest("engine.woken")["data"]
    assert (data["before"], data["after"], data["result"]) == (
        "asleep, level 1",
        "serving",
        "serves",
    )


def test_an_engine_that_wakes_to_gibberish_serves_nobody(served: Controlled) -> None:
    served.start(SLEEPS + ', "--fault", "junk_after_wake"')
    assert served.ask().status_code == 200
    served.succeed("engine", "sleep", "--level", "2", "--yes")
    refused = served.run("engine", "wake")
    assert refused.returncode == 6, (refused.stdout, refused.stderr)
    assert "does not stand the canary" in refused.stderr
    assert "engine restart" in refused.stderr
    engine = served.status()["engine"]
    assert engine["state"] == "asleep"
    assert "its answers were not well when it woke" in engine["phase"]
    assert served.ask().status_code == 503
    event = served.newest("engine.woken")
    assert (event["severity"], event["data"]["result"]) == ("error", "refused")
    served.succeed("engine", "restart", "--yes")
    assert served.ask().status_code == 200


def test_an_engine_that_sleeps_is_found_asleep_by_the_next_service(served: Controlled) -> None:
    served.start()
    served.succeed("engine", "sleep", "--yes")
    os.kill(served.status()["service"]["pid"], signal.SIGKILL)
    served.wait_for(lambda: served.run("status", "--json").returncode == 0, 15)
    served.until(lambda s: s["engine"]["state"] == "asleep")
    served.succeed("engine", "wake")
    assert served.ask().status_code == 200


def test_what_the_engine_cannot_do_is_refused_with_its_reason(served: Controlled) -> None:
    served.start("")
    refused = served.run("engine", "sleep", "--yes")
    assert refused.returncode == 5
    assert "without --enable-sleep-mode" in refused.stderr
    assert served.status()["engine"]["state"] == "serving"
    routed = served.run("engine", "load", "other")
    assert routed.returncode == 5
    assert "sim serves one model" in routed.stderr


def test_the_probe_measures_an_idle_engine_and_yields_to_clients(served: Controlled) -> None:
    served.start()
    told = json.loads(served.succeed("engine", "probe", "--seconds", "3", "--json"))["result"]
    assert told["report"].startswith("SIMULATED: ")
    assert told["verdict"] == "SIMULATED: idle silicon"
    speeds = [float(told[f"tokens_per_s_at_{streams}"]) for streams in (1, 2, 4)]
    assert speeds[0] < speeds[1] < speeds[2]
    assert served.newest("engine.probed")["data"]["verdict"] == "SIMULATED: idle silicon"
    with served.streaming(1):
        refused = served.run("engine", "probe", "--seconds", "3")
        assert refused.returncode == 5
        assert "needs the engine for itself" in refused.stderr


def test_an_engine_that_dies_on_its_way_to_sleep_is_told_as_dead(served: Controlled) -> None:
    served.start()
    with served.streaming(1):
        going = served.begin("engine", "sleep", "--yes", "--drain", "20")
        served.until(lambda s: s["engine"]["state"] == "draining")
        os.kill(served.status()["engine"]["pid"], signal.SIGKILL)
        assert going.wait(30) == 4
    served.until(lambda s: s["engine"]["state"] == "failed")
    served.succeed("engine", "start", "sim")
    assert served.ask().status_code == 200


def test_a_stop_on_the_way_to_sleep_wins_and_a_second_change_is_refused(
    served: Controlled,
) -> None:
    served.start()
    with served.streaming(1):
        going = served.begin("engine", "sleep", "--yes", "--drain", "20")
        served.until(lambda s: s["engine"]["state"] == "draining")
        refused = served.run("engine", "restart", "--yes")
        assert refused.returncode == 5
        assert "A sleep of sim is under way" in refused.stderr
        served.succeed("engine", "stop", "--yes")
        assert going.wait(30) == 5
    assert served.status()["engine"]["state"] == "stopped"
