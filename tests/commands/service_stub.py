"""A service for tests of the command line: real socket, real lock, real HTTP, a scripted engine.

Run as `python service_stub.py serve` with the repository on PYTHONPATH; its home comes from
A40CONSOLE_HOME, its script as JSON from STUB_SCRIPT (keys: see `Script`).
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from a40console.advisor.limit import explain
from a40console.model.codec import encode
from a40console.model.control import (
    ClientAddress,
    ClientEnvironment,
    CommandResult,
    Hello,
    LogChunk,
    ReadMark,
    Trouble,
)
from a40console.model.engine import EngineState
from a40console.model.event import Event
from a40console.model.snapshot import PROTOCOL_VERSION, Snapshot
from a40console.model.switching import SwitchInfo
from a40console.model.turning import TurningWay
from a40console.paths import locate, make_private
from tests import make_session, make_sessions
from tests import make_snapshot as make
from tests.commands.stub_runs import StubRuns
from tests.tui import fake_past

TOKEN = "secret-token-of-the-gateway"
UNDER_WAY = SwitchInfo(
    what="switch to beta",
    profile="beta",
    step="prepare",
    step_s=1.0,
    total_s=1.0,
    detail="looking ahead",
    who="alice@pod",
)
HAPPENED = (
    Event(1, "2026-11-29T13:00:00Z", "service.started", "the service starts"),
    Event(2, "2026-11-29T13:00:01Z", "engine.starting", "tiny starts"),
    Event(
        3,
        "2026-11-29T13:30:00Z",
        "engine.ended",
        "out of \x1b[31mmemory",
        "error",
        {"evidence": "Killed", "remedy": "Lower max_model_len.", "run": "r1"},
    ),
    Event(4, "2026-11-29T13:31:00Z", "note.added", "[bold]pruning[/] off"),
    Event(5, "2026-11-29T13:32:00Z", "finding.began", "The quota throttles", "warn"),
)


@dataclass
class Script:
    """How the stub behaves."""

    state: str = "absent"
    start: str = "serves"
    """What a start comes to: serves, fails, stalls, dies: the service in the middle of it."""

    refuse_with: int | None = None
    """Every command is refused with this exit code."""

    ignore_stop: bool = False
    protocol: int = PROTOCOL_VERSION
    gateway: str = "answers"
    """answers, refuses, down, breaks, errors, none, colourful"""

    arrives: bool = False
    """A session sends its second request as soon as somebody follows."""

    running: int = 0
    slots: int = 0
    switching: bool = False
    """Whether another change is under way."""

    sessions: bool = False
    """Whether clients' sessions are known."""

    runs: bool = False
    """Whether runs are known."""

    interval_s: float = 0.1
    log_file: str | None = None
    exit_code: int | None = None
    """End at once with it, after a line on stderr."""

    start_delay_s: float = 0.0
    stream_count: int | None = None


def at_state(state: EngineState, slots: int = 0) -> Snapshot:
    """A snapshot of an engine in that state; while it serves, with so many requests."""
    if state is EngineState.SERVING and slots:
        return make.snapshot(slots=tuple(make.slot(slot=number) for number in range(slots)))
    special = {
        EngineState.SERVING: make.idle,
        EngineState.STARTING: make.starting,
        EngineState.FAILED: make.failed,
    }
    return special[state]() if state in special else make.without_engine(state)


class StubService:
    """Answers the control API and the gateway's chat route as the script says."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._state = EngineState(script.state)
        self._commands: dict[str, CommandResult] = {}
        self._ends_at: dict[str, float] = {}
        self._arguments: dict[str, dict[str, str]] = {}
        self._began = time.monotonic()
        self._runs = StubRuns(known=script.runs)
        self.gateway_url: str | None = None
        self.stopping = asyncio.Event()

    def control_app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/hello", self._hello),
                Route("/v1/snapshot", self._snapshot),
                Route("/v1/snapshots", self._snapshots),
                Route("/v1/why", self._why),
                Route("/v1/environment", self._environment),
                Route("/v1/sessions/{name}", self._session),
                Route("/v1/events", self._events),
                Route("/v1/history", self._history),
                Route("/v1/starts", self._starts),
                Route("/v1/digest", self._digest),
                Route("/v1/spending", self._spending),
                Route("/v1/read-mark", self._read_mark),
                Route("/v1/profiles/fix", self._fix),
                Route("/v1/profiles/changes", self._changes),
                Route("/v1/switch-cost", self._switch_cost),
                Route("/v1/speculation-way", self._way),
                Route("/v1/logs", self._logs),
                *self._runs.routes(),
                Route("/v1/commands/{name}", self._start, methods=["POST"]),
                Route("/v1/commands/{name}", self._result),
            ]
        )

    def gateway_app(self) -> Starlette:
        return Starlette(routes=[Route("/v1/chat/completions", self._chat, methods=["POST"])])

    async def _hello(self, request: Request) -> Response:
        return JSONResponse(
            encode(
                Hello(
                    version="0.1.0",
                    schema=1,
                    protocol=self._script.protocol,
                    pid=os.getpid(),
                    gateway_url=None if self._script.gateway == "none" else self.gateway_url,
                    events_last_id=7,
                )
            )
        )

    def _now(self) -> Snapshot:
        self._advance()
        snapshot = at_state(self._state, self._script.slots)
        if running := self._script.running or self._script.slots:
            requests = replace(snapshot.requests, running=running)
            snapshot = replace(snapshot, requests=requests)
        if self._script.switching:
            engine = replace(snapshot.engine, switch=UNDER_WAY)
            snapshot = replace(snapshot, engine=engine)
        if self._script.arrives:
            session = make_session.session(session="5f2a", requests=1)
            snapshot = replace(snapshot, sessions=(session,))
        if self._script.sessions:
            snapshot = replace(snapshot, sessions=make_sessions.several())
        interval_s = self._script.interval_s
        seq = int((time.monotonic() - self._began) / interval_s)
        return replace(snapshot, interval_s=interval_s, seq=seq)

    async def _snapshot(self, request: Request) -> Response:
        return JSONResponse(encode(self._now()))

    async def _session(self, request: Request) -> Response:
        if not self._script.sessions:
            return JSONResponse(encode(make_session.detail(session=request.path_params["name"])))
        begins, known = request.path_params["name"], make_sessions.details()
        found = [known[name] for name in known if name.startswith(begins)]
        if len(found) == 1:
            return JSONResponse(encode(found[0]))
        trouble = Trouble(
            message=f"No session is known as {begins}",
            remedy="See them with: a40console sessions",
            exit_code=2,
        )
        return JSONResponse(encode(trouble), status_code=400)

    async def _why(self, request: Request) -> Response:
        return JSONResponse(encode(explain(self._now())))

    async def _snapshots(self, request: Request) -> Response:
        async def lines() -> AsyncIterator[bytes]:
            sent = 0
            while sent != self._script.stream_count:
                sent += 1
                now = replace(self._now(), seq=sent)
                if self._script.arrives:
                    now = replace(now, sessions=(make_session.session(session="5f2a", requests=2),))
                yield json.dumps(encode(now)).encode() + b"\n"
                await asyncio.sleep(self._script.interval_s)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def _environment(self, request: Request) -> Response:
        variables = {
            "ANTHROPIC_BASE_URL": self.gateway_url or "",
            "ANTHROPIC_AUTH_TOKEN": TOKEN,
            "ANTHROPIC_MODEL": "it's-tiny",
            "OPENAI_BASE_URL": f"{self.gateway_url}/v1",
            "OPENAI_API_KEY": TOKEN,
        }
        environment = ClientEnvironment(
            variables=variables,
            addresses=(
                ClientAddress(
                    kind="loopback", url=self.gateway_url or "", text="from this machine"
                ),
                ClientAddress(
                    kind="proxy",
                    url="https://pod-8080.proxy.example",
                    text="from the internet",
                    refused="the gateway listens on loopback alone",
                ),
            ),
            window_tokens=32768,
            output_tokens=8192,
            advice=("Start it with: claude --permission-mode acceptEdits.",),
        )
        return JSONResponse(encode(environment))

    async def _logs(self, request: Request) -> Response:
        data = Path(self._script.log_file).read_bytes() if self._script.log_file else b""
        offset, limit = (int(request.query_params[name]) for name in ("offset", "limit"))
        begin = max(0, len(data) + offset) if offset < 0 else offset
        piece = data[begin : begin + min(limit, 1024 * 1024)]
        path = "/runs/output.log" if data else None
        chunk = LogChunk(
            path=path, text=piece.decode(errors="replace"), next_offset=begin + len(piece)
        )
        return JSONResponse(encode(chunk))

    async def _events(self, request: Request) -> Response:
        happened = (*HAPPENED, *self._later())
        return JSONResponse(encode(fake_past.events(happened, request.query_params)))

    def _later(self) -> tuple[Event, ...]:
        """One more event for each half second that the stub runs."""
        late = int((time.monotonic() - self._began) / 0.5)
        at = "2026-11-29T14:07:31Z"
        first = make.snapshot().events_last_id + 1
        return tuple(Event(first + n, at, "engine.noted", f"later {n}") for n in range(late))

    async def _history(self, request: Request) -> Response:
        return JSONResponse(encode(fake_past.history(make.history(), request.query_params)))

    async def _changes(self, request: Request) -> Response:
        return JSONResponse(encode(make.profile_diff()))

    async def _switch_cost(self, request: Request) -> Response:
        return JSONResponse(encode(make.switch_cost(request.query_params["profile"])))

    async def _way(self, request: Request) -> Response:
        way = TurningWay(how="restart", tokens=24, why="deeper than the start", last_start_s=9.0)
        return JSONResponse(encode(way))

    async def _fix(self, request: Request) -> Response:
        return JSONResponse(encode(make.fix_offer()))

    async def _starts(self, request: Request) -> Response:
        limit = int(request.query_params["limit"])
        return JSONResponse(encode(fake_past.starts()[:limit]))

    async def _digest(self, request: Request) -> Response:
        """Of an event it tells which one was asked for."""
        told = replace(
            fake_past.digest(), since_event=int(request.query_params.get("since_event", 0))
        )
        return JSONResponse(encode(told))

    async def _spending(self, request: Request) -> Response:
        return JSONResponse(encode(fake_past.spending()))

    async def _read_mark(self, request: Request) -> Response:
        return JSONResponse(encode(ReadMark(event=3, at="2026-11-29T13:30:00Z")))

    async def _start(self, request: Request) -> Response:
        name, arguments = request.path_params["name"], await request.json()
        result = CommandResult(command=name, id=f"c{len(self._commands)}", state="running")
        if self._script.refuse_with is not None:
            trouble = Trouble(
                message=f"{name} is refused",
                evidence="the test says so",
                remedy="Ask otherwise.",
                exit_code=self._script.refuse_with,
            )
            result = replace(result, state="refused", trouble=trouble)
        else:
            self._begin(result, arguments)
        self._commands[result.id] = result
        return JSONResponse(encode(result), status_code=202)

    def _begin(self, result: CommandResult, arguments: dict[str, str]) -> None:
        self._arguments[result.id] = arguments
        self._ends_at[result.id] = time.monotonic() + 0.5
        if result.command in ("engine.start", "engine.switch", "engine.restart"):
            self._state = EngineState.STARTING
        if result.command == "service.stop" and not self._script.ignore_stop:
            asyncio.get_running_loop().call_later(0.3, self.stopping.set)
            self._ends_at[result.id] = 0.0

    def _advance(self) -> None:
        for key, ends_at in list(self._ends_at.items()):
            if time.monotonic() < ends_at:
                continue
            result = self._commands[key]
            starts = result.command in ("engine.start", "engine.switch", "engine.restart")
            if starts and self._script.start == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            if starts and self._script.start == "stalls":
                continue
            del self._ends_at[key]
            if starts and self._script.start == "fails":
                self._state = EngineState.FAILED
                trouble = Trouble(
                    message="The engine ended as it started",
                    evidence="CUDA out of memory",
                    remedy="Lower max_model_len.",
                    exit_code=4,
                )
                self._commands[key] = replace(result, state="failed", trouble=trouble)
                continue
            if starts:
                self._state = EngineState.SERVING
            if result.command == "engine.stop":
                self._state = EngineState.STOPPED
            event = Event(8, "2026-11-29T14:07:31Z", result.command, "It was done.")
            self._commands[key] = replace(
                result, state="done", result=self._done(result), events=(event,)
            )

    def _done(self, result: CommandResult) -> dict[str, str]:
        if result.command.startswith(("runs.", "hypotheses.")):
            return self._runs.done(result.command, self._arguments[result.id])
        if result.command == "sessions.capture":
            return {"report": f"Asked for: {self._arguments[result.id]['session']}"}
        if result.command == "note.add":
            return {"report": f"Noted: {self._arguments[result.id]['text']}"}
        if result.command == "request.abort":
            return {"report": f"Asked to end: {self._arguments[result.id]['request']}"}
        return {"profile": "tiny"}

    async def _result(self, request: Request) -> Response:
        self._advance()
        found = self._commands.get(request.path_params["name"])
        if found is None:
            return JSONResponse(
                encode(Trouble(message="No such command", exit_code=2)), status_code=400
            )
        return JSONResponse(encode(found))

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return JSONResponse({"error": {"message": "wrong token"}}, status_code=401)
        if self._script.gateway == "refuses":
            return JSONResponse({"error": {"message": "too long a prompt"}}, status_code=400)
        if self._script.gateway == "down":
            return JSONResponse({"error": {"message": "no engine"}}, status_code=503)
        return StreamingResponse(self._answer(body), media_type="text/event-stream")

    async def _answer(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        question = body["messages"][0]["content"]
        texts = ["You ", "asked: ", question, f" [{body.get('max_tokens')}]"]
        if self._script.gateway == "colourful":
            texts = ["\x1b[31mred\x1b[0m", "\x07"]
        yield b": keep-alive\n\n"
        for text in texts:
            yield event({"choices": [{"index": 0, "delta": {"content": text}}]})
            await asyncio.sleep(0.02)
            if self._script.gateway == "breaks":
                return
            if self._script.gateway == "errors":
                yield event({"error": {"message": "the engine died", "code": 500}})
                return
        yield event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        yield event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
        yield b"data: [DONE]\n\n"


def event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def main() -> int:
    script = Script(**json.loads(os.environ.get("STUB_SCRIPT", "{}")))
    if script.exit_code is not None:
        print("The stub's last words", file=sys.stderr)
        return script.exit_code
    paths = locate()
    make_private(paths.state)
    make_private(paths.runtime)
    lock = os.open(paths.service_lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("A service already runs for this home", file=sys.stderr)
        return 5
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    time.sleep(script.start_delay_s)
    paths.control_socket.unlink(missing_ok=True)
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(paths.control_socket))
    gateway = socket.socket()
    gateway.bind(("127.0.0.1", 0))
    asyncio.run(serve(script, door, gateway))
    paths.control_socket.unlink(missing_ok=True)
    return 0


async def serve(script: Script, door: socket.socket, gateway: socket.socket) -> None:
    stub = StubService(script)
    host, port = gateway.getsockname()
    stub.gateway_url = f"http://{host}:{port}"
    servers = [
        uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=0))
        for app in (stub.control_app(), stub.gateway_app())
    ]
    tasks = [
        asyncio.create_task(server.serve(sockets=[listener]))
        for server, listener in zip(servers, (door, gateway), strict=True)
    ]
    stop = asyncio.create_task(stub.stopping.wait())
    await asyncio.wait([stop, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    sys.exit(main())
