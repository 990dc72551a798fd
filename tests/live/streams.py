"""Clients and counters for the tests on real engines."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

import httpx

from a40console.model.codec import encode
from a40console.model.figures import Missing, number
from a40console.model.snapshot import Snapshot
from a40console.service.client import ServiceClient
from tests.live.console import SCHEMA, Console

WORDS = "Write a long story about a lighthouse keeper who counts the waves. Part {}."


@dataclass
class Answer:
    """What one client saw."""

    request_id: str = ""
    text: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    events: int = 0
    error: str = ""


async def chat(
    base_url: str,
    prompt: str,
    *,
    max_tokens: int,
    model: str = "any",
    socket_path: str | None = None,
    temperature: float = 0.8,
    **extras: object,
) -> Answer:
    """Stream one chat completion, with usage, as a client does; `extras` go into its body."""
    answer = Answer()
    transport = httpx.AsyncHTTPTransport(uds=socket_path) if socket_path else None
    body = {
        **extras,
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": max_tokens,
        "temperature": temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }
    async with (
        httpx.AsyncClient(transport=transport, timeout=300) as client,
        client.stream("POST", f"{base_url}/v1/chat/completions", json=body) as response,
    ):
        answer.request_id = response.headers.get("x-request-id", "")
        if response.is_error:
            answer.error = (await response.aread()).decode()
            return answer
        async for line in response.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            answer.events += 1
            chunk = json.loads(line[6:])
            if chunk.get("error"):
                answer.error = str(chunk["error"])
            for choice in chunk.get("choices", []):
                answer.text += (choice.get("delta") or {}).get("content") or ""
            answer.usage = chunk.get("usage") or answer.usage
    return answer


async def four_streams(base_url: str, *, max_tokens: int, model: str = "any") -> list[Answer]:
    """Four streams at once."""
    return await asyncio.gather(
        *(
            chat(base_url, WORDS.format(part), max_tokens=max_tokens, model=model)
            for part in range(4)
        )
    )


@dataclass
class Watch:
    """Snapshots and the engine's own counter, recorded side by side.

    A reading of the counter is its middle instant, its value, and how long the answer took.
    """

    snapshots: list[Snapshot] = field(default_factory=list)
    counter: list[tuple[float, float, float]] = field(default_factory=list)

    def counted(self, begin_s: float, end_s: float) -> float | None:
        """What the counter gained between two instants; None where it was not read around them."""
        ends = [self._counter_at(at_s) for at_s in (begin_s, end_s)]
        return None if ends[0] is None or ends[1] is None else ends[1] - ends[0]

    def _counter_at(self, at_s: float) -> float | None:
        """Between the two nearest readings; one that took long has no instant of its own."""
        usual_s = median(latency_s for _, _, latency_s in self.counter)
        prompt = [(t, n) for t, n, latency_s in self.counter if latency_s < 2.5 * usual_s]
        for (t0, n0), (t1, n1) in pairwise(prompt):
            if t0 <= at_s <= t1 and t1 - t0 < 1:
                return n0 + (n1 - n0) * (at_s - t0) / (t1 - t0)
        return None


async def watch(console: Console, seconds: float, read_counter: Any) -> Watch:
    """Record snapshots (each checked against the schema) and the counter several times a second."""
    record = Watch()

    async def poll() -> None:
        while True:
            before_s = time.monotonic()
            value = await read_counter()
            after_s = time.monotonic()
            record.counter.append(((before_s + after_s) / 2, value, after_s - before_s))
            await asyncio.sleep(0.15)

    async def follow() -> None:
        async with ServiceClient(console.paths.control_socket) as client:
            async for snapshot in client.snapshots():
                SCHEMA.validate(encode(snapshot))
                record.snapshots.append(snapshot)

    tasks = [asyncio.create_task(poll()), asyncio.create_task(follow())]
    await asyncio.sleep(seconds)
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return record


def rate_errors(record: Watch) -> list[float]:
    """By how much the slots' rates differ from the engine's counter over 10 s, each time.

    Two windows of 5 s make 10 s. A window ends when its source was read, which is as old as the
    block says.
    """
    errors = []
    for last in record.snapshots:
        end_s = window_end_s(last)
        before = min(record.snapshots, key=lambda s: abs(window_end_s(s) - end_s + 5))
        begin_s = window_end_s(before) - 5
        rates = [slots_rate(before), slots_rate(last)]
        counted = record.counted(begin_s, end_s)
        if None in rates or counted is None or abs(end_s - begin_s - 10) > 0.5:
            continue
        shown = sum(rate for rate in rates if rate is not None) / 2
        errors.append(shown / (counted / (end_s - begin_s)) - 1)
    return errors


async def rates_agree(measure: Callable[[], Awaitable[Watch]], within: float) -> str:
    """Empty once slots and counter agree, else by how much they differ.

    A busy machine answers late, which leaves windows without a counter or shifts single ones: what
    is compared is the median of all windows so far, in up to eight measurements. A wrong figure is
    wrong in every window.
    """
    errors: list[float] = []
    for _ in range(8):
        errors += rate_errors(await measure())
        if len(errors) >= 3 and abs(median(errors)) <= within:
            return ""
    return f"the rates differ from the counter by {[round(error, 4) for error in errors]}"


def window_end_s(snapshot: Snapshot) -> float:
    """When the source behind a snapshot's rates was read."""
    age_s = number(snapshot.throughput.age_s)
    assert age_s is not None
    return snapshot.monotonic_s - age_s


def slots_rate(snapshot: Snapshot) -> float | None:
    """Σ of the slots' tokens a second over the window."""
    if isinstance(snapshot.slots, Missing):
        return None
    rates = [number(slot.window_tokens_per_s) for slot in snapshot.slots]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None


async def vllm_counter(socket_path: str) -> float:
    """generation_tokens_total, straight from the engine."""
    return await _metric(socket_path, r"^vllm:generation_tokens_total\{[^}]*\} (\S+)$")


async def llamacpp_counter(socket_path: str) -> float:
    """tokens_predicted_total and the running requests' n_decoded."""
    total = await _metric(socket_path, r"^llamacpp:tokens_predicted_total (\S+)$")
    async with _client(socket_path) as client:
        slots = (await client.get("/slots")).json()
    running = [slot for slot in slots if slot["is_processing"]]
    return total + sum(_decoded(slot) for slot in running)


def _decoded(slot: dict[str, Any]) -> int:
    token = slot.get("next_token", {})
    first = token[0] if isinstance(token, list) else token
    decoded: int = first.get("n_decoded", 0)
    return decoded


async def _metric(socket_path: str, pattern: str) -> float:
    async with _client(socket_path) as client:
        text = (await client.get("/metrics")).text
    found: Sequence[str] = re.findall(pattern, text, re.MULTILINE)
    return sum(float(value) for value in found)


def _client(socket_path: str) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=socket_path)
    return httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=10)
