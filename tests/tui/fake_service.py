"""A service in memory: speaks the control API from values that a test sets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from a40console import __version__
from a40console.advisor.limit import explain
from a40console.model.codec import encode
from a40console.model.control import (
    CommandResult,
    Digest,
    Hello,
    LogChunk,
    ReadMark,
    Trouble,
)
from a40console.model.engine_log import LogMeaning
from a40console.model.explanation import Explanation
from a40console.model.figures import Missing, Text
from a40console.model.fix import FixOffer
from a40console.model.session import SessionDetail
from a40console.model.snapshot import PROTOCOL_VERSION, SCHEMA_VERSION, Snapshot
from a40console.model.turning import TurningWay
from a40console.service.client import ServiceClient
from a40console.service.connecting import client_environment
from tests import make_snapshot as make
from tests.tui import fake_past
from tests.tui.fake_runs import FakeRuns


class FakeService:
    """What a service would answer; `transport` gives a client's way to it without a socket."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.snapshot = snapshot or make.snapshot()
        self.up = True
        self.protocol = PROTOCOL_VERSION
        self.events = make.events()
        self.history = make.history()
        self.digest = fake_past.digest()
        self.starts = fake_past.starts()
        self.spending = fake_past.spending()
        self.read_mark = 0
        self.read_at: Text = Missing("never read")
        self.marks_set: list[int] = []
        self.profiles = make.profiles()
        self.fix: FixOffer | None = None
        self.changes = make.profile_diff()
        self.log = "".join(f"INFO 11-29 14:0{n % 10}:00 engine: line {n}\n" for n in range(200))
        self.log_path: str | None = "/root/.a40/engines/now/output.log"
        self.environment = client_environment(
            url="http://127.0.0.1:8080",
            listens_on="127.0.0.1",
            token="a40-secret-token",
            served_name="qwen3-coder-30b",
            window_tokens=262_144,
            environment={"RUNPOD_POD_ID": "abc123", "USER": "root"},
        )
        self.sessions: dict[str, SessionDetail] = {}
        self.sessions_asked: list[str] = []
        self.runs = FakeRuns()
        self.commands: list[tuple[str, dict[str, str]]] = []
        self.results: dict[str, CommandResult] = {}
        self.refusals: dict[str, Trouble] = {}
        self.cost: Trouble | None = None
        """Why the switch would be refused."""

        self.way: TurningWay | Trouble = TurningWay(how="live", tokens=0, why="", last_start_s=42.4)
        self.digests_asked: list[dict[str, str]] = []
        self.logs_asked = 0
        self.why_asked = 0
        self.explains = True
        self.older_logs: dict[str, str] = {}
        self.meanings: dict[str, LogMeaning] = {}
        self.passages: list[str] = []
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
        below: dict[str, Callable[[str], httpx.Response]] = {
            "/v1/commands/": lambda name: self._command(request, name),
            "/v1/sessions/": self._session,
            "/v1/run": lambda _: self.runs.answer(request),
            "/v1/experiments": lambda _: self.runs.answer(request),
            "/v1/hypotheses": lambda _: self.runs.answer(request),
        }
        for begin, answer_below in below.items():
            if path.startswith(begin):
                return answer_below(path.removeprefix(begin))
        if path == "/v1/logs/explain":
            return self._explain(json.loads(request.content))
        special: dict[str, Callable[[], httpx.Response]] = {
            "/v1/read-mark": lambda: self._mark(request),
            "/v1/profiles/fix": self._fix,
            "/v1/speculation-way": self._way,
            "/v1/switch-cost": lambda: self._cost(dict(request.url.params)),
        }
        if path in special:
            return special[path]()
        if path == "/v1/why" and not self.explains:
            return self._no_why()
        answer = self._plain()[path](dict(request.url.params))
        return httpx.Response(200, json=encode(answer))

    def _fix(self) -> httpx.Response:
        trouble = Trouble(message="No start has failed of late", exit_code=5)
        return httpx.Response(200 if self.fix else 409, json=encode(self.fix or trouble))

    def _way(self) -> httpx.Response:
        return httpx.Response(409 if isinstance(self.way, Trouble) else 200, json=encode(self.way))

    def _cost(self, query: dict[str, str]) -> httpx.Response:
        told = self.cost or make.switch_cost(query["profile"])
        return httpx.Response(409 if self.cost else 200, json=encode(told))

    def _no_why(self) -> httpx.Response:
        trouble = Trouble(message="The control API has no GET /v1/why")
        return httpx.Response(400, json=encode(trouble))

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
            "/v1/history": lambda query: fake_past.history(self.history, query),
            "/v1/events": lambda query: fake_past.events(self.events, query),
            "/v1/digest": self._digest,
            "/v1/starts": lambda query: self.starts[: int(query["limit"])],
            "/v1/spending": lambda query: self.spending,
            "/v1/profiles": lambda query: self.profiles,
            "/v1/profiles/changes": lambda query: self.changes,
            "/v1/logs": self._logs,
            "/v1/environment": lambda query: self.environment,
            "/v1/why": lambda query: self._why(),
        }

    def _session(self, name: str) -> httpx.Response:
        self.sessions_asked.append(name)
        if name in self.sessions:
            return httpx.Response(200, json=encode(self.sessions[name]))
        trouble = Trouble(message=f"No session is known as {name}", exit_code=2)
        return httpx.Response(400, json=encode(trouble))

    def _mark(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.marks_set.append(json.loads(request.content)["event"])
            self.read_mark = max(self.read_mark, self.marks_set[-1])
        mark = ReadMark(event=self.read_mark, at=self.read_at)
        return httpx.Response(200, json=encode(mark))

    def _digest(self, query: dict[str, str]) -> Digest:
        self.digests_asked.append(query)
        return self.digest

    def _why(self) -> Explanation:
        self.why_asked += 1
        return explain(self.snapshot)

    def _logs(self, query: dict[str, str]) -> LogChunk:
        self.logs_asked += 1
        start = query.get("start", "")
        path = f"/root/.a40/engines/{start}/output.log" if start else self.log_path
        data = (self.older_logs[start] if start else self.log).encode()
        offset, limit, skipped = int(query["offset"]), int(query["limit"]), 0
        begin = max(0, len(data) + offset) if offset < 0 else offset
        if offset > len(data):
            begin = 0
        if query.get("newest") and offset >= 0 and len(data) - begin > limit:
            end = data.index(b"\n", len(data) - limit) + 1
            skipped, begin = data[begin:end].count(b"\n"), end
        piece = data[begin : begin + limit]
        return LogChunk(
            path=path,
            text=piece.decode(),
            next_offset=begin + len(piece),
            size_bytes=len(data),
            skipped_lines=skipped,
        )

    def _explain(self, question: dict[str, Any]) -> httpx.Response:
        texts = [passage["text"] for passage in question["passages"]]
        self.passages += texts
        known = [[m for part, m in self.meanings.items() if part in text] for text in texts]
        return httpx.Response(200, json=[encode(found[0]) if found else None for found in known])

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
