"""The console on real vLLM, once with our plugin and speculation, once with neither."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.live.console import Console, console, session_members
from tests.live.streams import WORDS, Watch, chat, four_streams, rates_agree, vllm_counter, watch

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)]

BLOCK_TOKENS = 128
"""What vLLM's CPU build caches by: only whole blocks can hit."""

DRAFTS = "vllm:spec_decode_num_drafts_total"
ACCEPTED = "vllm:spec_decode_num_accepted_tokens_per_pos_total"

PROFILE = """
kind = "vllm"
executable = "{executable}"
model = "{model}"
served_name = "smollm2"
max_model_len = 4096
max_running = 8
enforce_eager = true
plugin = {plugin}
tool_call_parser = "hermes"
[environment]
VLLM_CPU_KVCACHE_SPACE = "1"
HF_HUB_OFFLINE = "1"
TRANSFORMERS_OFFLINE = "1"
[speculation]
enabled = {speculation}
method = "ngram"
tokens = 5
prompt_lookup_max = 4
"""


def engines() -> Path:
    folder = os.environ.get("A40CONSOLE_TEST_ENGINES")
    if not folder:
        pytest.skip("A40CONSOLE_TEST_ENGINES names no folder that .ci/engines.sh prepared")
    return Path(folder)


def serve(made: Console, *, plugin: bool, speculation: bool) -> Console:
    folder = engines()
    made.configure("[gateway]\nport = 0\n[service]\nrestart_engine = false\n")
    made.profile(
        "cpu",
        PROFILE.format(
            executable=folder / "vllm-0.32.0/venv/bin/vllm",
            model=folder / "smollm2-safetensors",
            plugin=str(plugin).lower(),
            speculation=str(speculation).lower(),
        ),
    )
    made.serve("--profile", "cpu")
    made.succeed("wait", "ready", "--timeout", "400", timeout_s=420)
    return made


@pytest.fixture(scope="module")
def with_plugin() -> Iterator[Console]:
    with console() as made:
        yield serve(made, plugin=True, speculation=True)


@pytest.fixture(scope="module")
def without_plugin(with_plugin: Console) -> Iterator[Console]:
    with_plugin.succeed("stop", "--engine")  # two engines at once starve two cores
    with console() as made:
        yield serve(made, plugin=False, speculation=False)


def decoding(status: dict[str, Any]) -> int:
    """How many requests decode; none where the slots are not known yet."""
    known = isinstance(status["slots"], list)
    return sum(slot["phase"] == "decode" for slot in status["slots"]) if known else 0


def four_totals(live: Console) -> tuple[list[str], dict[str, int], dict[str, int]]:
    """Four streams: how their slots were counted, and the tokens by request.

    First those that the service lists, then those that the clients were told.
    """

    async def run() -> tuple[list[str], dict[str, int]]:
        load = asyncio.create_task(four_streams(live.gateway, max_tokens=400, model="smollm2"))
        status = await asyncio.to_thread(live.status)
        while not load.done() and decoding(status) < 4:
            status = await asyncio.to_thread(live.status)
        answers = await load
        assert not any(slot["direct"] for slot in status["slots"])
        assert all(not answer.error for answer in answers)
        told = {answer.request_id: answer.usage["completion_tokens"] for answer in answers}
        return [slot["method"] for slot in status["slots"]], told

    methods, told = asyncio.run(run())

    def listed() -> dict[str, int]:
        rows = live.status()["recent"]
        return {
            row["request_id"]: row["generated_tokens"] for row in rows if row["request_id"] in told
        }

    live.wait_for(lambda: listed() == told, 10)
    return methods, listed(), told


def rates_differ(live: Console) -> str:
    """Empty where over 10 s the slots' rates add up to the engine's counter within 1 %."""
    path = live.engine_socket()

    async def measure() -> Watch:
        load = asyncio.gather(
            *(chat(live.gateway, WORDS.format(n), max_tokens=3500, model="smollm2") for n in "abc")
        )
        await asyncio.sleep(3)
        record = await watch(live, 25, lambda: vllm_counter(path))
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        return record

    return asyncio.run(rates_agree(measure, within=0.01))


def test_plugin_totals_equal_the_clients_usage(with_plugin: Console) -> None:
    methods, listed, told = four_totals(with_plugin)
    assert methods == ["engine"] * 4
    assert listed == told


def test_plugin_rates_equal_the_counter(with_plugin: Console) -> None:
    assert not rates_differ(with_plugin)


def test_plugin_shows_a_direct_request(with_plugin: Console) -> None:
    live, path = with_plugin, with_plugin.engine_socket()

    async def run() -> list[bool]:
        beside = asyncio.create_task(
            chat(
                "http://engine", WORDS.format(9), max_tokens=400, socket_path=path, model="smollm2"
            )
        )
        ours = asyncio.create_task(
            chat(live.gateway, WORDS.format(8), max_tokens=400, model="smollm2")
        )
        await asyncio.sleep(3)
        slots = await asyncio.to_thread(lambda: live.status()["slots"])
        for task in (beside, ours):
            task.cancel()
        await asyncio.gather(beside, ours, return_exceptions=True)
        return sorted(slot["direct"] for slot in slots)

    assert asyncio.run(run()) == [False, True]


def test_hit_tokens_are_the_whole_blocks_of_a_repeated_prompt(with_plugin: Console) -> None:
    live = with_plugin
    prompt = " ".join(f"Item {number} costs {number * 7} coins." for number in range(60))

    async def run() -> tuple[int, int]:
        first = await chat(live.gateway, prompt, max_tokens=2, model="smollm2")
        await asyncio.sleep(1)
        second = await chat(live.gateway, prompt, max_tokens=2, model="smollm2")
        details = second.usage["prompt_tokens_details"]
        return first.usage["prompt_tokens"], details["cached_tokens"]

    before = live.status()["prefix_cache"]
    prompt_tokens, cached_tokens = asyncio.run(run())
    whole = (prompt_tokens - 1) // BLOCK_TOKENS * BLOCK_TOKENS
    assert whole >= 3 * BLOCK_TOKENS
    assert cached_tokens == whole

    def hits() -> bool:
        cache = live.status()["prefix_cache"]
        earlier = before["hit_tokens"] if isinstance(before["hit_tokens"], int | float) else 0
        return bool(cache["hit_tokens"] == earlier + whole or cache["hit_tokens"] == whole)

    live.wait_for(hits, 10)


def test_accepted_per_position_equals_the_counters(with_plugin: Console) -> None:
    live, path = with_plugin, with_plugin.engine_socket()
    prompt = "Repeat exactly, again and again: " + "the cat sat on the mat and then " * 12

    async def counters() -> tuple[float, list[float]]:
        transport = httpx.AsyncHTTPTransport(uds=path)
        async with httpx.AsyncClient(transport=transport) as client:
            text = (await client.get("http://engine/metrics")).text
        drafts = re.search(rf"^{DRAFTS}{{[^}}]*}} (\S+)$", text, re.MULTILINE)
        rows = re.findall(
            rf'^{ACCEPTED}{{[^}}]*position="(\d+)"[^}}]*}} (\S+)$', text, re.MULTILINE
        )
        assert drafts is not None
        return float(drafts[1]), [float(v) for _, v in sorted(rows, key=lambda r: int(r[0]))]

    async def run() -> tuple[float, list[float]]:
        await asyncio.sleep(61)  # the window holds nothing of the tests before
        drafts0, accepted0 = await counters()
        await asyncio.gather(
            *(chat(live.gateway, prompt, max_tokens=300, model="smollm2", temperature=0.0)
              for _ in range(2))
        )  # fmt: skip
        await asyncio.sleep(1.5)
        drafts1, accepted1 = await counters()
        return drafts1 - drafts0, [b - a for a, b in zip(accepted0, accepted1, strict=True)]

    drafts, accepted = asyncio.run(run())
    assert drafts >= 100
    shown = live.status()["speculation"]
    assert shown["drafts"] == drafts
    for ratio, count in zip(shown["accepted_ratio_per_position"], accepted, strict=True):
        # Drafts too short to propose a position do not count against it.
        value = ratio["value"] if isinstance(ratio, dict) else ratio
        assert count / drafts - 1e-9 <= value <= 1
    assert shown["mode"] == "on"


def test_a_killed_worker_leaves_the_engine_alone(with_plugin: Console) -> None:
    live, path = with_plugin, with_plugin.engine_socket()
    before = live.status()
    gateway = live.gateway
    started_s = psutil.Process(before["engine"]["pid"]).create_time()

    async def run() -> tuple[float, str]:
        direct = asyncio.create_task(
            chat(
                "http://engine", WORDS.format(3), max_tokens=120, socket_path=path, model="smollm2"
            )
        )
        await asyncio.sleep(1)
        os.kill(before["service"]["pid"], signal.SIGKILL)
        began_s = time.monotonic()
        async with httpx.AsyncClient(timeout=30) as client:
            for _ in range(100):
                if (await client.get(f"{gateway}/v1/models")).status_code == 200:
                    break
                await asyncio.sleep(0.1)
        return time.monotonic() - began_s, (await direct).text

    back_s, text = asyncio.run(run())
    assert back_s < 5.0
    assert text
    after = live.status()
    assert after["service"]["pid"] != before["service"]["pid"]
    assert after["engine"]["pid"] == before["engine"]["pid"]
    assert psutil.Process(after["engine"]["pid"]).create_time() == started_s
    assert after["events_last_id"] > before["events_last_id"]


def test_gateway_totals_equal_the_clients_usage(without_plugin: Console) -> None:
    methods, listed, told = four_totals(without_plugin)
    assert methods == ["usage"] * 4
    assert listed == told


def test_gateway_rates_equal_the_counter(without_plugin: Console) -> None:
    assert not rates_differ(without_plugin)


def test_gateway_alone_shows_direct_traffic_as_an_estimate(without_plugin: Console) -> None:
    live, path = without_plugin, without_plugin.engine_socket()

    async def run() -> list[dict[str, object]]:
        beside = asyncio.create_task(
            chat(
                "http://engine", WORDS.format(9), max_tokens=400, socket_path=path, model="smollm2"
            )
        )
        ours = asyncio.create_task(
            chat(live.gateway, WORDS.format(8), max_tokens=400, model="smollm2")
        )
        await asyncio.sleep(6)
        slots: list[dict[str, object]] = await asyncio.to_thread(lambda: live.status()["slots"])
        for task in (beside, ours):
            task.cancel()
        await asyncio.gather(beside, ours, return_exceptions=True)
        return slots

    slots = asyncio.run(run())
    direct = [slot for slot in slots if slot["direct"]]
    assert len(direct) == 1
    assert direct[0]["method"] == "apportioned"
    assert isinstance(direct[0]["window_tokens_per_s"], dict)


def test_speculation_that_is_off_has_no_figures(without_plugin: Console) -> None:
    shown = without_plugin.status()["speculation"]
    assert shown["mode"] == "off"
    assert "missing" in shown["accepted_ratio_per_position"]
    assert "missing" in shown["drafts"]


def test_a_killed_core_is_named_and_nothing_is_left(without_plugin: Console) -> None:
    live = without_plugin
    engine = live.status()["engine"]
    core = next(
        process
        for process in psutil.Process(engine["pid"]).children(recursive=True)
        if "EngineCore" in " ".join(process.cmdline())
    )
    core.kill()
    live.wait_for(lambda: live.status()["engine"]["state"] == "failed", 60)
    ended = live.status()["engine"]["exit"]
    assert "engine core died" in ended["cause"]
    assert session_members(engine["session_id"]) == []
    assert not Path(live.engine_socket()).exists()
    answer = asyncio.run(chat(live.gateway, "Hello", max_tokens=5))
    assert "engine core died" in answer.error
