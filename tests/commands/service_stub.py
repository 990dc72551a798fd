"""A service for tests of the command line: real socket, real lock, real HTTP, a scripted engine.

Run as `python service_stub.py serve`; its home comes from A40CONSOLE_HOME, its script as JSON from
STUB_SCRIPT (keys: see `Script`).
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
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

from a40console.model.codec import encode
from a40console.model.control import (
    ClientEnvironment,
    CommandResult,
    Hello,
    LogChunk,
    Trouble,
)
from a40console.model.engine import EngineEnd, EngineState
from a40console.model.event import Event, Finding
from a40console.model.figures import Estimated, Missing
from a40console.model.snapshot import (
    PROTOCOL_VERSION,
    SCHEMA_VERSION,
    Cost,
    EngineInfo,
    Host,
    KvCache,
    Latency,
    Limit,
    PrefixCache,
    Requests,
    ServiceInfo,
    Slot,
    Snapshot,
    SpeculationInfo,
    Throughput,
    UsdPerMillion,
)
from a40console.paths import locate, make_private

NONE = Missing("not in this test")
TOKEN = "secret-token-of-the-gateway"


@dataclass
class Script:
    """How the stub behaves."""

    state: str = "absent"
    start: str = "serves"
    """What a start comes to: serves, fails, stalls."""

    refuse_with: int | None = None
    """Every command is refused with this exit code."""

    ignore_stop: bool = False
    protocol: int = PROTOCOL_VERSION
    gateway: str = "answers"
    """answers, refuses, down, breaks, errors, none, colourful"""

    running: int = 0
    slots: int = 0
    interval_s: float = 0.1
    log_file: str | None = None
    exit_code: int | None = None
    """End at once with it, after a line on stderr."""

    start_delay_s: float = 0.0
    stream_count: int | None = None


def make_engine(state: EngineState, **changes: Any) -> EngineInfo:
    alive = state not in (EngineState.ABSENT, EngineState.STOPPED, EngineState.FAILED)
    gone = Missing("no engine runs")
    engine = EngineInfo(
        id="2026-11-29T10-55-12-tiny" if alive else gone,
        kind="llamacpp" if alive else gone,
        state=state,
        phase="load" if state is EngineState.STARTING else Missing("ready"),
        phase_s=12.0 if state is EngineState.STARTING else gone,
        eta_s=Estimated(30.0) if state is EngineState.STARTING else gone,
        profile="tiny" if alive else gone,
        model="tiny.gguf" if alive else gone,
        served_name="tiny-model" if alive else gone,
        version="b1234" if alive else gone,
        listen="socket" if alive else gone,
        pid=900 if alive else gone,
        session_id=900 if alive else gone,
        uptime_s=11490.0 if alive else gone,
        restarts=0,
        exit=EngineEnd(
            1, Missing("it ended by itself"), "CUDA out of memory", "2026-11-29T10:00:00Z"
        )
        if state is EngineState.FAILED
        else Missing("running"),
        max_model_len=2048 if alive else gone,
        paused=False if alive else gone,
        argv_digest="abc" if alive else gone,
        effective=NONE,
    )
    return replace(engine, **changes)


def make_slot(number: int, **changes: Any) -> Slot:
    slot = Slot(
        slot=number,
        request_id=f"r{number}",
        session="7f3a",
        agent="main",
        client="claude-code",
        model="tiny-model",
        direct=False,
        phase="decode",
        prompt_tokens=31204,
        cached_tokens=29956,
        reread_tokens=0,
        generated_tokens=1204,
        max_tokens=8192,
        prefill_ratio=NONE,
        tokens_per_s=412.6,
        passes_per_s=22.7,
        tokens_per_pass=18.2,
        window_tokens_per_s=412.6,
        ttft_s=0.31,
        age_s=4.1,
        method="engine",
    )
    return replace(slot, **changes)


def make_snapshot(state: EngineState = EngineState.SERVING, **changes: Any) -> Snapshot:
    """A snapshot that follows the contract; everything not asked for is missing."""
    serving = state is EngineState.SERVING
    snapshot = Snapshot(
        schema=SCHEMA_VERSION,
        protocol=PROTOCOL_VERSION,
        seq=1,
        at="2026-11-29T14:07:31.120Z",
        monotonic_s=8123.4,
        interval_s=1.0,
        simulated=False,
        service=ServiceInfo(version="0.1.0", pid=1, uptime_s=1.0, home="/h", read_only=False),
        engine=make_engine(state),
        slots=() if serving else Missing("the engine does not serve"),
        recent=(),
        sessions=NONE,
        throughput=Throughput(
            window_s=5.0,
            source="stub",
            age_s=0.1,
            generation_tokens_per_s=412.6 if serving else NONE,
            prefill_tokens_per_s=NONE,
            passes_per_s=NONE,
            sequences_per_pass=NONE,
        ),
        requests=Requests(
            source="stub",
            age_s=0.1,
            held=0,
            waiting=0 if serving else NONE,
            waiting_by_reason={},
            running=0 if serving else NONE,
            max_running=4 if serving else NONE,
            aborted=0,
            failed=0,
            preemptions=NONE,
        ),
        latency=Latency(window_s=60.0, ttft_s=NONE, pass_s=NONE, queue_s=NONE),
        prefix_cache=PrefixCache(
            window_s=60.0,
            source="stub",
            age_s=NONE,
            hit_ratio=NONE,
            hit_tokens=NONE,
            queried_tokens=NONE,
            prompts=NONE,
            reusable_ratio=NONE,
            hit_ratio_since_start=NONE,
            last_loss=NONE,
        ),
        speculation=SpeculationInfo(
            window_s=60.0,
            source="stub",
            age_s=NONE,
            mode=NONE,
            control="none",
            started_with=NONE,
            depth=NONE,
            depth_max=NONE,
            method=NONE,
            tokens_per_pass=NONE,
            accepted_per_draft=NONE,
            acceptance_ratio=NONE,
            accepted_ratio_per_position=NONE,
            drafts=NONE,
            tail_verdict=NONE,
            locked_reason=None,
            off_tokens_per_s_at_this_load=NONE,
        ),
        kv_cache=KvCache(
            source="stub",
            age_s=NONE,
            held_tokens=NONE,
            reusable_tokens=NONE,
            free_tokens=NONE,
            capacity_tokens=NONE,
            held_ratio=NONE,
            fits_more=NONE,
        ),
        gpus=Missing("no GPU"),
        host=Host(
            source="stub",
            age_s=NONE,
            cpu_quota_vcpu=NONE,
            quota_origin="host",
            cpu_used_vcpu=NONE,
            throttled_ms_per_s=NONE,
            busiest_engine_thread=NONE,
            memory_used_bytes=NONE,
            memory_limit_bytes=NONE,
            shm_used_bytes=NONE,
            shm_total_bytes=NONE,
            disk_free_bytes=NONE,
        ),
        cost=Cost(
            kind="hourly",
            usd_per_hour=0.44,
            includes_disk=False,
            usd_so_far=1.41,
            since="engine start",
            usd_per_million=UsdPerMillion(now=0.3, session=NONE, since_rent=3.42),
            counted="generated",
        ),
        limit=Limit(
            cause="prefill", text="prefill of 18,990 tokens", evidence=(), ruled_out=("vcpu", "kv")
        ),
        findings=(),
        events_last_id=7,
        sources=(),
    )
    return replace(snapshot, **changes)


class StubService:
    """Answers the control API and the gateway's chat route as the script says."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._state = EngineState(script.state)
        self._commands: dict[str, CommandResult] = {}
        self._ends_at: dict[str, float] = {}
        self._began = time.monotonic()
        self.gateway_url: str | None = None
        self.stopping = asyncio.Event()

    def control_app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/hello", self._hello),
                Route("/v1/snapshot", self._snapshot),
                Route("/v1/snapshots", self._snapshots),
                Route("/v1/environment", self._environment),
                Route("/v1/logs", self._logs),
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
        snapshot = make_snapshot(self._state, interval_s=self._script.interval_s)
        running = self._script.running
        if self._state is EngineState.SERVING:
            snapshot = replace(
                snapshot,
                requests=replace(snapshot.requests, running=running),
                slots=tuple(make_slot(number) for number in range(self._script.slots)),
            )
        if self._state is EngineState.FAILED:
            finding = Finding("engine-failed", "error", "The engine failed", "e", "s", "Mend it.")
            snapshot = replace(snapshot, findings=(finding,))
        return snapshot

    async def _snapshot(self, request: Request) -> Response:
        return JSONResponse(encode(self._now()))

    async def _snapshots(self, request: Request) -> Response:
        async def lines() -> AsyncIterator[bytes]:
            sent = 0
            while sent != self._script.stream_count:
                sent += 1
                yield json.dumps(encode(replace(self._now(), seq=sent))).encode() + b"\n"
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
        return JSONResponse(encode(ClientEnvironment(variables=variables)))

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
                result, state="done", result={"profile": "tiny"}, events=(event,)
            )

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
