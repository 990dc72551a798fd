"""Rounds of one workload by our load client and by `vllm bench serve`, taking turns."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
import uvloop

from a40console.experiments.bench import Request
from a40console.experiments.client import LoadClient
from a40console.experiments.load_health import LoadHealth
from a40console.model.figures import number
from a40console.model.run_record import Sample

FIRST_TOKEN = 1000
"""Of a vocabulary, from which prompts are drawn; below are bytes and marks."""

LAST_TOKEN = 40_000
PEER_CLIENT = Path(__file__).with_name("peer_client.py")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What every round sends."""

    url: str
    model: str
    tokenizer: str
    streams: int
    requests: int
    input_tokens: int
    output_tokens: int
    simulated: bool
    """Whether the server takes words for tokens."""


@dataclass(kw_only=True)
class Round:
    """What one client saw in one round."""

    seconds: float
    cpu_s: float
    tokens: float
    prompt_tokens: float
    answered: int
    ttfts_s: list[float]
    gaps_s: list[float]
    lag_mean_s: float = float("nan")
    lag_p99_s: float = float("nan")
    engine: dict[str, float] = field(default_factory=dict)
    """What the engine counted meanwhile: seconds, summed, and how many."""


def prompts(work: Workload, random: Random) -> Iterator[list[int] | str]:
    """Prompts of random tokens, as the peer makes them: nothing of one is in another."""
    for _ in range(work.requests):
        tokens = [random.randrange(FIRST_TOKEN, LAST_TOKEN) for _ in range(work.input_tokens)]
        yield " ".join(f"w{token}" for token in tokens) if work.simulated else tokens


async def send_all(work: Workload, asked: Sequence[list[int] | str]) -> Round:
    """One round of ours."""
    samples: list[Sample] = []
    client = LoadClient(work.url, clock=time.monotonic, record=samples.append, stop=asyncio.Event())
    requests = [
        Request(
            path="/v1/completions",
            body={
                "model": work.model,
                "prompt": prompt,
                "max_tokens": work.output_tokens,
                "repetition_penalty": 1.0,
                "temperature": 0.0,
                "ignore_eos": True,
            },
            arm="ours",
            index=index,
        )
        for index, prompt in enumerate(asked)
    ]
    async with client, LoadHealth() as health:
        cpu_s, began_s = time.process_time(), time.monotonic()
        await client.closed([requests[stream :: work.streams] for stream in range(work.streams)])
        cpu_s, took_s = time.process_time() - cpu_s, time.monotonic() - began_s
    failed = [sample.error for sample in samples if sample.error]
    assert not failed, failed[0]
    seen = health.figures()
    return Round(
        seconds=took_s,
        cpu_s=cpu_s,
        tokens=sum(number(sample.generated_tokens) or 0 for sample in samples),
        prompt_tokens=sum(number(sample.prompt_tokens) or 0 for sample in samples),
        answered=len(samples),
        ttfts_s=[number(sample.ttft_s) or 0.0 for sample in samples],
        gaps_s=[gap for sample in samples for gap in sample.gaps_s],
        lag_mean_s=number(seen["loop_lag_mean_s"]) or 0.0,
        lag_p99_s=number(seen["loop_lag_p99_s"]) or 0.0,
    )


class Peer:
    """`vllm bench serve` in its own environment, loaded once."""

    def __init__(self, vllm: Path) -> None:
        python = vllm.parent / "python"
        self._process = subprocess.Popen(
            ["env", "OMP_NUM_THREADS=1", str(python), str(PEER_CLIENT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._read() == "ready"

    def measure(self, work: Workload, seed: int) -> Round:
        """One round of theirs."""
        words = [
            *("--backend", "openai", "--endpoint", "/v1/completions", "--base-url", work.url),
            *("--model", work.model, "--tokenizer", work.tokenizer, "--dataset-name", "random"),
            *("--random-input-len", str(work.input_tokens), "--random-range-ratio", "0"),
            *("--random-output-len", str(work.output_tokens), "--num-prompts", str(work.requests)),
            *("--max-concurrency", str(work.streams), "--seed", str(seed), "--temperature", "0"),
            *("--ready-check-timeout-sec", "0", "--disable-tqdm", "--save-detailed"),
        ]
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        path = Path(self._read())
        told = json.loads(path.read_text())
        path.unlink()
        assert told["answered"] == work.requests, told["answered"]
        return Round(**told)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the peer ended: does its python import vllm?"
        return line


TIMED = ("time_to_first_token_seconds", "inter_token_latency_seconds")


def engine_counts(http: httpx.Client) -> dict[str, float]:
    """Sums and counts of the engine's own times."""
    found: dict[str, float] = {}
    for line in http.get("/metrics").text.splitlines():
        name, _, value = line.rpartition(" ")
        bare = name.partition("{")[0].removeprefix("vllm:")
        if bare.removesuffix("_sum").removesuffix("_count") in TIMED:
            found[bare] = found.get(bare, 0.0) + float(value)
    return found


def alternate(work: Workload, peer: Peer, rounds: int, seed: int) -> dict[str, list[Round]]:
    """Ours and theirs by turns, the order turned each time."""
    seen: dict[str, list[Round]] = {"ours": [], "theirs": []}
    random = Random(seed)
    with httpx.Client(base_url=work.url, timeout=120) as http:
        for turn in range(rounds):
            order = ["ours", "theirs"] if turn % 2 == 0 else ["theirs", "ours"]
            for who in order:
                asked = list(prompts(work, random)) if who == "ours" else []
                before = engine_counts(http)
                if who == "ours":
                    round_ = uvloop.run(send_all(work, asked))
                else:
                    round_ = peer.measure(work, random.randrange(10**6))
                after = engine_counts(http)
                round_.engine = {name: after[name] - before.get(name, 0.0) for name in after}
                seen[who].append(round_)
    return seen
