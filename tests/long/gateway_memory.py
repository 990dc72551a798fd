"""Whether the gateway's memory stays flat over many requests, by hand: the slope is the result.

    python -m tests.long.gateway_memory [--requests 100000]

Requests of many sessions, turn after turn, go through a gateway in a process of its own to the
engine of `tests.bench.gateway_engine`; its resident memory is printed ten times. Flat means that
the second half grows by less than 1 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator

import aiohttp
import psutil
import uvloop

from tests.bench import gateway_engine
from tests.bench.gateway_load import free_port
from tests.bench.gateway_peers import started

AT_ONCE = 16
REPORTS = 10
TURNS = 20
"""Turns of a session before the next one begins."""

WORDS = "the gauge folds what the ledger drops " * 20


def body(session: int, turn: int) -> bytes:
    """A turn of a session: everything before it, and one more question."""
    messages = []
    for past in range(turn + 1):
        messages.append({"role": "user", "content": f"question {past} of {session}: {WORDS}"})
        if past < turn:
            messages.append({"role": "assistant", "content": f"answer {past} of {session}"})
    return json.dumps(
        {"model": "any", "max_tokens": 4, "stream": True, "messages": messages}
    ).encode()


async def ask(http: aiohttp.ClientSession, url: str, number: int) -> None:
    session, turn = divmod(number, TURNS)
    headers = {
        "content-type": "application/json",
        "user-agent": "claude-cli/2.1.332 (external, cli)",
        "x-claude-code-session-id": f"00000000-0000-4000-8000-{session:012d}",
    }
    async with http.post(f"{url}/v1/messages", data=body(session, turn), headers=headers) as answer:
        text = await answer.read()
        assert answer.status == 200, text
        assert b"message_stop" in text


async def drive(port: int, process: psutil.Process, requests: int) -> list[float]:
    """Resident megabytes after each tenth of the requests."""
    sizes: list[float] = []
    url, began_s = f"http://127.0.0.1:{port}", time.monotonic()
    numbers = iter(range(requests))
    done = 0

    async def worker(http: aiohttp.ClientSession) -> None:
        nonlocal done
        for number in numbers:
            await ask(http, url, number)
            done += 1
            if done % (requests // REPORTS) == 0:
                sizes.append(process.memory_info().rss / 1e6)
                rate = done / (time.monotonic() - began_s)
                print(
                    f"{done:>8} requests {sizes[-1]:7.1f} MB   {rate:5.0f} requests/s", flush=True
                )

    async with aiohttp.ClientSession() as http:
        await asyncio.gather(*(worker(http) for _ in range(AT_ONCE)))
    return sizes


def run(requests: int) -> Iterator[str]:
    """The verdict on the second half."""
    script, folder = gateway_engine.__file__, tempfile.mkdtemp(prefix="a40m-", dir="/tmp")
    direct, gateway = free_port(), free_port()
    engine = [sys.executable, script, "engine", f"{folder}/engine.sock", str(direct), "2000"]
    words = [sys.executable, script, "gateway", f"{folder}/engine.sock", str(gateway), "plugin"]
    try:
        with started(engine, direct), started(words, gateway) as process:
            sizes = uvloop.run(drive(gateway, process, requests))
        half = sizes[len(sizes) // 2 - 1]
        yield f"second half: {sizes[-1] - half:+.1f} MB over {requests // 2} requests"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    for text in run(parser.parse_args().requests):
        print(text)


if __name__ == "__main__":
    main()
