"""The service as the console, the commands and scripts see it: over its control socket."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import httpx

from a40console.errors import ConsoleError, NoServiceError, RefusedError, TimedOutError
from a40console.link.far import Far, far_of
from a40console.model.calls import CALLABLE
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.control import (
    ClientEnvironment,
    CommandResult,
    Digest,
    EngineStart,
    Hello,
    History,
    LogChunk,
    ProfileSummary,
    ReadMark,
    SpendingReport,
    Trouble,
)
from a40console.model.engine_log import LogMeaning, LogPassage
from a40console.model.event import Event, Severity
from a40console.model.explanation import Explanation
from a40console.model.fix import FixOffer
from a40console.model.profile_change import ProfileDiff
from a40console.model.session import SessionDetail
from a40console.model.snapshot import PROTOCOL_VERSION, Snapshot
from a40console.model.switch_cost import SwitchCost
from a40console.model.turning import TurningWay
from a40console.paths import Paths, check_control_socket
from a40console.service.caller import COMMAND_LINE, CONSOLE, WHO_HEADER, own_name
from a40console.service.forbidding import forbidden_error
from a40console.service.runs_client import RunCalls

T = TypeVar("T")

_CONNECT_TIMEOUT_S = 3.0
_READ_TIMEOUT_S = 30.0
_HELLO_TIMEOUT_S = 5.0
"""A service that does not even say who it is stands still."""


class ServiceClient(RunCalls):
    """Speaks the control API over this user's Unix socket; every failure is a ConsoleError.

    `transport` replaces the socket in tests; `far` is the machine that a forwarded one leads to.
    `forbidden` says who forbade to act from here; `role` is what asks, for the events.
    """

    def __init__(
        self,
        socket_path: Path,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        far: Far | None = None,
        forbidden: str = "",
        role: str = COMMAND_LINE,
    ) -> None:
        self._forbidden = forbidden
        self._role = role
        self._socket_path = socket_path
        self._far = far
        self._on_socket = transport is None
        self._http = httpx.AsyncClient(
            # Unverified: a Unix socket has no TLS, and to load the certificates takes 30 ms.
            transport=transport or httpx.AsyncHTTPTransport(uds=str(socket_path), verify=False),
            base_url="http://service",
            timeout=httpx.Timeout(_READ_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give the connections back."""
        await self._http.aclose()

    async def hello(self) -> Hello:
        """Who answers.

        Raises:
            NoServiceError: If nobody listens on the socket.
            RefusedError: If the service speaks another protocol than we do.
        """
        data = await self._request("GET", "/v1/hello", timeout=_HELLO_TIMEOUT_S)
        hello = _decoded(Hello, data)
        if hello.protocol != PROTOCOL_VERSION:
            here = ("running service", "a40console")
            whose, call = here if self._far is None else self._far.words
            raise RefusedError(
                f"The {whose} is version {hello.version} and speaks another protocol",
                evidence=f"its protocol {hello.protocol}, ours {PROTOCOL_VERSION}",
                remedy=f"Restart it: {call} stop, then this command again. "
                "The engine keeps running.",
            )
        return hello

    async def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return await self._get(Snapshot, "/v1/snapshot")

    async def snapshots(self) -> AsyncGenerator[Snapshot]:
        """Snapshots as they are made, the newest first of all; ends with a ConsoleError."""
        timeout = httpx.Timeout(_READ_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S)
        try:
            self._check_owner()
            async with self._http.stream("GET", "/v1/snapshots", timeout=timeout) as response:
                if response.is_error:
                    raise _refusal(await response.aread())
                async for line in response.aiter_lines():
                    if line:
                        yield _decoded(Snapshot, _parsed(line))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        raise NoServiceError("The service ended the stream", remedy="It is probably restarting.")

    async def history(
        self,
        since_s: float = 0.0,
        *,
        until_s: float | None = None,
        points: int = 900,
        step_s: float = 0.0,
    ) -> History:
        """The past after one Unix time and up to another, in at most `points` points.

        Args:
            since_s: Where it begins; a negative one counts seconds back from now, 0 is all.
            until_s: Where it ends; None is now.
            points: How many points at the most.
            step_s: They are not finer.
        """
        query = {} if until_s is None else {"until": until_s}
        query |= {"step": step_s} if step_s else {}
        return await self._get(History, "/v1/history", since=since_s, points=points, **query)

    async def events(
        self,
        since: int = 0,
        limit: int = 200,
        *,
        before: int | None = None,
        severity: Severity = "info",
        kind: str = "",
        since_s: float = 0.0,
    ) -> tuple[Event, ...]:
        """The newest `limit` journal entries with an id above `since`, oldest first.

        Args:
            since: Entries with a greater id.
            limit: How many at the most.
            before: Entries with a smaller id alone: pages back through what is kept.
            severity: The least severity.
            kind: The kind, or its first words: `engine` is every `engine.…`.
            since_s: Not before this Unix time; a negative one counts seconds back from now.
        """
        query: dict[str, Any] = {} if before is None else {"before": before}
        query |= {"kind": kind} if kind else {}
        query |= {"severity": severity} if severity != "info" else {}
        query |= {"since_s": since_s} if since_s else {}
        return await self._get_list(Event, "/v1/events", since=since, limit=limit, **query)

    async def digest(
        self, *, since_event: int | None = None, since_s: float | None = None
    ) -> Digest:
        """What happened after an event, after an instant, or by both.

        Args:
            since_event: Events with a greater id are told.
            since_s: Figures count from this Unix time on (negative: seconds back); without it,
                from the event's time.
        """
        query: dict[str, Any] = {} if since_event is None else {"since_event": since_event}
        query |= {} if since_s is None else {"since": since_s}
        return await self._get(Digest, "/v1/digest", **query)

    async def read_mark(self) -> ReadMark:
        """Up to where the operator has read the journal."""
        return await self._get(ReadMark, "/v1/read-mark")

    async def mark_read(self, event_id: int) -> ReadMark:
        """Note that the operator has read up to an event; it never goes back."""
        data = await self._request("POST", "/v1/read-mark", json={"event": event_id})
        return _decoded(ReadMark, data)

    async def starts(self, limit: int = 20) -> tuple[EngineStart, ...]:
        """The newest engine starts that are still known, newest first."""
        return await self._get_list(EngineStart, "/v1/starts", limit=limit)

    async def spending(self, since_s: float = -86_400.0) -> SpendingReport:
        """Dollars and tokens by the hour; a negative Unix time counts seconds back from now."""
        return await self._get(SpendingReport, "/v1/spending", since=since_s)

    async def profiles(self) -> tuple[ProfileSummary, ...]:
        """Every profile, shipped and the operator's own."""
        return await self._get_list(ProfileSummary, "/v1/profiles")

    async def changes(self, profile: str = "") -> ProfileDiff:
        """What a profile's file says otherwise than what runs; empty is the running one.

        Raises:
            RefusedError: If nothing runs, or the file is wrong.
        """
        asked = {"profile": profile} if profile else {}
        return await self._get(ProfileDiff, "/v1/profiles/changes", **asked)

    async def fix(self) -> FixOffer:
        """The change of a profile that mends the last failed start.

        Raises:
            RefusedError: If nothing is known to mend it.
        """
        return await self._get(FixOffer, "/v1/profiles/fix")

    async def switch_cost(self, profile: str, **drain: str) -> SwitchCost:
        """What it would cost to let a profile serve in place of what does.

        Args:
            profile: What would serve.
            drain: `drain_s`, where running requests may take another time to end than is set.

        Raises:
            UsageError: If there is no such profile.
            RefusedError: If it could not be started here.
        """
        return await self._get(SwitchCost, "/v1/switch-cost", profile=profile, **drain)

    async def speculation_way(self, mode: str) -> TurningWay:
        """How a change of speculation would be made now.

        Raises:
            RefusedError: If it would be refused.
        """
        return await self._get(TurningWay, "/v1/speculation-way", mode=mode)

    async def logs(
        self,
        offset: int = -65536,
        limit_bytes: int = 65536,
        *,
        start: str = "",
        newest: bool = False,
    ) -> LogChunk:
        """The engine's output from a byte offset; a negative one counts from the end.

        Args:
            offset: Where to begin.
            limit_bytes: The longest piece.
            start: Of which engine start; empty is the newest.
            newest: Where more is waiting, take the end of it and say how many lines are left out.
        """
        query: dict[str, Any] = {"start": start} if start else {}
        query |= {"newest": 1} if newest else {}
        return await self._get(LogChunk, "/v1/logs", offset=offset, limit=limit_bytes, **query)

    async def explain_output(
        self, passages: Sequence[LogPassage], *, start: str = ""
    ) -> tuple[LogMeaning | None, ...]:
        """What lines of an engine's output mean; None where that is not known."""
        asked = {"start": start, "passages": [encode(passage) for passage in passages]}
        data = await self._request("POST", "/v1/logs/explain", json=asked)
        return tuple(None if item is None else _decoded(LogMeaning, item) for item in data)

    async def environment(self) -> ClientEnvironment:
        """What a client of this machine must set to reach the gateway, its token included."""
        environment = await self._get(ClientEnvironment, "/v1/environment")
        return self._far.environment(environment) if self._far else environment

    async def why(self) -> Explanation:
        """What explains the newest snapshot's speed, ranked, and what was ruled out how."""
        return await self._get(Explanation, "/v1/why")

    async def session(self, session: str, *, turns: int = 100) -> SessionDetail:
        """One session in full, with so many of its newest requests; its name's beginning will do.

        Raises:
            UsageError: If no session is known by that name.
        """
        path = f"/v1/sessions/{quote(session, safe='')}"
        return await self._get(SessionDetail, path, turns=turns)

    async def start(self, command: str, **arguments: str) -> CommandResult:
        """Begin a command; answers at once with its id.

        Raises:
            RefusedError: If it cannot be done as things are, or is forbidden.
        """
        if self._forbidden and CALLABLE[command].acts:
            raise forbidden_error(command, self._forbidden)
        headers = {WHO_HEADER: own_name(self._role)}
        path = f"/v1/commands/{command}"
        data = await self._request("POST", path, json=arguments, headers=headers)
        return _decoded(CommandResult, data)

    async def result(self, command_id: str) -> CommandResult:
        """How far a command is."""
        return await self._get(CommandResult, f"/v1/commands/{command_id}")

    async def _get(self, kind: type[T], path: str, /, **query: Any) -> T:
        return _decoded(kind, await self._request("GET", path, params=query))

    async def _get_list(self, kind: type[T], path: str, /, **query: Any) -> tuple[T, ...]:
        data = await self._request("GET", path, params=query)
        return tuple(_decoded(kind, item) for item in data)

    async def _request(self, method: str, path: str, **options: Any) -> Any:
        try:
            self._check_owner()
            response = await self._http.request(method, path, **options)
        except httpx.TimeoutException as error:
            raise TimedOutError(
                "The service does not answer",
                evidence=f"{path}: {type(error).__name__} on {self._socket_path}",
                remedy="Look at service.log in the state folder, or restart it: a40console stop.",
            ) from error
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_error:
            raise _refusal(response.content)
        return _parsed(response.content)

    def _check_owner(self) -> None:
        """What we would tell the service, and believe of it, is for this user's own only."""
        if self._on_socket:
            check_control_socket(self._socket_path)

    def _unreachable(self, error: Exception) -> NoServiceError:
        seen = f"{self._socket_path}: {str(error) or type(error).__name__}"
        if self._far is not None:
            trouble = self._far.trouble(seen)
            return NoServiceError(trouble.message, evidence=trouble.evidence, remedy=trouble.remedy)
        return NoServiceError(
            "No service answers",
            evidence=seen,
            remedy="Start one with: a40console serve",
        )


def client_of(paths: Paths, role: str = COMMAND_LINE) -> ServiceClient:
    """The client of the service that these paths lead to, on this machine or another."""
    return ServiceClient(
        paths.control_socket, far=far_of(paths), forbidden=paths.forbidden, role=role
    )


def console_client(paths: Paths) -> ServiceClient:
    """The same for the console on a terminal, which the events then name."""
    return client_of(paths, CONSOLE)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise NoServiceError(
            "The service's answer was cut short",
            evidence=str(error),
            remedy="It is probably restarting; try again.",
        ) from error


def _decoded(kind: type[T], data: Any) -> T:
    try:
        return decode(kind, data)
    except DecodeError as error:
        raise RefusedError(
            "The service answers in another form than this version reads",
            evidence=str(error),
            remedy="Restart it: a40console stop, then this command again. "
            "The engine keeps running.",
        ) from error


def _refusal(body: bytes) -> ConsoleError:
    return ConsoleError.from_trouble(_decoded(Trouble, _parsed(body)))
