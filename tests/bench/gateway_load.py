"""The load of the gateway's benchmarks: streams that are counted and not parsed."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from dataclasses import dataclass, field
from statistics import median
from typing import cast

MESSAGES, CHAT = "/v1/messages", "/v1/chat/completions"
TOKENS = 150
SPREAD_S = 2.0
BLAST_STREAMS = 8
BLAST_CHUNKS = 5000
MARK = b'"delta"'


class TooShortError(Exception):
    """The window saw nothing that can be told of."""


@dataclass
class Load:
    """What the clients saw while it counted."""

    counts: bool = True
    path: str = CHAT
    tokens: int = 0
    ttft_s: list[float] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.took_s

    @property
    def ttft_ms(self) -> float:
        """The median.

        Raises:
            TooShortError: If no request began while it counted.
        """
        if not self.ttft_s:
            raise TooShortError(
                f"no request began within {self.took_s:.1f} s: too short a window, give it more"
            )
        return median(self.ttft_s) * 1000


class Client(asyncio.Protocol):
    """One streaming request; counts chunks, parses nothing."""

    def __init__(self, load: Load, kind: str, tokens: int) -> None:
        self.load = load
        turn = {"role": "user", "content": kind}
        body = {"model": "m", "stream": True, "messages": [turn], "max_tokens": tokens}
        data = json.dumps(body).encode()
        self.request = (
            b"POST %b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (load.path.encode(), len(data), data)
        )
        self.done = asyncio.get_running_loop().create_future()
        self.first = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.began_s = time.perf_counter()
        cast("asyncio.Transport", transport).write(self.request)

    def data_received(self, data: bytes) -> None:
        tokens = data.count(MARK)
        if self.load.counts:
            self.load.tokens += tokens
        if tokens and self.first:
            self.first = False
            if self.load.counts:
                self.load.ttft_s.append(time.perf_counter() - self.began_s)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def stream(port: int, load: Load, kind: str, tokens: int) -> None:
    loop = asyncio.get_running_loop()
    transport, client = await loop.create_connection(
        lambda: Client(load, kind, tokens), "127.0.0.1", port
    )
    try:
        await client.done
    finally:
        transport.close()


async def closed_loop(port: int, path: str, streams: int, seconds: float) -> Load:
    """So many clients, each starting its next request when the last one is complete."""
    load = Load(counts=False, path=path)

    async def client(number: int) -> None:
        await asyncio.sleep(number * SPREAD_S / streams)
        while True:
            await stream(port, load, "paced", TOKENS)

    clients = [asyncio.create_task(client(number)) for number in range(streams)]
    await asyncio.sleep(SPREAD_S)
    load.counts, began = True, time.perf_counter()
    await asyncio.sleep(seconds)
    load.counts, load.took_s = False, time.perf_counter() - began
    for task in clients:
        task.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return load


async def burst(port: int, load: Load, streams: int) -> None:
    """So many clients that all start at the same instant."""
    await asyncio.gather(*(stream(port, load, "paced", 10) for _ in range(streams)))


async def blast(port: int, path: str) -> Load:
    """A few streams as fast as they come."""
    load, began = Load(path=path), time.perf_counter()
    await asyncio.gather(*(stream(port, load, "blast", BLAST_CHUNKS) for _ in range(BLAST_STREAMS)))
    load.took_s = time.perf_counter() - began
    return load


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
