"""What the gateway costs, beside the same load sent straight to the engine, in one run.

Three processes: an engine that plays chat chunks and messages as vLLM sends them (one pass emits
a chunk for each stream at once), the gateway under uvicorn with uvloop and httptools, and this
load generator.

    python tests/bench/gateway_overhead.py [--seconds 8]

Prints the ratio of tokens per second at 32 streams and 1,200 tokens/s, the added time to first
token (median) at 8 and 32 streams, the CPU per chunk, and the chunks per second that one core
carries.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import cast

import psutil
import uvicorn
import uvloop

from a40console.gateway.app import Collaborators, build_gateway
from a40console.gateway.auth import allow_this_machine
from a40console.gateway.dialect import Dialect
from a40console.gateway.meter import Meter
from a40console.gateway.upstream import Unavailable, Upstream
from a40console.model.engine import Endpoint

PREFILL_S = 0.02
TOKENS = 150
ROUNDS = 20
SPREAD_S = 2.0
BLAST_STREAMS = 8
BLAST_CHUNKS = 5000
BLAST_BATCH = 20
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
CHUNK = (
    '{"id":"chatcmpl-a96e57a728b42577","object":"chat.completion.chunk","created":1795958079,'
    '"model":"smollm2","choices":[{"index":0,"delta":{"content":" sea"},"logprobs":null,'
    '"finish_reason":null,"token_ids":null}]'
)
USAGE = (
    ',"usage":{"prompt_tokens":37,"total_tokens":%d,"completion_tokens":%d,'
    '"completion_tokens_details":null}'
)
MARK = b'"delta"'
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


def frame(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


MESSAGES, CHAT = "/v1/messages", "/v1/chat/completions"
OPENING = (
    'event: message_start\ndata: {"type":"message_start","message":{"id":"chatcmpl-1","type":'
    '"message","role":"assistant","content":[],"model":"smollm2","stop_reason":null,'
    '"stop_sequence":null,"usage":{"input_tokens":37,"output_tokens":0}}}\n\n'
    'event: content_block_start\ndata: {"type":"content_block_start","content_block":{"type":'
    '"text","text":""},"index":0}\n\n'
)
PIECE = (
    'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"type":'
    '"text_delta","text":" sea"},"index":0}\n\n'
)
CLOSING = (
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    '"usage":{"output_tokens":9}}\n\n'
    'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


def piece(number: int) -> bytes:
    """A token of a message; the first comes with what opens it."""
    return frame(((OPENING if number == 1 else "") + PIECE).encode())


def token(number: int, usage: bool) -> bytes:
    counted = USAGE % (37 + number, number) if usage else ""
    return frame(f"data: {CHUNK}{counted}}}\n\n".encode())


END = frame(b"data: [DONE]\n\n") + b"0\r\n\r\n"
MESSAGE_END = frame(CLOSING.encode()) + b"0\r\n\r\n"


# --- the engine --------------------------------------------------------------------------------


class EngineConnection(asyncio.Protocol):
    """One request a connection: `max_tokens` chunks, at the engine's pace or at once."""

    def __init__(self, streams: set[EngineConnection]) -> None:
        self.streams = streams
        self.buffer = b""
        self.sent = 0
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, _, body = self.buffer.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if length is None or len(body) < int(length[1]):
            return
        request = json.loads(body)
        self.message = head.startswith(b"POST /v1/messages")
        self.usage = bool((request.get("stream_options") or {}).get("continuous_usage_stats"))
        self.wanted = request["max_tokens"]
        self.transport.write(HEAD)
        if request["messages"][0]["content"] == "blast":
            self.blasting = asyncio.create_task(self.blast())
        else:
            asyncio.get_running_loop().call_later(PREFILL_S, self.begin)

    def begin(self) -> None:
        if not self.transport.is_closing():
            self.streams.add(self)
            self.step()

    def step(self) -> None:
        self.sent += 1
        if self.transport.is_closing():
            self.streams.discard(self)
            return
        self.transport.write(self.token(self.sent))
        if self.sent == self.wanted:
            self.streams.discard(self)
            self.finish()

    def token(self, number: int) -> bytes:
        return piece(number) if self.message else token(number, self.usage)

    async def blast(self) -> None:
        batch = b"".join(self.token(number + 2) for number in range(BLAST_BATCH))
        if self.message:
            self.transport.write(frame(OPENING.encode()))
        for _ in range(self.wanted // BLAST_BATCH):
            await self.writable.wait()
            self.transport.write(batch)
        self.finish()

    def finish(self) -> None:
        self.transport.write(MESSAGE_END if self.message else END)
        self.transport.close()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.streams.discard(self)
        self.writable.set()


async def run_engine(path: str, port: int, passes_per_s: float) -> None:
    loop = asyncio.get_running_loop()
    streams: set[EngineConnection] = set()
    accept = partial(EngineConnection, streams)
    listeners = (
        await loop.create_unix_server(accept, path, backlog=512),
        await loop.create_server(accept, "127.0.0.1", port, backlog=512),
    )
    at = loop.time()
    while all(listener.is_serving() for listener in listeners):
        at += 1 / passes_per_s
        await asyncio.sleep(max(0.0, at - loop.time()))
        for stream in tuple(streams):
            stream.step()


# --- the gateway -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Serving:
    upstream: Upstream

    def current(self) -> Upstream | None:
        return self.upstream

    def why_not(self) -> Unavailable:
        return Unavailable("never", "never", None, 1)


class Native:
    """Knows that the engine has the Messages API, without asking."""

    async def of(self, upstream: Upstream) -> Dialect:
        return Dialect("native", "keep", False, "none", upstream.served_name, None, ())


def run_gateway(path: str, port: int, plugin: bool) -> None:
    upstream = Upstream(Endpoint("http://engine", path), "vllm", "smollm2", plugin, "bench")
    app = build_gateway(
        upstream=Serving(upstream),
        meter=Meter(),
        authorise=allow_this_machine,
        collaborators=Collaborators(dialects=Native()),
    )
    uvicorn.run(
        app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", ws="none",
        access_log=False, log_level="warning",
    )  # fmt: skip


# --- the load ----------------------------------------------------------------------------------


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


# --- the comparison ----------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def process(port: int, *arguments: object) -> Iterator[psutil.Process]:
    child = subprocess.Popen([sys.executable, __file__, *map(str, arguments)])
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait(10)


def cpu_s(child: psutil.Process) -> float:
    used = child.cpu_times()
    return float(used.user + used.system)


def median_ms(load: Load) -> float:
    return median(load.ttft_s) * 1000


async def compare(
    direct: int, gateway: int, path: str, child: psutil.Process, seconds: float
) -> None:
    await burst(gateway, Load(path=path), 8)
    for streams in (8, 32):
        straight, through = Load(path=path), Load(path=path)
        for _ in range(ROUNDS):
            await burst(direct, straight, streams)
            await burst(gateway, through, streams)
        added_ms = median_ms(through) - median_ms(straight)
        print(
            f"  {streams:2} streams starting at once: added TTFT p50 {added_ms:5.2f} ms "
            f"({median_ms(straight):.1f} direct)"
        )
    for streams in (8, 32):
        straight = await closed_loop(direct, path, streams, seconds)
        used_s = cpu_s(child)
        through = await closed_loop(gateway, path, streams, seconds)
        used_us = (cpu_s(child) - used_s) * 1e6 / (through.tokens * (1 + SPREAD_S / seconds))
        added_ms = median_ms(through) - median_ms(straight)
        ratio = through.tokens_per_s / straight.tokens_per_s
        print(
            f"  {streams:2} streams, one request after another: {straight.tokens_per_s:5.0f} tok/s "
            f"direct, ratio {ratio:.4f}, added TTFT p50 {added_ms:5.2f} ms, "
            f"CPU {used_us:5.1f} µs a chunk"
        )
    used_s = cpu_s(child)
    load = await blast(gateway, path)
    used_s = cpu_s(child) - used_s
    print(
        f"  ceiling: {load.tokens / used_s:6.0f} chunks/s a core, "
        f"{load.tokens_per_s:6.0f}/s here (CPU {used_s / load.took_s:.0%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--passes", type=float, default=37.5, help="passes per second")
    parser.add_argument("role", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    match chosen.role:
        case ["engine", path, port, passes]:
            uvloop.run(run_engine(path, int(port), float(passes)))
            return
        case ["gateway", path, port, plugin]:
            run_gateway(path, int(port), plugin == "plugin")
            return
    folder = Path(tempfile.mkdtemp(prefix="gwb", dir="/tmp"))
    path, direct = folder / "e.sock", free_port()
    try:
        with process(direct, "engine", path, direct, chosen.passes):
            for title, route, plugin in (
                ("pass-through", CHAT, "plugin"),
                ("usage added and cut", CHAT, "metered"),
                ("messages, guarded", MESSAGES, "plugin"),
            ):
                print(title)
                port = free_port()
                with process(port, "gateway", path, port, plugin) as child:
                    uvloop.run(compare(direct, port, route, child, chosen.seconds))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
