"""A server that answers exactly as a test writes it, byte for byte."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from a40console.experiments.bench import Reply, Request
from a40console.experiments.client import LoadClient
from a40console.model.run import Dialect
from a40console.model.run_record import Sample

CHAT, COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@dataclass
class Asked:
    """One request as it arrived, and where the answer goes."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    writer: asyncio.StreamWriter

    def write(self, *events: object) -> None:
        """Each event framed as a chunk of its own, all in one write."""
        self.writer.write(b"".join(frame(event_bytes(event)) for event in events))

    def begin(self) -> None:
        self.writer.write(STREAM_HEAD)

    def end(self) -> None:
        self.writer.write(b"0\r\n\r\n")

    def whole(self, status: str, body: object) -> None:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.writer.write(
            b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (status.encode(), len(data), data)
        )


Answering: TypeAlias = Callable[[Asked], Awaitable[None]]


def frame(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event_bytes(event: object) -> bytes:
    if isinstance(event, bytes):
        return event
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    assert isinstance(event, Mapping)
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def chunk(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def role() -> dict[str, Any]:
    delta = {"role": "assistant", "content": ""}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def usage(prompt: int, generated: int, cached: int | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": generated}
    if cached is not None:
        told["prompt_tokens_details"] = {"cached_tokens": cached}
    return {"choices": [], "usage": told}


@dataclass
class Server:
    """Where it listens, and what it was asked."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0


@asynccontextmanager
async def serving(answer: Answering, socket_path: Path | None = None) -> AsyncIterator[Server]:
    """A server on a free port, or on a Unix socket."""
    server = Server("http://localhost")
    serving_now: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        task = asyncio.current_task()
        assert task is not None
        serving_now[task] = writer
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                asked = await _read(reader, writer)
                server.asked.append(asked)
                await answer(asked)
                await writer.drain()
        writer.close()

    listening = (
        await asyncio.start_server(connected, "127.0.0.1", 0, backlog=512)
        if socket_path is None
        else await asyncio.start_unix_server(connected, socket_path)
    )
    if socket_path is None:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for task, writer in serving_now.items():
            task.cancel()
            writer.transport.abort()
        if serving_now:
            await asyncio.wait(serving_now)


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    headers = {name.lower(): value for name, _, value in pairs}
    body = await reader.readexactly(int(headers["content-length"]))
    return Asked(first.split()[1], headers, json.loads(body), writer)


@dataclass
class Run:
    """A client with what a run would give it."""

    client: LoadClient
    samples: list[Sample]
    stop: asyncio.Event
    clock: Callable[[], float]


@asynccontextmanager
async def client_of(
    server: Server,
    *,
    token: str = "",
    dialect: Dialect = "openai",
    socket_path: Path | None = None,
) -> AsyncIterator[Run]:
    """A client whose clock began just now."""
    began_s = time.monotonic()
    samples: list[Sample] = []
    stop = asyncio.Event()

    def clock() -> float:
        return time.monotonic() - began_s

    client = LoadClient(
        server.url,
        socket_path=str(socket_path or ""),
        token=token,
        dialect=dialect,
        clock=clock,
        record=samples.append,
        stop=stop,
    )
    async with client:
        yield Run(client, samples, stop, clock)


def request(path: str = CHAT, **given: Any) -> Request:
    """One small request."""
    body: dict[str, Any] = {"model": "m", "max_tokens": 8}
    body |= {"prompt": "hi"} if path == COMPLETIONS else {
        "messages": [{"role": "user", "content": "hi"}]
    }  # fmt: skip
    return Request(path=path, **{"body": body, "arm": "a", "timeout_s": 20.0, **given})


async def reply_to(
    answer: Answering, asked: Request, *, token: str = "", dialect: Dialect = "openai"
) -> tuple[Reply, Asked]:
    """What the client makes of one answer, and what the server was asked."""
    async with serving(answer) as server, client_of(server, token=token, dialect=dialect) as run:
        reply = await run.client.send(asked)
    assert run.samples == [reply.sample]
    return reply, server.asked[0]
