"""An edited profile of a running engine: told, shown, applied live or by a restart, or refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.console import Console, console
from tests.live.test_sim import QUICK

PROFILE = """# my own, with care
kind = "sim"
title = "{title}"
model = "simulated/qwen3-coder-30b"
max_model_len = {context}
usd_per_hour = {price}
start_timeout_s = 30
arguments = ["--start-s", "0.3", "--speed", "4"{faults}]

[speculation]
tokens = 5
"""


def text(
    *, title: str = "Mine", context: int = 65536, price: float = 0.44, faults: str = ""
) -> str:
    return PROFILE.format(title=title, context=context, price=price, faults=faults)


@pytest.fixture(scope="module")
def service() -> Iterator[Console]:
    with console() as made:
        made.configure(QUICK)
        made.serve("--no-engine")
        yield made


@pytest.fixture
def mine(service: Console) -> Iterator[Console]:
    service.profile("mine", text())
    service.succeed("engine", "start", "mine")
    yield service
    service.run("engine", "stop", "--yes")


def changes(made: Console) -> dict[str, dict[str, Any]]:
    found = json.loads(made.succeed("profiles", "diff", "--json"))["diff"]["changes"]
    return {change["key"]: change for change in found}


def told(made: Console) -> dict[str, Any] | None:
    findings = made.status()["findings"]
    return next((each for each in findings if each["code"] == "profile-edited"), None)


def last_event(made: Console, kind: str) -> dict[str, Any]:
    lines = made.paths.events.read_text().splitlines()
    found: dict[str, Any] = [e for e in map(json.loads, lines) if e["kind"] == kind][-1]
    return found


def test_what_is_ours_is_applied_while_the_engine_runs(mine: Console) -> None:
    assert mine.succeed("profiles", "diff").startswith("mine runs as its file says")
    assert told(mine) is None
    engine = mine.status()["engine"]

    mine.profile("mine", text(title="Renamed", price=0.5))
    mine.wait_for(lambda: told(mine) is not None, 10)
    finding = told(mine)
    assert finding is not None
    assert finding["title"] == "2 settings of mine run otherwise than its file says"
    assert "usd_per_hour: 0.44 → 0.5" in finding["evidence"]
    assert finding["command"] == "engine.apply"
    assert "no restart" in finding["remedy"]
    assert {key: change["effect"] for key, change in changes(mine).items()} == {
        "title": "live",
        "usd_per_hour": "live",
    }
    assert mine.run("profiles", "diff", "--check").returncode == 6

    said = mine.succeed("engine", "apply")  # nothing restarts, so nothing is asked
    assert "In force while the engine runs" in said
    after = mine.status()
    assert (after["engine"]["pid"], after["engine"]["id"]) == (engine["pid"], engine["id"])
    assert after["cost"]["usd_per_hour"] == 0.5
    assert changes(mine) == {}
    mine.wait_for(lambda: told(mine) is None, 10)

    event = last_event(mine, "profile.applied")
    assert event["data"]["before"] == 'title = "Mine"; usd_per_hour = 0.44'
    assert event["data"]["after"] == 'title = "Renamed"; usd_per_hour = 0.5'
    assert event["data"]["how"] == "while the engine runs"
    assert event["data"]["result"] == "in force"
    assert "pid " in event["data"]["who"]
    kept = json.loads((mine.run_folder() / "run.json").read_text())["profile"]
    assert (kept["title"], kept["usd_per_hour"]) == ("Renamed", 0.5)


def test_what_the_engine_reads_takes_a_restart_that_is_asked_for(mine: Console) -> None:
    engine = mine.status()["engine"]
    mine.profile("mine", text(title="Renamed", context=32768))
    assert changes(mine)["max_model_len"] == {
        "key": "max_model_len",
        "running": "65536",
        "file": "32768",
        "effect": "restart",
        "why": "the engine reads it when it starts",
    }
    refused = mine.run("engine", "apply")
    assert refused.returncode == 2
    assert "restart     max_model_len: 65536 → 32768" in refused.stdout
    assert "Nobody is here to be asked" in refused.stderr
    assert mine.status()["engine"]["pid"] == engine["pid"]
    shown = json.loads(mine.succeed("profiles", "diff", "--json"))
    assert shown["needs_restart"] is True
    assert mine.status()["engine"]["pid"] == engine["pid"]

    assert "In force by a restart" in mine.succeed("engine", "apply", "--yes")
    mine.wait_for(lambda: mine.status()["engine"]["max_model_len"] == 32768, 10)
    after = mine.status()["engine"]
    assert after["state"] == "serving"
    assert after["pid"] != engine["pid"]
    assert changes(mine) == {}
    assert last_event(mine, "profile.applied")["data"]["how"] == "by a restart"


def test_a_file_that_is_wrong_stops_nothing(mine: Console) -> None:
    pid = mine.status()["engine"]["pid"]
    mine.profile("mine", text().replace("max_model_len", "max_model_length"))
    refused = mine.run("engine", "apply", "--yes")
    assert refused.returncode == 5
    assert "The file of mine is wrong: nothing of it is taken over" in refused.stderr
    assert "did you mean max_model_len" in refused.stderr
    mine.wait_for(lambda: told(mine) is not None, 10)
    finding = told(mine)
    assert finding is not None
    assert (finding["severity"], finding["command"]) == ("warn", None)
    mine.profile("mine", text().replace('"--start-s"', '"--port", "1", "--start-s"'))
    refused = mine.run("engine", "apply", "--yes")
    assert refused.returncode == 5
    assert "sets the engine's address itself" in refused.stderr
    engine = mine.status()["engine"]
    assert (engine["state"], engine["pid"]) == ("serving", pid)


def test_a_start_that_fails_puts_back_what_served(mine: Console) -> None:
    mine.profile("mine", text(context=32768, faults=', "--fault", "crash=load"'))
    failed = mine.run("engine", "apply", "--yes")
    assert failed.returncode == 4
    engine = mine.status()["engine"]
    assert (engine["state"], engine["max_model_len"]) == ("serving", 65536)
    event = last_event(mine, "profile.applied")
    assert event["severity"] == "error"
    assert set(changes(mine)) == {"arguments", "max_model_len"}


def test_what_was_shown_is_what_is_applied(mine: Console) -> None:
    mine.profile("mine", text(title="Once"))
    shown = json.loads(mine.succeed("profiles", "diff", "--json"))["diff"]["id"]
    mine.profile("mine", text(title="Twice"))
    again = json.loads(mine.succeed("profiles", "diff", "--json"))["diff"]["id"]
    assert shown != again


def test_speculation_that_was_turned_is_no_edit_and_stays_turned(mine: Console) -> None:
    mine.succeed("engine", "speculation", "on", "--yes")
    assert changes(mine) == {}
    assert told(mine) is None
    mine.profile("mine", text(title="Renamed"))
    assert set(changes(mine)) == {"title"}
    mine.succeed("engine", "apply")
    mine.profile("mine", text(title="Renamed", context=32768))
    mine.succeed("engine", "apply", "--yes")
    mine.wait_for(lambda: mine.status()["engine"]["max_model_len"] == 32768, 10)
    mine.wait_for(lambda: mine.status()["speculation"]["mode"] == "on", 10)
    assert changes(mine) == {}
    mine.succeed("engine", "switch", "mine", "--yes")  # read anew
    mine.wait_for(lambda: mine.status()["speculation"]["mode"] == "off", 10)


def test_another_profile_against_what_runs(mine: Console) -> None:
    mine.profile("other", text(context=8192))
    said = mine.succeed("profiles", "diff", "other")
    assert "against mine, which runs" in said
    assert "max_model_len: 65536 → 8192" in said
    assert mine.run("profiles", "diff", "nothing-of-the-kind").returncode == 2


def test_without_an_engine_there_is_nothing_to_compare(service: Console) -> None:
    service.profile("mine", text())
    refused = service.run("profiles", "diff")
    assert refused.returncode == 5
    assert "No engine runs" in refused.stderr
    assert service.run("engine", "apply", "--yes").returncode == 5


def test_what_was_taken_over_is_known_to_a_later_service(mine: Console) -> None:
    mine.profile("mine", text(title="Kept", price=0.7))
    mine.succeed("engine", "apply")
    mine.succeed("stop")
    if mine.service is not None:
        mine.service.wait(20)
    mine.serve("--no-engine")
    mine.wait_for(lambda: mine.status()["engine"]["state"] == "serving", 20)
    assert mine.status()["cost"]["usd_per_hour"] == 0.7
    assert changes(mine) == {}
