"""A service in memory: speaks the control API from values that a test sets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from a40console import __version__
from a40console.model.codec import encode
from a40console.model.control import ClientEnvironment, CommandResult, Hello, LogChunk, Trouble
from a40console.model.snapshot import PROTOCOL_VERSION, SCHEMA_VERSION, Snapshot
from a40console.service.client import ServiceClient
from tests import make_snapshot as make


class FakeService:
    """What a service would answer; `transport` gives a client's way to it without a socket."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.snapshot = snapshot or make.snapshot()
        self.up = True
        self.protocol = PROTOCOL_VERSION
        self.events = make.events()
        self.history = make.history()
        self.profiles = make.profiles()
        self.log = "".join(f"INFO 11-29 14:0{n % 10}:00 engine: line {n}\n" for n in range(200))
        self.log_path: str | None = "/root/.a40/engines/now/output.log"
        self.environment = {
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:8080",
            "ANTHROPIC_AUTH_TOKEN": "a40-secret-token",
        }
        self.commands: list[tuple[str, dict[str, str]]] = []
        self.results: dict[str, CommandResult] = {}
        self.refusals: dict[str, Trouble] = {}
        self.logs_asked = 0
        self._streams: list[asyncio.Queue[Snapshot | None]] = []

    def client(self) -> ServiceClient:
        """A client of this service."""
        transport = httpx.MockTransport(self.answer)
        return ServiceClient(Path("/tmp/fake/control.sock"), transport=transport)

    def push(self, snapshot: Snapshot) -> None:
        """The next snapshot."""
        self.snapshot = snapshot
        for stream in self._streams:
            stream.put_nowait(snapshot)

    def go_down(self) -> None:
        """End every stream and answer nobody any more."""
        self.up = False
        for stream in self._streams:
            stream.put_nowait(None)

    def finish(self, command_id: str, result: CommandResult) -> None:
        """How a command that was answered as running has ended."""
        self.results[command_id] = result

    async def answer(self, request: httpx.Request) -> httpx.Response:
        if not self.up:
            raise httpx.ConnectError("connection refused", request=request)
        path = request.url.path
        if path == "/v1/snapshots":
            return httpx.Response(200, content=self._stream())
        if path.startswith("/v1/commands/"):
            return self._command(request, path.removeprefix("/v1/commands/"))
        answer = self._plain()[path](dict(request.url.params))
        return httpx.Response(200, json=encode(answer))

    def _plain(self) -> Mapping[str, Callable[[dict[str, str]], Any]]:
        return {
            "/v1/hello": lambda query: Hello(
                version=__version__,
                schema=SCHEMA_VERSION,
                protocol=self.protocol,
                pid=812,
                gateway_url="http://127.0.0.1:8080",
                events_last_id=self.events[-1].id if self.events else 0,
            ),
            "/v1/snapshot": lambda query: self.snapshot,
            "/v1/history": lambda query: [
                point for point in self.history if point.at_s > float(query["since"])
            ],
            "/v1/events": lambda query: [
                event for event in self.events if event.id > int(query["since"])
            ],
            "/v1/profiles": lambda query: self.profiles,
            "/v1/logs": self._logs,
            "/v1/environment": lambda query: ClientEnvironment(variables=self.environment),
        }

    def _logs(self, query: dict[str, str]) -> LogChunk:
        self.logs_asked += 1
        data = self.log.encode()
        offset = int(query["offset"])
        start = max(0, len(data) + offset) if offset < 0 else min(offset, len(data))
        if offset > len(data):
            start = 0
        piece = data[start : start + int(query["limit"])]
        return LogChunk(path=self.log_path, text=piece.decode(), next_offset=start + len(piece))

    def _command(self, request: httpx.Request, name: str) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=encode(self.results[name]))
        if name in self.refusals:
            return httpx.Response(409, json=encode(self.refusals[name]))
        self.commands.append((name, json.loads(request.content or b"{}")))
        result = self.results.get(name) or CommandResult(
            command=name, id=f"id-{len(self.commands)}", state="done"
        )
        self.results[result.id] = result
        return httpx.Response(200, json=encode(result))

    async def _stream(self) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[Snapshot | None] = asyncio.Queue()
        self._streams.append(queue)
        queue.put_nowait(self.snapshot)
        try:
            while (snapshot := await queue.get()) is not None:
                yield json.dumps(encode(snapshot)).encode() + b"\n"
        finally:
            self._streams.remove(queue)
