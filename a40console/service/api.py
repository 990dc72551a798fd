"""The control API: snapshots, logs, commands and what was, over the Unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from a40console.errors import ConsoleError, UsageError
from a40console.model.control import ClientEnvironment, Hello, ProfileSummary
from a40console.model.explanation import Explanation
from a40console.model.fix import FixOffer
from a40console.model.profile_change import ProfileDiff
from a40console.model.session import SessionDetail
from a40console.service.board import Board
from a40console.service.caller import WHO_HEADER, shown_name
from a40console.service.engine_outputs import EngineOutputs, asked_passages
from a40console.service.past_api import PastRoutes
from a40console.service.query import as_json, count, whole_number
from a40console.service.tasks import CommandTasks

LOG_CHUNK_LIMIT_BYTES = 1024 * 1024

Endpoint = Callable[[Request], Awaitable[Response]]
SessionReader = Callable[[str, int], SessionDetail]
"""One session in full, with so many of its newest requests."""

DEFAULT_TURNS, MOST_TURNS = 100, 500


def no_sessions(session: str, turns: int) -> SessionDetail:
    """Where no gateway is, there are none."""
    raise UsageError(f"No session is known as {session}", evidence="no session was seen yet")


class Answers(Protocol):
    """What the API asks of the service besides board, journal and commands."""

    def hello(self) -> Hello:
        """Who answers."""

    def profiles(self) -> tuple[ProfileSummary, ...]:
        """Every profile."""

    @property
    def outputs(self) -> EngineOutputs:
        """What the engines have written."""

    async def environment(self) -> ClientEnvironment:
        """What a client must set."""

    def why(self) -> Explanation:
        """What explains the newest snapshot's speed."""

    def changes(self, profile: str) -> ProfileDiff:
        """What a profile's file says otherwise than what runs; empty is the running one."""

    def fix(self) -> FixOffer:
        """The change of a profile that mends the last failed start."""


class ControlApi:
    """The control API's routes over the service's parts."""

    def __init__(
        self,
        *,
        board: Board,
        past: PastRoutes,
        commands: CommandTasks,
        answers: Answers,
        session: SessionReader = no_sessions,
        more: Mapping[str, Endpoint] | None = None,
        posts: Mapping[str, Endpoint] | None = None,
    ) -> None:
        self._session = session
        self._more = more or {}
        self._posts = posts or {}
        self._board = board
        self._past = past
        self._commands = commands
        self._answers = answers

    def app(self) -> Starlette:
        """The ASGI application."""
        reads: dict[str, Endpoint] = {
            "/v1/hello": self._hello,
            "/v1/snapshot": self._snapshot,
            "/v1/snapshots": self._snapshots,
            "/v1/profiles": self._profiles,
            "/v1/profiles/fix": self._fix,
            "/v1/profiles/changes": self._changes,
            "/v1/logs": self._logs,
            "/v1/environment": self._environment,
            "/v1/why": self._why,
            "/v1/sessions/{session}": self._read_session,
            "/v1/commands/{command}": self._result,
            **self._past.reads(),
            **self._more,
        }
        return Starlette(
            routes=[
                *(Route(path, _guarded(endpoint)) for path, endpoint in reads.items()),
                *(
                    Route(path, _guarded(endpoint), methods=["POST"])
                    for path, endpoint in (*self._past.posts().items(), *self._posts.items())
                ),
                Route("/v1/commands/{command}", _guarded(self._start), methods=["POST"]),
                Route("/v1/logs/explain", _guarded(self._explain), methods=["POST"]),
                Route("/{rest:path}", _guarded(_unknown), methods=["GET", "POST", "DELETE"]),
            ]
        )

    async def _hello(self, request: Request) -> Response:
        return as_json(self._answers.hello())

    async def _snapshot(self, request: Request) -> Response:
        return Response(await self._board.newest(), media_type="application/json")

    async def _snapshots(self, request: Request) -> Response:
        return StreamingResponse(self._board.lines(), media_type="application/x-ndjson")

    async def _profiles(self, request: Request) -> Response:
        return as_json(await asyncio.to_thread(self._answers.profiles))

    async def _changes(self, request: Request) -> Response:
        named = request.query_params.get("profile", "")
        return as_json(await asyncio.to_thread(self._answers.changes, named))

    async def _fix(self, request: Request) -> Response:
        return as_json(await asyncio.to_thread(self._answers.fix))

    async def _logs(self, request: Request) -> Response:
        limit_bytes = min(count(request, "limit", 65536), LOG_CHUNK_LIMIT_BYTES)
        offset = whole_number(request, "offset", -limit_bytes)
        newest = whole_number(request, "newest", 0) > 0
        start, outputs = request.query_params.get("start", ""), self._answers.outputs
        chunk = await asyncio.to_thread(outputs.chunk, offset, limit_bytes, start, newest=newest)
        return as_json(chunk)

    async def _explain(self, request: Request) -> Response:
        start, passages = asked_passages(await request.body())
        return as_json(await asyncio.to_thread(self._answers.outputs.explain, start, passages))

    async def _environment(self, request: Request) -> Response:
        return as_json(await self._answers.environment())

    async def _why(self, request: Request) -> Response:
        return as_json(self._answers.why())

    async def _read_session(self, request: Request) -> Response:
        turns = min(count(request, "turns", DEFAULT_TURNS), MOST_TURNS)
        return as_json(self._session(request.path_params["session"], turns))

    async def _start(self, request: Request) -> Response:
        arguments = await _arguments(request)
        who = shown_name(request.headers.get(WHO_HEADER, ""))
        command = request.path_params["command"]
        return as_json(self._commands.start(command, arguments, who), status=202)

    async def _result(self, request: Request) -> Response:
        return as_json(self._commands.result(request.path_params["command"]))


_STATUS = {1: 500, 2: 400, 3: 503, 4: 503, 5: 409, 6: 422, 7: 504}


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Turn our errors into their JSON form: the client makes them errors again."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ConsoleError as error:
            return as_json(error.trouble, status=_STATUS[int(error.exit_code)])

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
    # Half a character, which JSON may hold, could be neither written down nor told again.
    return {name: value.encode(errors="replace").decode() for name, value in data.items()}
