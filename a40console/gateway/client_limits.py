"""What one client may ask for, where the operator sets a limit; none is set by itself."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

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
    """Who asks for how much: a client is a session, as far as headers and address name it."""

    def __init__(
        self, limits: ClientLimits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._clients: dict[str, _Client] = {}

    def enter(self, name: str) -> None:
        """A client's request begins.

        Raises:
            Refusal: If the client has as many as it may.
        """
        limits, now_s = self._limits, self._clock()
        client = self._clients.setdefault(name, _Client())
        begun = client.begun_at_s
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
        client.under_way += 1
        begun.append(now_s)
        self._forget_idle()

    def leave(self, name: str) -> None:
        """A client's request is over."""
        self._clients[name].under_way -= 1

    def _forget_idle(self) -> None:
        if len(self._clients) <= _KEPT_CLIENTS:
            return
        oldest_s = self._clock() - _WINDOW_S
        for name, client in list(self._clients.items()):
            if not client.under_way and client.begun_at_s[-1] <= oldest_s:
                del self._clients[name]


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
        name = identity_of(headers, written_address(scope)).session
        try:
            book.enter(name)
        except Refusal as refusal:
            await refuse(grammar_of(scope["path"], headers), refusal)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            book.leave(name)
