"""The switch of what serves, under clients that never stop asking: on the simulated engine."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.faults.load import load
from tests.faults.switching import Switching, switching_console

pytestmark = pytest.mark.slow

LONG = {"vllm_xargs": {"answer_tokens": 40_000}}


@pytest.fixture(scope="module")
def service() -> Iterator[Switching]:
    """A service whose engine is `alpha`, shared by the tests of this file."""
    with switching_console() as made:
        yield made


@pytest.fixture
def switching(service: Switching) -> Switching:
    """The service with `alpha` serving, whatever the test before left."""
    engine = service.status()["engine"]
    if engine["state"] != "serving" or engine["profile"] != "alpha":
        service.run("engine", "stop", "--yes")
        service.succeed("engine", "start", "alpha")
    service.told = len(service.paths.events.read_text().splitlines())
    return service


def test_a_switch_under_load_fails_no_request(switching: Switching) -> None:
    with load(switching.gateway, "coder") as clients:
        clients.until(12)
        switching.succeed("engine", "switch", "beta", "--yes")
        assert switching.serving() == "beta"
        clients.until(12)
    assert clients.errors == []
    for kind in ("_message_stream", "_chat_stream", "_chat_whole", "_message_whole"):
        assert clients.count(kind) > 1, kind
    (switched,) = switching.events("engine.switched")
    assert "switch to beta" in switched["text"]
    assert (switched["data"]["before"], switched["data"]["after"]) == ("alpha", "beta")
    assert ", pid " in switched["data"]["who"]
    (canary,) = switching.events("engine.canary")
    assert canary["data"]["completion"].startswith("passed")
    assert canary["data"]["tool call"].startswith("passed")
    assert canary["data"]["prefix cache"].startswith("passed")


def test_a_restart_under_load_fails_no_request(switching: Switching) -> None:
    before = switching.status()["engine"]["id"]
    with load(switching.gateway, "coder") as clients:
        clients.until(8)
        switching.succeed("engine", "restart", "--yes")
        clients.until(8)
    assert clients.errors == []
    engine = switching.status()["engine"]
    assert engine["profile"] == "alpha"
    assert engine["id"] != before


@pytest.mark.parametrize("phase", ["starting", "capture"])
def test_a_switch_that_fails_puts_back_what_served(switching: Switching, phase: str) -> None:
    switching.sim("broken", f"crash={phase}")
    with load(switching.gateway, "coder") as clients:
        clients.until(4)
        done = switching.run("engine", "switch", "broken", "--yes")
        assert done.returncode == 4, (done.stdout, done.stderr)
        assert "broken did not start" in done.stderr
        assert "alpha serves again" in done.stderr
        assert switching.serving() == "alpha"
        clients.until(4)
    assert clients.errors == []
    (rolled,) = switching.events("engine.rolled_back")
    assert "alpha is put back" in rolled["text"]


def test_an_engine_that_writes_gibberish_is_not_let_to_clients(switching: Switching) -> None:
    switching.sim("mad", "junk")
    with load(switching.gateway, "coder", clients=4) as clients:
        clients.until(4)
        done = switching.run("engine", "switch", "mad", "--yes")
        assert done.returncode == 6, (done.stdout, done.stderr)
        assert "does not stand the canary" in done.stderr
        assert switching.serving() == "alpha"
        clients.until(4)
    assert clients.errors == []


LADDER = """
[[placements]]
max_model_len = 1000000
[[placements]]
max_model_len = 32768
max_running = 4
"""


def test_a_ladder_is_tried_in_order_and_what_serves_says_which_rung(switching: Switching) -> None:
    switching.sim("tall", ladder=LADDER)
    text = (switching.paths.profiles / "tall.toml").read_text()
    switching.profile("tall", text.replace("max_model_len = 65536", "max_model_len = 2000000"))
    with load(switching.gateway, "coder", clients=4) as clients:
        clients.until(4)
        said = switching.succeed("engine", "switch", "tall", "--yes")
        assert "placement 2 of 2: max_model_len 32768, max_running 4" in said
        clients.until(4)
    assert clients.errors == []
    failed = [event["data"] for event in switching.events("engine.placement_failed")]
    assert [event["rung"] for event in failed] == ["0 of 2", "1 of 2"]
    assert {event["kind"] for event in failed} == {"rejected"}
    snapshot = switching.until(lambda now: now["engine"]["max_model_len"] == 32768)
    (found,) = (each for each in snapshot["findings"] if each["code"] == "setting-not-in-force")
    assert "max_model_len: asked 2000000, runs 32768 (placement 2 of 2 serves" in found["evidence"]


def test_a_stop_in_mid_switch_lets_nobody_hang(switching: Switching) -> None:
    switching.sim("slow", start_s=30.0)
    with load(switching.gateway, "coder", clients=4) as clients:
        clients.until(4)
        command = switching.begin("engine", "switch", "slow", "--yes")
        switching.until(lambda now: now["engine"]["phase"] == "load")
        asked_s = time.monotonic()
        switching.succeed("engine", "stop", "--yes")
        assert time.monotonic() - asked_s < 10
        clients.until(4, timeout_s=10)
    output, _ = command.communicate(timeout=20)
    assert command.returncode == 5, output
    assert "interrupted by a stop" in output
    assert switching.status()["engine"]["state"] == "stopped"
    told = [each.error for each in clients.errors]
    assert told
    assert all("No engine runs" in error or "is stopping" in error for error in told), told


def test_a_second_operator_is_refused_and_told_who_is_at_it(switching: Switching) -> None:
    switching.sim("slow", start_s=6.0)
    first = switching.begin("engine", "switch", "slow", "--yes")
    switching.until(lambda now: now["engine"]["state"] == "starting")
    second = switching.run("engine", "switch", "beta", "--yes")
    assert second.returncode == 5, (second.stdout, second.stderr)
    assert "A switch to slow is under way" in second.stderr
    assert f"pid {first.pid}" in second.stderr
    output, _ = first.communicate(timeout=60)
    assert first.returncode == 0, output
    assert switching.serving() == "slow"


def test_what_a_switch_costs_is_told_and_nothing_done(switching: Switching) -> None:
    headers = {"user-agent": "claude-cli/2.1.332 (external, cli)"}
    headers["x-claude-code-session-id"] = "7f3a9c52-5d1e-4b8a-9f60-2f8a1c7e4b10"
    body = {
        "model": "coder",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "count the waves " * 300}],
    }
    answer = httpx.post(f"{switching.gateway}/v1/messages", json=body, headers=headers, timeout=60)
    assert answer.status_code == 200
    switching.sim("narrow")
    text = (switching.paths.profiles / "narrow.toml").read_text()
    switching.profile("narrow", text.replace("max_model_len = 65536", "max_model_len = 4096"))
    cost = json.loads(switching.succeed("engine", "switch", "narrow", "--cost", "--json"))
    assert cost["sessions"] >= 1
    assert cost["reread_tokens"] >= answer.json()["usage"]["input_tokens"]
    assert "claude-code" in [each["client"] for each in cost["too_wide"]]
    shorter = switching.succeed("engine", "switch", "narrow", "--cost", "--drain", "2", "--json")
    assert json.loads(shorter)["drain_s"] == 2
    said = switching.succeed("engine", "switch", "alpha", "--cost")
    assert "SIMULATED: alpha serves already: it is started anew" in said
    assert "SIMULATED: Clients wait " in said
    assert "SIMULATED: The contexts of " in said
    assert switching.serving() == "alpha"
    assert switching.events("engine.switched") == []


def test_a_drain_is_bounded_and_what_is_cut_is_said(switching: Switching) -> None:
    long = load(switching.gateway, "coder", clients=2, answer_tokens=40_000, extras=LONG)
    with long as clients:
        switching.until(lambda now: now["requests"]["running"] == 2)
        began_s = time.monotonic()
        command = switching.begin("engine", "switch", "beta", "--yes", "--drain", "2")
        snapshot = switching.until(lambda now: now["engine"]["state"] == "draining")
        assert snapshot["engine"]["phase"] == "drain"
        clients.extras, clients.answer_tokens = {}, 20
        output, _ = command.communicate(timeout=60)
        assert command.returncode == 0, output
        assert 2 <= time.monotonic() - began_s < 20
        assert "cut: 2 requests" in output
        stop = re.search(r"stop (\d+\.\d) s", output)
        assert stop is not None, output
        assert float(stop[1]) < 5, "what is cut does not keep everybody waiting"
        clients.until(2)
    (drained,) = switching.events("engine.drained")
    assert "2 requests still ran after 2 s" in drained["text"]


def test_a_crash_is_restarted_while_clients_wait(switching: Switching) -> None:
    with load(switching.gateway, "coder") as clients:
        clients.until(8)
        os.kill(switching.status()["engine"]["pid"], signal.SIGKILL)
        switching.until(lambda now: now["engine"]["restarts"] == 1)
        switching.until(lambda now: now["engine"]["state"] == "serving")
        clients.until(8)
    cut = [each.error for each in clients.errors]
    assert all("cut short" in error for error in cut), cut  # what had begun cannot be saved
    assert len(cut) <= 8
    assert switching.serving() == "alpha"


def test_a_service_that_is_killed_in_mid_switch_finds_the_start_again(
    switching: Switching,
) -> None:
    switching.sim("slow", start_s=12.0)
    command = switching.begin("engine", "switch", "slow", "--yes")
    starting = switching.until(lambda now: now["engine"]["phase"] == "load")
    os.kill(starting["service"]["pid"], signal.SIGKILL)
    output, _ = command.communicate(timeout=60)
    assert command.returncode == 3, output
    with load(switching.gateway, "coder", clients=4) as clients:
        clients.until(4, timeout_s=40)
    assert clients.errors == []
    engine = switching.status()["engine"]
    assert (engine["profile"], engine["state"]) == ("slow", "serving")
    assert engine["pid"] == starting["engine"]["pid"]


def test_a_switch_whose_service_was_killed_is_rolled_back_by_the_next(
    switching: Switching,
) -> None:
    switching.sim("broken", "crash=capture", start_s=40.0)
    command = switching.begin("engine", "switch", "broken", "--yes")
    starting = switching.until(lambda now: now["engine"]["phase"] == "load")
    os.kill(starting["service"]["pid"], signal.SIGKILL)
    command.communicate(timeout=60)
    with load(switching.gateway, "coder", clients=4) as clients:
        clients.until(4, timeout_s=40)
    assert clients.errors == []
    assert switching.serving() == "alpha"
    (rolled,) = switching.events("engine.rolled_back")
    assert "alpha is put back, as the switch was not ended by its service" in rolled["text"]


def test_where_the_policy_gives_up_clients_are_told(switching: Switching) -> None:
    switching.sim("frail", "crash=1")
    with load(switching.gateway, "coder", clients=4) as clients:
        clients.until(4)
        switching.run("engine", "switch", "frail", "--yes")
        switching.wait_for(lambda: any("frail failed" in e.error for e in clients.errors), 90)
        clients.until(4, timeout_s=10)
    endings, restarts = switching.events("engine.ended"), switching.events("engine.restarting")
    assert 1 <= len(restarts) <= 3
    assert len(endings) == len(restarts) + 1
    (stays,) = switching.events("engine.not_restarted")
    assert "frail is not started again: 3 restarts within 10 min" in stays["text"]
    told = {each.error for each in clients.errors if "frail failed" in each.error}
    assert any("not started again: 3 restarts" in error for error in told), told
    found = switching.status()["findings"]
    assert any("not started again" in each["evidence"] for each in found), found
