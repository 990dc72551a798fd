"""What one client may ask for, where the operator sets a limit; none is set by itself."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from a40console.config import GatewaySettings
from a40console.gateway.address import written_address
from a40console.gateway.anthropic.identity import identity_of
from a40console.gateway.refusals import Refusal, grammar_of, refuse

_WINDOW_S = 60.0
_KEPT_CLIENTS = 1024
_RETRY_S = 2.0
_LIMITED = frozenset({"/v1/messages", "/v1/chat/completions", "/v1/completions"})


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits for each client; 0 is none."""

    at_once: int = 0
    """Requests under way."""

    per_minute: int = 0
    """Requests within any 60 s."""

    def any(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self.at_once or self.per_minute)


def client_limits(settings: GatewaySettings) -> ClientLimits:
    """The limits that the operator has set."""
    return ClientLimits(settings.client_requests, settings.client_requests_per_minute)


@dataclass(slots=True)
class _Client:
    under_way: int = 0
    begun_at_s: deque[float] = field(default_factory=deque)


class ClientBook:
    """Who asks for how much.

    Those with a request under way are all kept, and of the others so many, the newest.
    """

    def __init__(
        self, limits: ClientLimits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._busy: dict[str, _Client] = {}
        self._idle: OrderedDict[str, _Client] = OrderedDict()

    def __len__(self) -> int:
        return len(self._busy) + len(self._idle)

    def enter(self, name: str) -> None:
        """A client's request begins.

        Raises:
            Refusal: If the client has as many as it may; it is then not counted.
        """
        client = self._busy.get(name) or self._idle.get(name) or _Client()
        now_s = self._clock()
        self._check(client, now_s)
        self._idle.pop(name, None)
        self._busy[name] = client
        client.under_way += 1
        if self._limits.per_minute:
            client.begun_at_s.append(now_s)

    def leave(self, name: str) -> None:
        """A client's request is over."""
        client = self._busy[name]
        client.under_way -= 1
        if client.under_way:
            return
        self._idle[name] = self._busy.pop(name)
        while len(self._idle) > _KEPT_CLIENTS:
            self._idle.popitem(last=False)

    def _check(self, client: _Client, now_s: float) -> None:
        limits, begun = self._limits, client.begun_at_s
        while begun and begun[0] <= now_s - _WINDOW_S:
            begun.popleft()
        if limits.at_once and client.under_way >= limits.at_once:
            raise Refusal(
                429,
                f"This client has {client.under_way} requests under way, as many as it may; the "
                "limit is [gateway] client_requests.",
                retry_after_s=_RETRY_S,
            )
        if limits.per_minute and len(begun) >= limits.per_minute:
            raise Refusal(
                429,
                f"This client has begun {len(begun)} requests within a minute, as many as it may; "
                "the limit is [gateway] client_requests_per_minute.",
                retry_after_s=begun[0] + _WINDOW_S - now_s,
            )


def client_key(scope: Scope, headers: Headers) -> str:
    """Who asks: a session as headers and address name it, of one token and one machine.

    A session's name is the client's own choice: with another one it begins anew, but what others
    may ask for it cannot use up.
    """
    session = identity_of(headers, written_address(scope)).session
    offered = (headers.get("authorization", ""), headers.get("x-api-key", ""))
    machine = (scope.get("client") or ("",))[0]
    holder = blake2b("\n".join((*offered, machine)).encode(), digest_size=8).hexdigest()
    return f"{session} {holder}"


class LimitClients:
    """ASGI middleware: 429 in the caller's grammar for a client beyond its limits."""

    def __init__(self, app: ASGIApp, limits: ClientLimits) -> None:
        self._app = app
        self._book = ClientBook(limits) if limits.any() else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it unread."""
        book = self._book
        if book is None or scope["type"] != "http" or scope["path"] not in _LIMITED:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        name = client_key(scope, headers)
        try:
            book.enter(name)
        except Refusal as refusal:
            await refuse(grammar_of(scope["path"], headers), refusal)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            book.leave(name)
