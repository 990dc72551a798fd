"""A start that fails by its profile: named, mended with one command, and served."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from a40console.engines import vllm
from tests.live.console import Console, console
from tests.live.test_sim import QUICK

PROFILE = """# my own, with care
kind = "sim"
model = "simulated/qwen3-coder-30b"
max_model_len = 65536   # enough for a day
start_timeout_s = 30
arguments = [
  "--start-s", "0.3",
  "--disable-log-requests",   # an old habit
  "--enable-mfu-metrics",     # for the bandwidth
]
"""


LOG_REQUESTS = '  "--disable-log-requests",   # an old habit\n'


@pytest.fixture(scope="module")
def service() -> Iterator[Console]:
    with console() as made:
        made.configure(QUICK)
        made.serve("--no-engine")
        yield made


@pytest.fixture
def mine(service: Console) -> Iterator[Console]:
    service.profile("mine", PROFILE)
    yield service
    service.run("engine", "stop", "--yes")


def test_an_unknown_flag_is_taken_out_and_the_engine_serves(mine: Console) -> None:
    failed = mine.run("engine", "start", "mine")
    assert failed.returncode == 4
    assert "does not know --disable-log-requests" in failed.stderr
    found = next(f for f in mine.status()["findings"] if f["code"] == "engine-failed")
    assert found["command"] == "profile.fix"
    assert "error: unrecognized arguments: --disable-log-requests" in found["evidence"]

    told = next(e for e in reversed(events(mine)) if e["kind"] == "engine.failed")["data"]
    assert (told["code"], told["failure"]) == ("unknown-flag", "rejected")
    assert told["command"] == "profile.fix"

    offer = json.loads(mine.succeed("profiles", "fix", "--show", "--json"))["offer"]
    assert offer["diff"] == ['-  "--disable-log-requests",   # an old habit']
    assert (offer["key"], offer["new_file"]) == ("arguments", False)
    refused = mine.run("profiles", "fix")
    assert (refused.returncode, "Nobody is here to be asked" in refused.stderr) == (2, True)

    file = mine.paths.profiles / "mine.toml"
    file.chmod(0o640)
    done = mine.succeed("profiles", "fix", "--yes", "--start")
    assert "The engine serves." in done
    assert file.read_text() == PROFILE.replace(LOG_REQUESTS, "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert mine.status()["engine"]["state"] == "serving"
    event = next(e for e in events(mine) if e["kind"] == "profile.fixed")
    assert event["data"]["before"].count("--disable-log-requests") == 1
    assert "--disable-log-requests" not in event["data"]["after"]
    assert event["data"]["file"] == str(file)
    assert event["data"]["who"]


CRASHES = {
    "starting": ("setting-refused", "rejected"),
    "download": ("disk-full", "disk"),
    "load": ("cuda-oom-load", "memory"),
    "compile": ("kv-cache-none", "memory"),
    "capture": ("cuda-oom-sampler", "memory"),
}


@pytest.mark.parametrize("phase", CRASHES)
def test_a_crash_in_each_phase_is_diagnosed_and_nothing_is_guessed(
    mine: Console, phase: str
) -> None:
    words = f'"--start-s", "0.3", "--fault", "crash={phase}"'
    mine.profile("mine", PROFILE.replace('"--start-s", "0.3"', words).replace(LOG_REQUESTS, ""))
    assert mine.run("engine", "start", "mine").returncode == 4
    note = json.loads((mine.run_folder() / "diagnosis.json").read_text())
    assert (note["code"], note["kind"]) == CRASHES[phase]
    output = (mine.run_folder() / "output.log").read_text()
    assert note["evidence"].rstrip("…") in " ".join(without_prefix(output).split())
    refused = mine.run("profiles", "fix", "--yes")
    assert refused.returncode == 5
    assert note["cause"] in refused.stderr
    assert note["remedy"] in " ".join(refused.stderr.split())


def test_a_context_beyond_the_cache_is_shortened_to_what_the_engine_says(mine: Console) -> None:
    words = '"--start-s", "0.3", "--num-gpu-blocks-override", "2048"'
    mine.profile("mine", PROFILE.replace('"--start-s", "0.3"', words).replace(LOG_REQUESTS, ""))
    failed = mine.run("engine", "start", "mine")
    assert failed.returncode == 4
    assert "max_model_len = 32768" in failed.stderr
    offer = json.loads(mine.succeed("profiles", "fix", "--show", "--json"))["offer"]
    assert offer["diff"] == [
        "-max_model_len = 65536   # enough for a day",
        "+max_model_len = 32768   # enough for a day",
    ]
    mine.succeed("profiles", "fix", "--yes", "--start")
    mine.wait_for(lambda: mine.status()["engine"]["max_model_len"] == 32768, 10)


def test_a_service_that_came_back_still_knows_the_fix(mine: Console) -> None:
    assert mine.run("engine", "start", "mine").returncode == 4
    pid = mine.status()["service"]["pid"]
    psutil.Process(pid).kill()
    mine.wait_for(lambda: answers_anew(mine, pid), 20)
    assert "--disable-log-requests" in mine.succeed("profiles", "fix", "--show", "--json")


def test_a_hang_in_nccl_is_mended_while_it_hangs(mine: Console) -> None:
    words = '"--start-s", "0.3", "--tensor-parallel-size", "2", "--fault", "nccl"'
    text = PROFILE.replace('"--start-s", "0.3"', words).replace(LOG_REQUESTS, "")
    mine.profile("mine", f"{text}stall_after_s = 1\n")
    mine.succeed("engine", "start", "mine", "--no-wait")
    mine.wait_for(lambda: "start-stalled" in found(mine), 20)
    stalled = found(mine)["start-stalled"]
    assert stalled["command"] == "profile.fix"
    assert "vLLM is using nccl==" in stalled["evidence"]
    mine.succeed("profiles", "fix", "--yes")
    assert (mine.paths.profiles / "mine.toml").read_text() == (
        f'{text}stall_after_s = 1\n\n[environment]\nNCCL_P2P_DISABLE = "1"\n'
    )
    mine.succeed("engine", "stop", "--yes")
    mine.succeed("engine", "start", "mine")
    assert mine.status()["engine"]["state"] == "serving"


def found(made: Console) -> dict[str, dict[str, Any]]:
    return {each["code"]: each for each in made.status()["findings"]}


def answers_anew(made: Console, pid: int) -> bool:
    told = made.run("status", "--json")
    return told.returncode == 0 and json.loads(told.stdout)["service"]["pid"] != pid


def without_prefix(output: str) -> str:
    return "\n".join(vllm.split_prefix(line)[1] for line in output.splitlines())


def events(made: Console) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(made.succeed("events", "--json"))["events"]
    return told
