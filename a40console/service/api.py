"""The control API: snapshots, history, events, logs and commands over the Unix socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from a40console.errors import ConsoleError, UsageError
from a40console.model.codec import encode
from a40console.model.control import ClientEnvironment, Hello, LogChunk, ProfileSummary
from a40console.service.board import Board
from a40console.service.journal import Journal
from a40console.service.tasks import CommandTasks

LOG_CHUNK_LIMIT_BYTES = 1024 * 1024

Endpoint = Callable[[Request], Awaitable[Response]]


class Answers(Protocol):
    """What the API asks of the service besides board, journal and commands."""

    def hello(self) -> Hello:
        """Who answers."""

    def profiles(self) -> tuple[ProfileSummary, ...]:
        """Every profile."""

    def logs(self, offset: int, limit_bytes: int) -> LogChunk:
        """A piece of the engine's output."""

    def environment(self) -> ClientEnvironment:
        """What a client must set."""


class ControlApi:
    """The control API's routes over the service's parts."""

    def __init__(
        self, *, board: Board, journal: Journal, commands: CommandTasks, answers: Answers
    ) -> None:
        self._board = board
        self._journal = journal
        self._commands = commands
        self._answers = answers

    def app(self) -> Starlette:
        """The ASGI application."""
        reads: dict[str, Endpoint] = {
            "/v1/hello": self._hello,
            "/v1/snapshot": self._snapshot,
            "/v1/snapshots": self._snapshots,
            "/v1/history": self._history,
            "/v1/events": self._events,
            "/v1/profiles": self._profiles,
            "/v1/logs": self._logs,
            "/v1/environment": self._environment,
            "/v1/commands/{command}": self._result,
        }
        return Starlette(
            routes=[
                *(Route(path, _guarded(endpoint)) for path, endpoint in reads.items()),
                Route("/v1/commands/{command}", _guarded(self._start), methods=["POST"]),
                Route("/{rest:path}", _guarded(_unknown), methods=["GET", "POST", "DELETE"]),
            ]
        )

    async def _hello(self, request: Request) -> Response:
        return _json(self._answers.hello())

    async def _snapshot(self, request: Request) -> Response:
        return Response(await self._board.newest(), media_type="application/json")

    async def _snapshots(self, request: Request) -> Response:
        return StreamingResponse(self._board.lines(), media_type="application/x-ndjson")

    async def _history(self, request: Request) -> Response:
        return _json(self._board.since(_float(request, "since", 0.0)))

    async def _events(self, request: Request) -> Response:
        since, limit = _int(request, "since", 0), _count(request, "limit", 200)
        return _json(self._journal.since(since, limit))

    async def _profiles(self, request: Request) -> Response:
        return _json(self._answers.profiles())

    async def _logs(self, request: Request) -> Response:
        limit_bytes = min(_count(request, "limit", 65536), LOG_CHUNK_LIMIT_BYTES)
        return _json(self._answers.logs(_int(request, "offset", -limit_bytes), limit_bytes))

    async def _environment(self, request: Request) -> Response:
        return _json(self._answers.environment())

    async def _start(self, request: Request) -> Response:
        arguments = await _arguments(request)
        return _json(self._commands.start(request.path_params["command"], arguments), status=202)

    async def _result(self, request: Request) -> Response:
        return _json(self._commands.result(request.path_params["command"]))


_STATUS = {1: 500, 2: 400, 3: 503, 4: 503, 5: 409, 6: 422, 7: 504}


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Turn our errors into their JSON form: the client makes them errors again."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ConsoleError as error:
            return _json(error.trouble, status=_STATUS[int(error.exit_code)])

    return answer


async def _unknown(request: Request) -> Response:
    raise UsageError(f"The control API has no {request.method} {request.scope['path']}")


async def _arguments(request: Request) -> dict[str, str]:
    body = await request.body()
    if not body:
        return {}
    try:
        data = await request.json()
    except (ValueError, RecursionError) as error:
        raise UsageError("The command's body is not JSON", evidence=str(error)) from error
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise UsageError("A command's arguments are a JSON object of texts")
    return data


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(encode(value), status_code=status)


def _int(request: Request, name: str, default: int) -> int:
    try:
        return int(request.query_params.get(name, default))
    except ValueError as error:
        raise UsageError(f"{name} must be a whole number") from error


def _count(request: Request, name: str, default: int) -> int:
    if (count := _int(request, name, default)) < 0:
        raise UsageError(f"{name} must not be negative")
    return count


def _float(request: Request, name: str, default: float) -> float:
    try:
        return float(request.query_params.get(name, default))
    except ValueError as error:
        raise UsageError(f"{name} must be a number") from error
