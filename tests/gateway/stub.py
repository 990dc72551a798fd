"""An engine that does as a test says, a gateway before it on a real port, and a raw client."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn

from a40console.gateway.anthropic.commitment import TIMING, Timing
from a40console.gateway.app import Collaborators, build_gateway
from a40console.gateway.auth import Authoriser, allow_this_machine
from a40console.gateway.bodies import BodyLimits, HeldBudget
from a40console.gateway.client_limits import ClientLimits
from a40console.gateway.dialect import Dialect, DialectOf
from a40console.gateway.heads import LimitedHeads
from a40console.gateway.hold import AdmissionGate
from a40console.gateway.meter import Meter, Passage
from a40console.gateway.model_names import NamesOf
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import EngineSessions, Unavailable, Upstream
from a40console.model.engine import Endpoint, EngineKind
from a40console.model.request import GatewayRow

DATA = Path(__file__).parent.parent / "data" / "gateway"
LIMITS = BodyLimits()
NO_CLIENT_LIMITS = ClientLimits()
NATIVE = Dialect("native", "keep", True, "messages", "smollm2", None, ())
TRANSLATED = Dialect(
    "translated", "fold", False, "tokenize", "smollm2", None, (), running_usage=True
)
SSE = {"content-type": "text/event-stream; charset=utf-8"}
STOPPED = Unavailable(
    "The engine is stopped: start it with 'a40console engine start'.", "stopped", None, 30
)


async def until(condition: Callable[[], object], timeout_s: float = 5.0) -> float:
    """Wait for a condition; the seconds it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > timeout_s:
            raise AssertionError("it did not happen in time")
        await asyncio.sleep(0.005)
    return time.monotonic() - began


@dataclass
class Received:
    """A request as the engine got it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Reply:
    """The engine's side of one connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.gone = asyncio.Event()
        self.gone_at: float | None = None

    async def start(self, status: int = 200, headers: dict[str, str] = SSE) -> None:
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
        self._writer.write("\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode())
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def whole(
        self, body: bytes, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        said = {"content-type": "application/json", **(headers or {})}
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in said.items())]
        head = "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode()
        self._writer.write(head + body)
        await self._writer.drain()

    def kill(self) -> None:
        """End the connection as a killed process does."""
        self._writer.transport.abort()


Handler = Callable[[Received, Reply], Awaitable[None]]


@dataclass
class StubEngine:
    """Listens on a Unix socket; each request is answered by the handler."""

    handler: Handler
    kind: EngineKind = "vllm"
    plugin: bool = False
    api_key: str | None = None
    served_name: str = "smollm2"
    run_id: str = "run-1"
    requests: list[Received] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    backlog: int = 1024
    accepts: bool = True
    """Whether it takes the connections that come, from the start."""

    async def __aenter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="gw", dir="/tmp"))
        self._connections: set[asyncio.Task[None]] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(self.backlog)
        if self.accepts:
            await self.accept()
        return self

    async def accept(self) -> None:
        """Begin to take connections."""
        self._server = await asyncio.start_unix_server(
            self._accept, sock=self._listener, limit=2**20, backlog=self.backlog
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        shutil.rmtree(self._folder)

    @property
    def path(self) -> str:
        return str(self._folder / "e.sock")

    @property
    def upstream(self) -> Upstream:
        endpoint = Endpoint("http://engine", socket_path=self.path, api_key=self.api_key)
        return Upstream(endpoint, self.kind, self.served_name, self.plugin, self.run_id)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reply = Reply(writer)
        try:
            received = await read_request(reader)
            self.requests.append(received)
            self.replies.append(reply)
            watch = asyncio.create_task(_watch(reader, reply))
            try:
                await self.handler(received, reply)
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
        except (ConnectionError, asyncio.IncompleteReadError):
            reply.gone.set()
        finally:
            writer.close()


async def _watch(reader: asyncio.StreamReader, reply: Reply) -> None:
    with suppress(ConnectionError):
        await reader.read()
    reply.gone_at = time.monotonic()
    reply.gone.set()


async def read_request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body)


@dataclass
class State:
    """What the service would say about the engine."""

    upstream: Upstream | None
    why: Unavailable = STOPPED

    def current(self) -> Upstream | None:
        return self.upstream

    def why_not(self) -> Unavailable:
        return self.why


@dataclass(frozen=True)
class Speaks:
    """Knows how the engine wants to be asked, without asking it."""

    dialect: Dialect

    async def of(self, upstream: Upstream) -> Dialect:
        return self.dialect


class AsAsked:
    """Leaves each request the model's name that its client wrote."""

    async def instead(
        self, sessions: EngineSessions, upstream: Upstream, passage: Passage, asked: object
    ) -> str | None:
        return None


AS_ASKED = AsAsked()
NATIVE_ENGINE, TRANSLATED_ENGINE = Speaks(NATIVE), Speaks(TRANSLATED)


class QuietServer(uvicorn.Server):
    """uvicorn beside another server in one process: signals stay with the test."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass
class Gateway:
    """A gateway that listens on a port."""

    port: int
    meter: Meter
    state: State
    budget: HeldBudget

    async def ended(self, number: int = 1) -> tuple[GatewayRow, ...]:
        """The finished rows, once there are so many: a client can be quicker than the meter."""
        await until(lambda: len(self.meter.finished()) == number)
        return self.meter.finished()


@asynccontextmanager
async def gateway(
    upstream: Upstream | None,
    *,
    why: Unavailable = STOPPED,
    authorise: Authoriser = allow_this_machine,
    limits: BodyLimits = LIMITS,
    dialects: DialectOf = NATIVE_ENGINE,
    client_limits: ClientLimits = NO_CLIENT_LIMITS,
    timing: Timing = TIMING,
    book: SessionBook | None = None,
    gate: AdmissionGate | None = None,
    names: NamesOf = AS_ASKED,
) -> AsyncIterator[Gateway]:
    state, meter, budget = State(upstream, why), Meter(), HeldBudget(limits.held_bytes)
    app = build_gateway(
        upstream=state,
        meter=meter,
        authorise=authorise,
        limits=limits,
        budget=budget,
        client_limits=client_limits,
        collaborators=Collaborators(
            dialects=dialects, timing=timing, book=book, names=names, gate=gate
        ),
    )
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = QuietServer(
        uvicorn.Config(
            app,
            http=LimitedHeads,
            ws="none",
            loop="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
    )
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await until(lambda: server.started)
        yield Gateway(listener.getsockname()[1], meter, state, budget)
    finally:
        server.should_exit = True
        await serving


class Answer:
    """A response as it comes over the wire: chunk by chunk, with the time of each."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}

    async def begin(self) -> None:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(head[0].split(" ")[1])
        pairs = [line.partition(":") for line in head[1:] if line]
        self.headers = {name.lower(): value.strip() for name, _, value in pairs}

    async def chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self._reader.readline(), 16):
            data = await self._reader.readexactly(size + 2)
            yield data[:-2]
        await self._reader.readline()

    async def body(self) -> bytes:
        if "content-length" in self.headers:
            return await self._reader.readexactly(int(self.headers["content-length"]))
        return b"".join([chunk async for chunk in self.chunks()])

    async def json(self) -> Any:
        return json.loads(await self.body())

    def leave(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def call(
    port: int,
    path: str,
    body: bytes | dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
    method: str | None = None,
    begin: bool = True,
) -> AsyncIterator[Answer]:
    """One request on a connection of its own; `begin` waits for the response's head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    verb = method or ("GET" if data is None else "POST")
    lines = [f"{verb} {path} HTTP/1.1", "host: localhost"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if data is not None:
        lines += ["content-type: application/json", f"content-length: {len(data)}"]
    writer.write("\r\n".join([*lines, "", ""]).encode() + (data or b""))
    answer = Answer(reader, writer)
    try:
        if begin:
            await answer.begin()
        yield answer
    finally:
        writer.close()


def events_of(text: bytes) -> list[bytes]:
    """The events of a stream that separates them by an empty line."""
    return [part + b"\n\n" for part in text.split(b"\n\n") if part]


def capture(name: str) -> list[bytes]:
    """The events of a recorded stream."""
    return events_of((DATA / name).read_bytes())
