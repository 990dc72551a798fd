"""What the gateway's benchmarks measure against: an engine, and the gateway, each a process.

    python tests/bench/gateway_engine.py engine SOCKET PORT PASSES_PER_S
    python tests/bench/gateway_engine.py gateway SOCKET PORT plugin|metered

The engine plays chat chunks and messages as vLLM sends them: one pass emits a chunk for each
stream at once. The gateway runs under uvicorn with uvloop and httptools.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from dataclasses import dataclass
from functools import partial
from typing import cast

import uvicorn
import uvloop

from a40console.gateway.app import Collaborators, build_gateway
from a40console.gateway.auth import allow_this_machine
from a40console.gateway.dialect import Dialect
from a40console.gateway.meter import Meter
from a40console.gateway.upstream import Unavailable, Upstream
from a40console.model.engine import Endpoint

PREFILL_S = 0.02
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
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


def frame(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


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


def main() -> None:
    """Be one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("role", choices=["engine", "gateway"])
    parser.add_argument("socket")
    parser.add_argument("port", type=int)
    parser.add_argument("how", help="passes per second, or plugin|metered")
    chosen = parser.parse_args()
    if chosen.role == "engine":
        uvloop.run(run_engine(chosen.socket, chosen.port, float(chosen.how)))
    else:
        run_gateway(chosen.socket, chosen.port, chosen.how == "plugin")


if __name__ == "__main__":
    main()
