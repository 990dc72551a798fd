"""Speculation turned on real vLLM by the command line, under streams through the gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.console import Console, console
from tests.live.streams import Answer, chat
from tests.live.test_vllm import PROFILE, engines
from tests.vllm_plugin.real_engine import VERSIONS

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)]

REPEAT = "Repeat exactly, again and again: " + "the cat sat on the mat and then " * 12


@pytest.fixture(scope="module", params=VERSIONS)
def live(request: pytest.FixtureRequest) -> Iterator[Console]:
    folder = engines()
    text = PROFILE.format(
        executable=folder / f"vllm-{request.param}/venv/bin/vllm",
        model=folder / "smollm2-safetensors",
        plugin="true",
        speculation="false",
    )
    with console() as made:
        made.configure("[gateway]\nport = 0\n[service]\nrestart_engine = false\n")
        made.profile("cpu", text.replace("enabled = false", 'start = "off"'))
        made.serve("--profile", "cpu")
        made.succeed("wait", "ready", "--timeout", "400", timeout_s=420)
        yield made


def turn(made: Console, mode: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        made.succeed("engine", "speculation", mode, "--yes", "--json")
    )
    return told


def speculation(made: Console) -> dict[str, Any]:
    block: dict[str, Any] = made.status()["speculation"]
    return block


async def turned_under_streams(made: Console) -> tuple[list[dict[str, Any]], list[Answer]]:
    gateway = made.gateway
    streams = [
        asyncio.create_task(
            chat(gateway, f"{n}. {REPEAT}", max_tokens=300, model="smollm2", temperature=0.0)
        )
        for n in range(4)
    ]
    await asyncio.sleep(1.0)
    told = [await asyncio.to_thread(turn, made, mode) for mode in ("on", "off", "2")]
    return told, [await stream for stream in streams]


def test_it_is_turned_under_four_clients_and_none_notices(live: Console) -> None:
    live.wait_for(lambda: speculation(live)["control"] == "live", 10)
    began = speculation(live)
    assert (began["mode"], began["started_with"], began["depth_max"]) == ("off", 5, 5)
    before = live.status()["engine"]
    told, answers = asyncio.run(turned_under_streams(live))
    assert [answer.error for answer in answers] == [""] * 4
    assert [answer.usage["completion_tokens"] for answer in answers] == [300] * 4
    results = [one["result"] for one in told]
    assert [(r["how"], r["before"], r["after"]) for r in results] == [
        ("live", "off", "5"),
        ("live", "5", "off"),
        ("live", "off", "2"),
    ]
    assert max(float(result["took_s"]) for result in results) < 1.0
    canaries = [
        event["data"]["canary"]
        for one in told
        for event in one["events"]
        if event["kind"] == "speculation.changed"
    ]
    assert len(canaries) == 3
    assert all("completion passed" in canary for canary in canaries)
    live.wait_for(lambda: speculation(live)["depth"] == 2, 5)
    after = live.status()["engine"]
    assert (after["id"], after["pid"]) == (before["id"], before["pid"])
    assert "min_p" in live.succeed("profiles", "show", "cpu")


def test_drafts_come_and_stop_as_it_is_turned(live: Console) -> None:
    turn(live, "on")
    asyncio.run(chat(live.gateway, REPEAT, max_tokens=120, model="smollm2", temperature=0.0))
    live.wait_for(lambda: isinstance(speculation(live)["drafts"], int | float), 5)
    assert speculation(live)["drafts"] > 0
    turn(live, "off")
    live.wait_for(lambda: speculation(live)["mode"] == "off", 5)
    off = asyncio.run(chat(live.gateway, REPEAT, max_tokens=60, model="smollm2", temperature=0.0))
    # Without drafts every event of the stream is one token.
    assert off.usage["completion_tokens"] == 60
    assert "missing" in speculation(live)["drafts"]
