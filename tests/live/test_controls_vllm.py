"""The controls of a running real vLLM, by the command line: one slot ended, the cache forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.live.console import Console, console
from tests.live.streams import Answer, chat
from tests.live.test_vllm import PROFILE, engines

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(600)]

VERSION = "0.32.0"
WORDS = "the cat sat on the mat and then " * 20


@pytest.fixture(scope="module")
def live() -> Iterator[Console]:
    folder = engines()
    text = PROFILE.format(
        executable=folder / f"vllm-{VERSION}/venv/bin/vllm",
        model=folder / "smollm2-safetensors",
        plugin="true",
        speculation="false",
    )
    with console() as made:
        made.configure("[gateway]\nport = 0\n[service]\nrestart_engine = false\n")
        made.profile("cpu", text)
        made.serve("--profile", "cpu")
        made.succeed("wait", "ready", "--timeout", "400", timeout_s=420)
        yield made


async def aborted_among_two(made: Console) -> tuple[str, list[Answer]]:
    gateway = made.gateway
    streams = [
        asyncio.create_task(
            chat(gateway, f"{n}. {WORDS}", max_tokens=900, model="smollm2", ignore_eos=True)
        )
        for n in range(2)
    ]
    await asyncio.to_thread(made.wait_for, lambda: made.status()["requests"]["running"] == 2, 30)
    said = await asyncio.to_thread(made.succeed, "engine", "abort", "1", "--yes")
    return said, [await stream for stream in streams]


def test_one_of_two_requests_is_aborted_and_the_other_is_whole(live: Console) -> None:
    said, answers = asyncio.run(aborted_among_two(live))
    assert "slot 1 is aborted" in said
    tokens = sorted(answer.usage.get("completion_tokens", 0) for answer in answers)
    assert tokens[1] > tokens[0]
    live.wait_for(lambda: live.status()["requests"]["running"] == 0, 10)


def test_a_prompt_is_read_again_after_the_cache_was_reset(live: Console) -> None:
    def cached() -> int:
        answer = asyncio.run(chat(live.gateway, WORDS, max_tokens=4, model="smollm2"))
        return int((answer.usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)

    cached()
    assert cached() > 0
    live.wait_for(lambda: live.status()["requests"]["running"] == 0, 10)
    assert "prefix cache is reset" in live.succeed("engine", "reset-cache", "--yes")
    assert cached() == 0


def test_a_cpu_that_was_started_without_it_does_not_sleep(live: Console) -> None:
    refused = live.run("engine", "sleep", "--yes")
    assert refused.returncode == 5
    assert "--enable-sleep-mode" in refused.stderr
