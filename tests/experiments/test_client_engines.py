"""The client against the simulated engine: what both count is the same, and others are seen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
import uvloop

from a40console.experiments.arm_totals import client_totals, deltas, doubts_of_arm
from a40console.experiments.bench import Request
from a40console.experiments.client import LoadClient
from a40console.experiments.load_health import LoadHealth
from a40console.model.figures import Figure
from a40console.model.run import Dialect
from a40console.model.run_record import Sample
from tests.experiments.stream_server import CHAT, COMPLETIONS, MESSAGES
from tests.sim.engine_process import SimProcess, sim_process

COUNTERS = {
    "vllm:request_success_total": "requests",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:prompt_tokens_cached_total": "cached_tokens",
    "vllm:generation_tokens_total": "generated_tokens",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[SimProcess]:
    with sim_process("--speed", "4", "--enable-prompt-tokens-details") as process:
        yield process


def counted(engine: SimProcess) -> dict[str, Figure]:
    """The engine's counters by our names."""
    found: dict[str, Figure] = {}
    for line in engine.http.get("/metrics").text.splitlines():
        name, _, value = line.rpartition(" ")
        ours = COUNTERS.get(name.partition("{")[0])
        if ours is not None:
            found[ours] = int(found.get(ours, 0)) + int(float(value))  # type: ignore[arg-type]
    return found


def asking(path: str, stream: int, turn: int) -> Request:
    told = f"session {stream} " + "some words to read again " * 40 * (turn + 1)
    body: dict[str, object] = {"model": "qwen3-coder-30b", "max_tokens": 20, "ignore_eos": True}
    if path == COMPLETIONS:
        body["prompt"] = told
    else:
        body["messages"] = [{"role": "user", "content": told}]
    return Request(path=path, body=body, arm="a", index=turn, warm_up=turn == 0)


def loaded(
    engine: SimProcess, path: str, dialect: Dialect
) -> tuple[list[Sample], dict[str, Figure]]:
    """On the loop that a run's process has."""
    return uvloop.run(load(engine, path, dialect))


async def load(
    engine: SimProcess, path: str, dialect: Dialect
) -> tuple[list[Sample], dict[str, Figure]]:
    samples: list[Sample] = []
    client = LoadClient(
        "http://engine",
        socket_path=str(engine.socket),
        dialect=dialect,
        clock=time.monotonic,
        record=samples.append,
        stop=asyncio.Event(),
    )
    health = LoadHealth()
    async with client, health:
        await client.closed(
            [[asking(path, stream, turn) for turn in range(3)] for stream in range(3)]
        )
    return samples, client_totals(samples) | health.figures()


@pytest.mark.parametrize(
    ("path", "dialect"), [(CHAT, "openai"), (COMPLETIONS, "openai"), (MESSAGES, "anthropic")]
)
def test_client_and_engine_count_the_same(engine: SimProcess, path: str, dialect: Dialect) -> None:
    before = counted(engine)
    samples, client = loaded(engine, path, dialect)
    server = deltas(before, counted(engine))
    assert [sample.error for sample in samples] == [""] * 9
    assert server["requests"] == client["requests"] == 9
    assert server["prompt_tokens"] == client["prompt_tokens"]
    assert server["cached_tokens"] == client["cached_tokens"]
    assert server["generated_tokens"] == client["generated_tokens"] == 9 * 20
    doubts = doubts_of_arm("a", wall_s=1.0, client=client, server=server, machine={})
    assert not doubts


def test_a_request_of_another_is_seen(engine: SimProcess) -> None:
    before = counted(engine)
    answer = engine.http.post(COMPLETIONS, json={"prompt": "not ours " * 80, "max_tokens": 5})
    assert answer.is_success
    _, client = loaded(engine, COMPLETIONS, "openai")
    server = deltas(before, counted(engine))
    doubts = doubts_of_arm("a", wall_s=1.0, client=client, server=server, machine={})
    (foreign,) = doubts
    assert (foreign.code, foreign.invalidates) == ("foreign-traffic", True)
    assert "1 more requests than the 9 of the run" in foreign.text
