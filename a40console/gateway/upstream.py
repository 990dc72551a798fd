"""The engine behind the gateway: where it is, why it is not, and the sessions that reach it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from a40console.model.engine import Endpoint, EngineKind, MessagesRoute

RawHeaders: TypeAlias = Iterable[tuple[bytes, bytes]]
"""Headers as ASGI gives them: names in lower case."""

_CONNECT_TIMEOUT_S = 5.0

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_OURS_TO_SAY = frozenset(
    {
        b"accept-encoding",
        b"authorization",
        b"content-length",
        b"expect",
        b"host",
        b"x-api-key",
        b"x-request-id",
    }
)
_ANSWERED_BY_US = frozenset({b"date", b"request-id", b"server", b"x-request-id"})


@dataclass(frozen=True, slots=True)
class Upstream:
    """The engine that serves now."""

    endpoint: Endpoint
    kind: EngineKind
    served_name: str
    plugin: bool
    """Our plugin counts inside the engine: nothing is added to requests to count at the gateway."""

    run_id: str
    messages_route: MessagesRoute = "auto"
    """How the Messages API is served: `auto` as the engine is found to be."""

    reasoning: bool = False
    """The engine was told how its model marks thoughts, and so takes a budget for them."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why no engine serves, in words for the client."""

    text: str
    """What the engine is doing, since when, and what to do: one or two sentences."""

    phase: str
    eta_s: float | None
    retry_after_s: float


class UpstreamState(Protocol):
    """What the gateway asks the service about the engine, once a request."""

    def current(self) -> Upstream | None:
        """The engine that serves, or None."""

    def why_not(self) -> Unavailable:
        """Why `current()` answered None."""


SessionFactory: TypeAlias = Callable[[Endpoint], aiohttp.ClientSession]


def open_session(endpoint: Endpoint) -> aiohttp.ClientSession:
    """A session for one engine: no limit on connections, no limit on an answer's duration.

    Connections are not kept: a request on one that the engine is just closing would fail, and
    a new one to a socket of this machine costs a tenth of a millisecond.
    """
    connector = (
        aiohttp.UnixConnector(endpoint.socket_path, limit=0, force_close=True)
        if endpoint.socket_path
        else aiohttp.TCPConnector(limit=0, limit_per_host=0, force_close=True)
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        skip_auto_headers=("Accept", "Content-Type", "User-Agent"),
    )


@dataclass(slots=True)
class Lease:
    """An engine's session, with how many use it."""

    session: aiohttp.ClientSession
    users: int = 0

    def end(self) -> None:
        """One uses it no longer."""
        self.users -= 1


class EngineSessions:
    """One session per engine; that of a former engine is closed when its last request is done."""

    def __init__(self, factory: SessionFactory = open_session) -> None:
        self._factory = factory
        self._leases: dict[Endpoint, Lease] = {}

    @asynccontextmanager
    async def lease(self, endpoint: Endpoint) -> AsyncIterator[aiohttp.ClientSession]:
        """The session for this engine, kept open for as long as the block runs."""
        lease = await self.take(endpoint)
        try:
            yield lease.session
        finally:
            lease.end()

    async def take(self, endpoint: Endpoint) -> Lease:
        """The session for this engine, kept open until the lease is ended."""
        lease = self._leases.get(endpoint)
        if lease is None:
            await self._close_idle()
            lease = self._leases.get(endpoint)  # another request may have come first meanwhile
        if lease is None:
            lease = self._leases[endpoint] = Lease(self._factory(endpoint))
        lease.users += 1
        return lease

    async def close(self) -> None:
        """Close every session, cutting what still runs."""
        leases = tuple(self._leases.values())
        self._leases.clear()
        for lease in leases:
            await lease.session.close()

    async def _close_idle(self) -> None:
        idle = [endpoint for endpoint, lease in self._leases.items() if not lease.users]
        for session in [self._leases.pop(endpoint).session for endpoint in idle]:
            await session.close()


def upstream_url(endpoint: Endpoint, path: str, query: bytes) -> URL:
    """The engine's address for a route, the query exactly as the client wrote it."""
    target = endpoint.base_url.rstrip("/") + path
    if query:
        target += "?" + query.decode("latin-1")
    return URL(target, encoded=True)


def request_headers(
    headers: RawHeaders, endpoint: Endpoint, request_id: str, length: int | None
) -> CIMultiDict[str]:
    """The client's headers for the engine: its credentials out, the engine's in.

    `length` is the body's in bytes, None where the request has none.
    """
    passed = CIMultiDict(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in _without(headers, _OURS_TO_SAY)
    )
    passed["Accept-Encoding"] = "identity"
    passed["X-Request-Id"] = request_id
    if endpoint.api_key is not None:
        passed["Authorization"] = f"Bearer {endpoint.api_key}"
    if length is not None:
        passed["Content-Length"] = str(length)
    return passed


def response_headers(headers: RawHeaders, request_id: str) -> list[tuple[bytes, bytes]]:
    """The engine's headers for the client, with the id that the client knows."""
    lowered = ((name.lower(), value) for name, value in headers)
    return [
        *_without(lowered, _ANSWERED_BY_US),
        (b"x-request-id", request_id.encode("latin-1")),
        (b"request-id", request_id.encode("latin-1")),
    ]


def _without(headers: RawHeaders, dropped: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    """All but the given ones, the hop-by-hop ones and those that `Connection` names."""
    kept = list(headers)
    named = {
        token.strip().lower()
        for name, value in kept
        if name == b"connection"
        for token in value.split(b",")
    }
    return [
        (name, value)
        for name, value in kept
        if name not in dropped and name not in _HOP_BY_HOP and name not in named
    ]
