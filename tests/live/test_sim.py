"""The console on the simulated engine: a real service, gateway and telemetry, and no GPU."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from tests.live.console import Console, console

PROFILE = """
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = 65536
max_running = 8
prefix_caching = true
start_timeout_s = 30
stall_after_s = 1
usd_per_hour = 0.44
arguments = ["--start-s", "0.5", "--enable-mfu-metrics"{faults}]

[speculation]
enabled = {speculating}
tokens = 5
max_batched_tokens = 16384
"""
SESSION = "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10"
WORDS = "the window keeps what the ledger drops and the gauge folds it " * 40
QUICK = "[gateway]\nport = 0\n[service]\ninterval_s = 0.3\nrestart_engine = false\n"


def profile(*faults: str, speculating: bool = False) -> str:
    words = "".join(f', "--fault", "{fault}"' for fault in faults)
    return PROFILE.format(faults=words, speculating=str(speculating).lower())


@pytest.fixture(scope="module")
def service() -> Iterator[Console]:
    with console() as made:
        made.configure(QUICK)
        made.serve("--no-engine")
        yield made


@pytest.fixture
def served(service: Console) -> Iterator[Console]:
    """One service for all, with no engine before a test and none after it."""
    yield service
    service.run("engine", "stop", "--yes")


def start(made: Console, *faults: str, speculating: bool = False) -> None:
    made.profile("sim", profile(*faults, speculating=speculating))
    made.succeed("engine", "start", "sim")


def until(made: Console, condition: Any, timeout_s: float = 20) -> dict[str, Any]:
    deadline_s = time.monotonic() + timeout_s
    while not condition(snapshot := made.status()):
        assert time.monotonic() < deadline_s, json.dumps(snapshot)
    return snapshot


async def two_streams(made: Console, tokens: int = 1500) -> tuple[dict[str, Any], list[int]]:
    """A snapshot while two clients of one session stream, and what each was charged for."""
    headers = {"user-agent": "claude-cli/2.1.332 (external, cli)"}
    headers["x-claude-code-session-id"] = SESSION
    body = {
        "max_tokens": 8192,
        "stream": True,
        "messages": [{"role": "user", "content": WORDS}],
        "vllm_xargs": {"answer_tokens": tokens, "regime": "code_edit"},
    }
    gateway = made.gateway

    async def one(client: httpx.AsyncClient) -> int:
        generated = 0
        async with client.stream("POST", f"{gateway}/v1/messages", json=body) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    usage = json.loads(line[6:]).get("usage", {})
                    generated = usage.get("output_tokens", generated)
        return generated

    async with httpx.AsyncClient(headers=headers, timeout=60) as client:
        first = asyncio.create_task(one(client))
        await asyncio.sleep(0.5)
        second = asyncio.create_task(one(client))
        await asyncio.sleep(2.5)
        snapshot = await asyncio.to_thread(made.status)
        return snapshot, [await first, await second]


def test_two_streams_are_seen_with_slots_speed_drafts_and_cache(served: Console) -> None:
    start(served, speculating=True)
    snapshot, generated = asyncio.run(two_streams(served))
    assert snapshot["simulated"] is True
    assert snapshot["engine"]["kind"] == "sim"
    assert snapshot["engine"]["version"] == "0.33.0+sim"
    assert [slot["phase"] for slot in snapshot["slots"]] == ["decode", "decode"]
    for slot in snapshot["slots"]:
        assert (slot["session"], slot["client"]) == (SESSION, "claude-code")
        assert slot["method"] == "engine"
        product = slot["passes_per_s"] * slot["tokens_per_pass"]
        assert product == pytest.approx(slot["tokens_per_s"], rel=0.01)
    assert snapshot["throughput"]["generation_tokens_per_s"] > 50
    drafts = snapshot["speculation"]
    assert (drafts["mode"], drafts["depth"]) == ("on", 5)
    assert len(drafts["accepted_ratio_per_position"]) == 5
    assert drafts["tokens_per_pass"] > 2
    cache = snapshot["prefix_cache"]
    assert cache["prompts"] == 2
    assert 0.4 < cache["hit_ratio"] < 0.51  # the second prompt was the first one's
    (gpu,) = snapshot["gpus"]
    assert (gpu["name"], gpu["source"]) == ("A40 (sim)", "sim.gpus")
    assert gpu["utilization_ratio"] > 0.5
    assert gpu["read_bytes_per_s"]["estimated"] is True
    assert snapshot["cost"]["usd_per_hour"] == pytest.approx(0.44)
    assert generated == [1500, 1500]
    ended = until(served, lambda now: not now["slots"])
    assert sorted(row["generated_tokens"] for row in ended["recent"]) == [1500, 1500]


def test_simulated_stands_in_every_view(served: Console) -> None:
    start(served)
    assert "SIMULATED" in served.succeed("status")
    assert served.succeed("status", "--line").startswith("SIMULATED")
    asked = served.run("ask", "hello", "--max-tokens", "5")
    assert "SIMULATED" in asked.stderr
    assert json.loads(served.succeed("ask", "hello", "--max-tokens", "5", "--json"))["simulated"]
    watching = subprocess.Popen(
        [*_command(), "watch", "--json"],
        env=served.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["simulated"] is True
    watching.send_signal(signal.SIGINT)
    watching.communicate(timeout=10)
    listed = served.succeed("profiles", "list")
    assert "sim-a40-qwen3-coder-30b" in listed
    assert "SIMULATED" in served.succeed("profiles", "list", "--json")


def _command() -> list[str]:
    import sys

    return [sys.executable, "-m", "a40console"]


def test_an_attached_simulation_is_known_as_one() -> None:
    port = _free_port()
    words = ["serve", "x/kimi-linear-48b", "--port", str(port), "--start-s", "0.1"]
    engine = subprocess.Popen(
        [_command()[0], "-m", "a40console.sim", *words], stdout=subprocess.DEVNULL
    )
    try:
        with console() as made:
            made.wait_for(lambda: _answers(port), 20)
            snapshot = json.loads(
                made.succeed("attach", f"http://127.0.0.1:{port}", "--once", "--json")
            )
            assert snapshot["simulated"] is True
            assert snapshot["engine"]["kind"] == "sim"
            assert "SIMULATED" in made.succeed("attach", f"http://127.0.0.1:{port}", "--once")
    finally:
        engine.kill()
        engine.wait()


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("crash=starting", "refused"),
        ("crash=load", "the GPU ran out of memory: 1.50 GiB more"),
        ("crash=compile", "the weights leave no memory for the KV cache"),
        ("crash=capture", "ran out of memory while warming up with 64 requests"),
    ],
)
def test_a_start_that_crashes_is_explained(served: Console, fault: str, cause: str) -> None:
    served.profile("sim", profile(fault))
    assert served.run("engine", "start", "sim").returncode != 0
    engine = served.status()["engine"]
    assert engine["state"] == "failed"
    assert cause in engine["exit"]["cause"]


@pytest.mark.parametrize(("fault", "told"), [("nccl", "NCCL"), ("stall=load", "core")])
def test_a_start_that_stands_still_is_named(served: Console, fault: str, told: str) -> None:
    served.profile("sim", profile(fault))
    starting = subprocess.Popen(
        [*_command(), "engine", "start", "sim"],
        env=served.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    snapshot = until(
        served, lambda now: any(found["code"] == "start-stalled" for found in now["findings"])
    )
    finding = next(found for found in snapshot["findings"] if found["code"] == "start-stalled")
    assert told in f"{finding['title']} {finding['evidence']} {finding['remedy']}"
    assert snapshot["simulated"] is True
    starting.kill()
    starting.wait()


def test_an_engine_that_dies_and_leaves_a_process_is_orphaned(served: Console) -> None:
    start(served, "orphan", "crash=1")
    snapshot = until(served, lambda now: now["engine"]["state"] == "orphaned")
    assert any(found["code"] == "engine-orphaned" for found in snapshot["findings"])
    served.succeed("engine", "clean")
    assert served.status()["engine"]["state"] in ("failed", "stopped", "absent")


def test_a_core_that_dies_is_told_although_the_code_is_zero(served: Console) -> None:
    start(served, "crash=1")
    engine = until(served, lambda now: now["engine"]["state"] == "failed")["engine"]
    assert engine["exit"]["code"] == 0
    assert "engine core died" in engine["exit"]["cause"]


@pytest.mark.parametrize("fault", ["ignore_term", "slow_stop=2"])
def test_an_engine_that_does_not_go_is_gone_all_the_same(served: Console, fault: str) -> None:
    start(served, fault)
    pid = served.status()["engine"]["pid"]
    assert "no process is left" in served.succeed("engine", "stop", "--yes", timeout_s=60)
    assert not psutil.pid_exists(pid)


def test_metrics_that_are_none_cost_their_figures_alone(served: Console) -> None:
    reasons = {
        "empty": "empty",
        "500": "telemetry is broken: HTTP 500",
        "html": "web page",
        "cut": "cut",
    }
    start(served)
    for answer, reason in reasons.items():
        _fault(served, {"metrics": answer})
        snapshot = until(served, lambda now, reason=reason: reason in _metrics_reason(now))
        assert snapshot["engine"]["state"] == "serving"
        assert snapshot["requests"]["running"] == 0  # the plugin tells that
    assert "missing" in snapshot["prefix_cache"]["hit_ratio"]
    _fault(served, {"metrics": None})
    until(served, lambda now: not _metrics_reason(now))


def _metrics_reason(snapshot: dict[str, Any]) -> str:
    source = next(each for each in snapshot["sources"] if each["name"] == "vllm.metrics")
    reason: str = source["reason"] or ""
    return reason


def test_counters_that_begin_again_are_an_event_and_no_negative_rate(served: Console) -> None:
    start(served)
    asyncio.run(two_streams(served, tokens=100))
    _fault(served, {"metrics": "reset"})

    def told(now: dict[str, Any]) -> bool:
        return "counters.reset" in served.paths.events.read_text()

    snapshot = until(served, told)
    rate = snapshot["throughput"]["generation_tokens_per_s"]
    assert isinstance(rate, dict) or rate >= 0


def test_a_garbled_stream_ends_and_is_counted_all_the_same(served: Console) -> None:
    start(served, "garble=5")
    before = {row["request_id"] for row in served.status()["recent"]}
    headers = {"x-claude-code-session-id": SESSION}
    body = {
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "vllm_xargs": {"answer_tokens": 60},
    }
    answer = httpx.post(f"{served.gateway}/v1/messages", json=body, headers=headers, timeout=30)
    assert answer.status_code == 200

    def ended(now: dict[str, Any]) -> list[dict[str, Any]]:
        return [row for row in now["recent"] if row["request_id"] not in before]

    snapshot = until(served, ended)
    assert [row["generated_tokens"] for row in ended(snapshot)] == [60]
    assert snapshot["engine"]["state"] == "serving"


@pytest.mark.slow
def test_an_engine_that_hangs_is_named_while_its_health_says_200(served: Console) -> None:
    start(served)
    _fault(served, {"hang": ""})
    asking = subprocess.Popen(
        [*_command(), "ask", "hello"],
        env=served.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        snapshot = until(served, lambda now: now["engine"]["state"] == "hung", 60)
        assert any(found["code"] == "engine-hung" for found in snapshot["findings"])
        _fault(served, {"hang": None})
        until(served, lambda now: now["engine"]["state"] == "serving")
    finally:
        asking.kill()
        asking.wait()


def _fault(made: Console, faults: dict[str, str | None]) -> None:
    token = (made.run_folder() / "plugin.token").read_text()
    transport = httpx.HTTPTransport(uds=made.engine_socket())
    with httpx.Client(transport=transport, base_url="http://engine") as engine:
        headers = {"authorization": f"Bearer {token}"}
        engine.post("/sim/v1/faults", json=faults, headers=headers).raise_for_status()
