"""The routes: vLLM's ``vllm.endpoint_plugins`` entry point."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from . import control_routes  # noqa: TID252 - the folder is installed under another name
from .controls import Controls  # noqa: TID252
from .shared import WATCH  # noqa: TID252
from .watch import Watch  # noqa: TID252

TOKEN_FILE_VARIABLE = "A40CONSOLE_PLUGIN_TOKEN_FILE"  # noqa: S105 - the name of a variable
ROUTE_PREFIX = "/a40console/"
STATE_ROUTE = ROUTE_PREFIX + "v1/state"
PAUSE_ANSWER_S = 0.05
NO_CONTROLS: dict[str, Any] = {"speculation": None, "controls": None}

_logger = logging.getLogger("vllm.plugins.a40console")


class ConsoleEndpoint:
    """Adds our routes to the API server, for the bearer of the token.

    ``GET /a40console/v1/state`` tells everything; a POST for each control changes something.
    Without a token file named in the environment no route is added. Nothing raised here reaches
    vLLM, where it would end the start.
    """

    name = "a40console"
    required_tasks = ("generate",)

    def __init__(self, watch: Watch = WATCH) -> None:
        self._watch = watch
        self._token: bytes | None = None
        self._engine: Any = None
        self._controls: Controls | None = None
        self._pause_query: asyncio.Future[bool] | None = None

    def attach_router(self, app: Any) -> None:
        """Adds the routes to vLLM's application."""
        try:
            self._token = read_token(os.environ.get(TOKEN_FILE_VARIABLE))
        except (OSError, ValueError) as error:
            _logger.warning("a40console: no routes: %s", error)
        if self._token is None:
            return
        app.add_route(STATE_ROUTE, self._state, methods=["GET"])
        for name, act in control_routes.ACTS.items():
            app.add_route(f"{ROUTE_PREFIX}v1/{name}", self._controlled(act), methods=["POST"])
        logging.getLogger("uvicorn.access").addFilter(_quiet)

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:
        """Starts watching, once vLLM has its engine."""
        if self._token is None or engine_client is None:
            return
        self._engine = engine_client
        try:
            self._watch.attach(
                engine_client.output_processor, api_servers=api_servers(engine_client, args)
            )
        except Exception as error:  # noqa: BLE001 - an error of ours must not stop the start
            self._watch.disabled = f"the engine could not be watched: {error!r}"
        if self._watch.disabled is not None:
            _logger.warning("a40console: requests are not watched: %s", self._watch.disabled)
        try:
            controls = Controls(engine_client, lambda: self._watch.steps, time.monotonic)
            await controls.begin()
            self._controls = controls
        except Exception as error:  # noqa: BLE001 - an error of ours must not stop the start
            _logger.warning("a40console: no controls: %r", error)

    def _controlled(self, act: control_routes.Act) -> Callable[[Request], Awaitable[Response]]:
        async def route(request: Request) -> Response:
            if not self._allowed(request.headers.get("authorization", "")):
                return JSONResponse({"error": "the plugin's token is required"}, 401)
            return await control_routes.answer(act, self._controls, request)

        return route

    async def _state(self, request: Request) -> Response:
        if not self._allowed(request.headers.get("authorization", "")):
            return JSONResponse({"error": "the plugin's token is required"}, 401)
        since = request.query_params.get("since", "0")
        if not since.isdecimal():
            return JSONResponse({"error": "since must be a sequence number"}, 400)
        paused = await self._paused()
        try:
            answer = self._watch.answer(int(since), paused)
            answer |= self._controls.told() if self._controls is not None else NO_CONTROLS
        except Exception as error:  # noqa: BLE001 - the watch has counted it
            return JSONResponse({"error": f"the requests could not be read: {error!r}"}, 500)
        body = json.dumps(answer, separators=(",", ":"))
        return Response(body, media_type="application/json")

    def _allowed(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        token = self._token or b""
        matches = secrets.compare_digest(given.strip().encode(), token)
        return matches and scheme.lower() == "bearer" and bool(token)

    async def _paused(self) -> bool | None:
        """Whether the scheduler is paused; None while the engine is too busy to answer."""
        query = self._pause_query
        if query is None or query.done():
            if not hasattr(self._engine, "is_paused"):
                return None
            query = asyncio.ensure_future(self._engine.is_paused())
            query.add_done_callback(_retrieve)
            self._pause_query = query
        await asyncio.wait({query}, timeout=PAUSE_ANSWER_S)
        if not query.done() or query.cancelled() or query.exception() is not None:
            return None
        return query.result()


def read_token(path: str | None) -> bytes | None:
    """The token in a file that only its owner may read; None where no file is named.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is empty, or others may read it.
    """
    if not path:
        return None
    if Path(path).stat().st_mode & 0o077:
        raise ValueError(f"{path} may be read by others: chmod 600 it")
    token = Path(path).read_bytes().strip()
    if not token:
        raise ValueError(f"{path} holds no token")
    return token


def api_servers(engine_client: Any, args: Any) -> int:
    """How many API server processes share the engine."""
    asked = getattr(args, "api_server_count", None) or 1
    return max(int(asked), int(getattr(engine_client, "_client_count", 1)))


def _retrieve(query: asyncio.Future[bool]) -> None:
    """Takes an abandoned query's error, which asyncio would otherwise report as lost."""
    with contextlib.suppress(asyncio.CancelledError):
        query.exception()


def _quiet(record: logging.LogRecord) -> bool:
    """Keeps our own polls, one a second, out of the access log; refusals stay in it."""
    args = record.args
    if not isinstance(args, tuple) or len(args) != 5:
        return True
    return not (str(args[2]).startswith(STATE_ROUTE) and args[4] == 200)
