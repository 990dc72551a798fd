"""The HTTP surface: vLLM's routes, the console's plugin, and the simulation's own controls."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from a40console.sim import machine, plugin
from a40console.sim.anthropic import Message
from a40console.sim.asked import Asked, RefusedError, prompt_ids, prompt_tokens, read
from a40console.sim.controls import ACTS, Act, ControlRefusedError, Controls
from a40console.sim.counters import Statistics
from a40console.sim.driver import Driver, EngineGoneError
from a40console.sim.exposition import CONTENT_TYPE, Exposition, Identity
from a40console.sim.openai import Answer
from a40console.sim.rehearsal import ManualClock
from a40console.sim.scripted import ScriptedAnswer, ScriptedMessage
from a40console.sim.settings import VERSION, Settings
from a40console.sim.text import token_ids

SERVER = "a40console-sim"
"""On every answer: who reads a header knows that nothing here is real."""

CLOCK_PATH, FAULTS_PATH, DAY_PATH = "/sim/v1/clock", "/sim/v1/faults", "/sim/v1/day"
ASKED_PATH = "/sim/v1/asked"
_ERRORS = {400: "BadRequestError", 404: "NotFoundError"}
_ANTHROPIC_ERRORS = {400: "invalid_request_error", 404: "not_found_error"}
_GARBLE_EVERY = 7
_GONE = {
    "error": {
        "message": "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "type": "InternalServerError",
        "param": None,
        "code": 500,
    }
}
_GONE_FOR_CLAUDE = "2 validation errors for ChatCompletionStreamResponse"

Endpoint = Callable[[Request], Awaitable[Response]]


class Surface:
    """Everything that answers for one engine."""

    def __init__(
        self,
        settings: Settings,
        driver: Driver,
        *,
        to_unix_s: Callable[[float], float],
        clock: ManualClock | None,
        token: str | None,
        boot: str,
    ) -> None:
        self._settings = settings
        self._driver = driver
        self._core = driver.core
        self._to_unix_s = to_unix_s
        self._clock = clock
        self._token = token
        self._boot = boot
        self._started_unix_s = to_unix_s(driver.now_s())
        self._controls = Controls(settings, driver)
        self._gpu = machine.Gpu(self._gpu_bytes())
        if settings.faults.has("hang"):
            self._core.frozen = True

    def app(self) -> Starlette:
        """The application."""
        get: dict[str, Endpoint] = {
            "/health": self._health,
            "/ping": self._health,
            "/version": self._version,
            "/metrics": self._metrics,
            "/v1/models": self._models,
            plugin.PATH: self._plugin,
            machine.PATH: self._gpus,
            DAY_PATH: self._day,
            ASKED_PATH: self._asked,
        }
        post: dict[str, Endpoint] = {
            "/v1/chat/completions": self._chat,
            "/v1/completions": self._completions,
            "/v1/messages": self._messages,
            "/v1/messages/count_tokens": self._count_tokens,
            "/tokenize": self._tokenize,
            CLOCK_PATH: self._set_clock,
            FAULTS_PATH: self._set_faults,
        }
        post |= {f"{plugin.PREFIX}{name}": self._control(act) for name, act in ACTS.items()}
        return Starlette(
            routes=[
                *(Route(path, endpoint, methods=["GET"]) for path, endpoint in get.items()),
                *(Route(path, endpoint, methods=["POST"]) for path, endpoint in post.items()),
            ]
        )

    # --- Who it is ----------------------------------------------------------------------------

    async def _health(self, request: Request) -> Response:
        return Response(status_code=503 if self._driver.is_gone else 200)

    async def _version(self, request: Request) -> Response:
        return JSONResponse({"version": VERSION, "simulated": True})

    async def _models(self, request: Request) -> Response:
        model = {
            "id": self._settings.served_name,
            "object": "model",
            "created": int(self._started_unix_s),
            "owned_by": SERVER,
            "root": self._settings.words.model,
            "parent": None,
            "max_model_len": self._settings.options.max_model_len,
        }
        return JSONResponse({"object": "list", "data": [model]})

    async def _metrics(self, request: Request) -> Response:
        self._driver.catch_up()
        faults = self._settings.faults
        if faults.has("metrics", "reset"):
            self._core.statistics = Statistics()
            faults.clear("metrics")
        words = self._settings.words
        identity = Identity(
            model_name=self._settings.served_name,
            started_unix_s=self._started_unix_s,
            cache_dtype=words.kv_cache_dtype or "auto",
            gpu_memory_utilization=words.gpu_memory_utilization or 0.92,
            models_bandwidth=words.enable_mfu_metrics,
        )
        odd = {"vllm:generation_tokens": "NaN"} if faults.has("metrics", "nan") else {}
        text = Exposition(self._core, identity, odd=odd).text()
        broken = {
            "empty": (200, "", CONTENT_TYPE),
            "500": (500, "Internal Server Error", CONTENT_TYPE),
            "html": (200, "<html><body>502 Bad Gateway</body></html>\n", "text/html"),
            "cut": (200, text[: len(text) // 2], CONTENT_TYPE),
        }
        status, body, kind = broken.get(faults.asked.get("metrics", ""), (200, text, CONTENT_TYPE))
        return Response(body, status, media_type=kind)

    async def _plugin(self, request: Request) -> Response:
        if (closed := self._closed(request)) is not None:
            return closed
        since = request.query_params.get("since", "0")
        if not since.isdecimal():
            return JSONResponse({"error": "since must be a sequence number"}, 400)
        self._driver.catch_up()
        now_s = self._driver.now_s()
        answer = plugin.state(
            self._core,
            self._controls,
            boot=self._boot,
            since=int(since),
            now_s=now_s,
            to_unix_s=self._to_unix_s,
        )
        return JSONResponse(answer)

    def _control(self, act: Act) -> Endpoint:
        """A route of the plugin's that changes something."""

        async def route(request: Request) -> Response:
            if (closed := self._closed(request)) is not None:
                return closed
            self._driver.catch_up()
            try:
                result = act(self._controls, await plugin.body_of(request))
            except ValueError as error:
                return JSONResponse({"error": str(error)}, 400)
            except ControlRefusedError as error:
                return JSONResponse({"error": str(error)}, 409)
            self._driver.wake()
            return JSONResponse(result)

        return route

    def _closed(self, request: Request) -> Response | None:
        """The answer to whoever may not use the plugin's routes."""
        if self._token is None:
            return JSONResponse({"detail": "Not Found"}, 404)
        if not self._allowed(request):
            return JSONResponse({"error": "the plugin's token is required"}, 401)
        return None

    async def _gpus(self, request: Request) -> Response:
        self._driver.catch_up()
        now_s = self._driver.now_s()
        return JSONResponse({"gpus": [self._gpu.look(now_s, self._core.busy_s(now_s))]})

    def _gpu_bytes(self) -> int:
        """What the engine takes of the card: weights, the whole KV cache, and a rest of 1.5 GiB."""
        pool, sheet = self._core.pool, self._settings.sheet
        cache = pool.size * pool.block_tokens * sheet.kv_bytes
        return int(min(machine.TOTAL_BYTES * 0.92, sheet.weights_bytes + cache + 1.5 * 2**30))

    def _allowed(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        token = self._token or ""
        matches = secrets.compare_digest(given.strip().encode(), token.encode())
        return matches and scheme.lower() == "bearer"

    # --- What it does -------------------------------------------------------------------------

    async def _chat(self, request: Request) -> Response:
        return await self._serve(request, "chat")

    async def _completions(self, request: Request) -> Response:
        return await self._serve(request, "completions")

    async def _messages(self, request: Request) -> Response:
        return self._absent() or await self._serve(request, "messages")

    def _absent(self) -> Response | None:
        """The answer of an engine without a Messages API, where this is one."""
        missing = self._settings.faults.has("no_messages")
        return JSONResponse({"detail": "Not Found"}, 404) if missing else None

    async def _serve(self, request: Request, route: str) -> Response:
        try:
            body = await _body(request)
            name = request.headers.get("x-request-id") or secrets.token_hex(8)
            asked = read(self._settings, route, body, name, depth=self._core.depth)
        except RefusedError as error:
            await asyncio.sleep(self._settings.faults.number("slow_refusal", 0))
            return _refusal(error, route)
        if not asked.stream:
            outputs = self._driver.stream(asked.order)
            try:
                return JSONResponse(await self._answer(asked, route).whole(outputs))
            except EngineGoneError:
                return JSONResponse(_GONE, 500)
        events = self._events(asked, route)
        return StreamingResponse(events, media_type="text/event-stream; charset=utf-8")

    def _answer(self, asked: Asked, route: str) -> Message | Answer:
        if route == "messages":
            return (
                ScriptedMessage(self._core, asked) if asked.pieces else Message(self._core, asked)
            )
        created = self._to_unix_s(self._driver.now_s())
        if asked.pieces and route == "chat":
            return ScriptedAnswer(self._core, asked, created_unix_s=created)
        return Answer(self._core, asked, chat=route == "chat", created_unix_s=created)

    async def _events(self, asked: Asked, route: str) -> AsyncIterator[str]:
        every = int(self._settings.faults.number("garble", _GARBLE_EVERY) or _GARBLE_EVERY)
        outputs = self._driver.stream(asked.order)
        async with aclosing(outputs) as living:  # type: ignore[type-var]
            events = self._answer(asked, route).events(living)
            number = 0
            try:
                async for event in events:
                    number += 1
                    cut = self._settings.faults.has("garble") and number % every == 0
                    yield event[: len(event) // 2] + "\n\n" if cut else event
            except EngineGoneError:
                yield _last_event(route)

    async def _count_tokens(self, request: Request) -> Response:
        if (absent := self._absent()) is not None:
            return absent
        try:
            count = prompt_tokens(await _body(request))
        except RefusedError as error:
            return _refusal(error, "messages")
        management = {"original_input_tokens": count}
        return JSONResponse({"input_tokens": count, "context_management": management})

    async def _tokenize(self, request: Request) -> Response:
        try:
            body = await _body(request)
            text = str(body.get("prompt") or "")
            ids = prompt_ids(body) if "messages" in body else token_ids(text)
        except RefusedError as error:
            return _refusal(error, "chat")
        longest = self._settings.options.max_model_len
        return JSONResponse({"count": len(ids), "max_model_len": longest, "tokens": list(ids)})

    # --- The simulation's own -----------------------------------------------------------------

    async def _set_clock(self, request: Request) -> Response:
        """Let time pass: `{"advance_s": 1.0}`, on a manual clock only."""
        if self._clock is None:
            return JSONResponse({"error": "time passes by itself here"}, 409)
        body = await request.json()
        self._clock.advance(float(body["advance_s"]))
        now_s = self._clock.now_s
        return JSONResponse({"now_s": now_s, "unix_s": self._clock.unix_s(now_s)})

    async def _day(self, request: Request) -> Response:
        """The requests of the rehearsed day, as a gateway would have metered them."""
        rows = self._clock.rows() if self._clock is not None else []
        return JSONResponse({"requests": rows})

    async def _asked(self, request: Request) -> Response:
        """What the rehearsed day's clients sent: `?after=N`, the numbers above N."""
        after = int(request.query_params.get("after", 0))
        sent = self._clock.asked(after) if self._clock is not None else []
        return JSONResponse({"asked": sent})

    async def _set_faults(self, request: Request) -> Response:
        """Change what goes wrong: `{"hang": ""}` begins it, `{"hang": null}` ends it."""
        if self._token is not None and not self._allowed(request):
            return JSONResponse({"error": "the plugin's token is required"}, 401)
        faults = self._settings.faults
        try:
            for name, argument in (await request.json()).items():
                if argument is None:
                    faults.clear(name)
                else:
                    faults.set(name, str(argument))
        except argparse.ArgumentTypeError as error:
            return JSONResponse({"error": str(error)}, 400)
        self._core.frozen = faults.has("hang")
        self._driver.wake()
        return JSONResponse(faults.asked)


def read_token() -> str | None:
    """The plugin's token from the file that the environment names; None without one."""
    path = os.environ.get(plugin.TOKEN_FILE_VARIABLE)
    return Path(path).read_text(encoding="utf-8").strip() if path else None


def wall_clock() -> tuple[Callable[[], float], Callable[[float], float]]:
    """This machine's monotonic clock, and the way from it to Unix time."""
    apart_s = time.time() - time.monotonic()
    return time.monotonic, lambda at_s: at_s + apart_s


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except ValueError as error:
        raise RefusedError(f"1 validation error: JSON decode error: {error}") from error
    if not isinstance(body, dict):
        raise RefusedError("1 validation error: the body is no JSON object")
    return body


def _last_event(route: str) -> str:
    """How vLLM ends a stream whose engine core is gone; what it garbles is garbled here."""
    if route != "messages":
        return f"data: {json.dumps(_GONE)}\n\ndata: [DONE]\n\n"
    told = {"type": "internal_error", "message": _GONE_FOR_CLAUDE}
    return f"event: error\ndata: {json.dumps({'type': 'error', 'error': told})}\n\n"


def _refusal(error: RefusedError, route: str) -> Response:
    if route == "messages":
        kind = _ANTHROPIC_ERRORS[error.status]
        told: dict[str, Any] = {"type": kind, "message": error.message}
        return JSONResponse({"type": "error", "error": told}, error.status)
    told = {"message": error.message, "type": _ERRORS[error.status], "param": error.param}
    return JSONResponse({"error": {**told, "code": error.status}}, error.status)
