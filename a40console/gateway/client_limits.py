"""What a client and a session may ask for, where the operator sets a limit; none is by itself."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address
from typing import Literal

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from a40console.config import GatewaySettings
from a40console.gateway.address import written_address
from a40console.gateway.anthropic.identity import identity_of
from a40console.gateway.refusals import Refusal, grammar_of, refuse

_WINDOW_S = 60.0
_KEPT_IDLE = 1024
_RETRY_S = 2.0
_LIMITED = frozenset({"/v1/messages", "/v1/chat/completions", "/v1/completions"})
_SITE_BITS = 64
"""Of an IPv6 address: the bits after them a machine chooses by itself, as often as it likes."""

Who = Literal["client", "session"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for each client, or for each session of one; 0 is none."""

    at_once: int = 0
    """Requests under way."""

    per_minute: int = 0
    """Requests within any 60 s."""

    def any(self) -> bool:
        """Whether there is a limit at all."""
        return bool(self.at_once or self.per_minute)


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Both limits: a client is a machine, whatever its requests call themselves."""

    client: Limits = Limits()
    session: Limits = Limits()
    """By the name that the client chose: it shares out among those who mean well."""


def client_limits(settings: GatewaySettings) -> ClientLimits:
    """The limits that the operator has set."""
    return ClientLimits(
        client=Limits(settings.client_requests, settings.client_requests_per_minute),
        session=Limits(settings.session_requests, settings.session_requests_per_minute),
    )


@dataclass(slots=True)
class _Asked:
    under_way: int = 0
    begun_at_s: deque[float] = field(default_factory=deque)


class AskingBook:
    """Who asks for how much.

    Those with a request under way are all kept, and of the others so many, the newest.

    Args:
        limits: What each may ask for.
        who: What they are, as a refusal and the settings call them.
        clock: Seconds that only grow.
    """

    def __init__(
        self, limits: Limits, who: Who = "client", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits = limits
        self._who = who
        self._clock = clock
        self._busy: dict[str, _Asked] = {}
        self._idle: OrderedDict[str, _Asked] = OrderedDict()

    def __len__(self) -> int:
        return len(self._busy) + len(self._idle)

    def check(self, name: str) -> None:
        """Whether one more request may begin; it is not counted.

        Raises:
            Refusal: If there are as many as there may be.
        """
        asked = self._busy.get(name) or self._idle.get(name)
        if asked is not None:
            self._check(asked, self._clock())

    def enter(self, name: str) -> None:
        """A request begins.

        Raises:
            Refusal: If there are as many as there may be; it is then not counted.
        """
        asked = self._busy.get(name) or self._idle.get(name) or _Asked()
        now_s = self._clock()
        self._check(asked, now_s)
        self._idle.pop(name, None)
        self._busy[name] = asked
        asked.under_way += 1
        if self._limits.per_minute:
            asked.begun_at_s.append(now_s)

    def leave(self, name: str) -> None:
        """A request is over."""
        asked = self._busy[name]
        asked.under_way -= 1
        if asked.under_way:
            return
        self._idle[name] = self._busy.pop(name)
        while len(self._idle) > _KEPT_IDLE:
            self._idle.popitem(last=False)

    def _check(self, asked: _Asked, now_s: float) -> None:
        limits, begun = self._limits, asked.begun_at_s
        while begun and begun[0] <= now_s - _WINDOW_S:
            begun.popleft()
        if limits.at_once and asked.under_way >= limits.at_once:
            raise Refusal(
                429,
                f"This {self._who} has {asked.under_way} requests under way, as many as it may; "
                f"the limit is [gateway] {self._who}_requests.",
                retry_after_s=_RETRY_S,
            )
        if limits.per_minute and len(begun) >= limits.per_minute:
            raise Refusal(
                429,
                f"This {self._who} has begun {len(begun)} requests within a minute, as many as it "
                f"may; the limit is [gateway] {self._who}_requests_per_minute.",
                retry_after_s=begun[0] + _WINDOW_S - now_s,
            )


def client_key(scope: Scope) -> str:
    """Which machine asks.

    Nothing else of a request holds: whoever gets here has the one token, or needs none, and may
    send any name or key beside it.
    """
    told: str = (scope.get("client") or ("",))[0]
    try:
        address = ip_address(told)
    except ValueError:
        return told
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> (128 - _SITE_BITS):x}::"


def session_key(scope: Scope, headers: Headers) -> str:
    """Which session asks, as headers and address name it, of one token and one machine.

    A name in the body is not known yet. It is the client's own choice: what others may ask for it
    cannot use up.
    """
    session = identity_of(headers, written_address(scope)).session
    offered = (headers.get("authorization", ""), headers.get("x-api-key", ""))
    holder = "\n".join((*offered, client_key(scope)))
    return f"{session} {blake2b(holder.encode(), digest_size=8).hexdigest()}"


class LimitClients:
    """ASGI middleware: 429 in the caller's grammar for a client or session beyond its limits."""

    def __init__(self, app: ASGIApp, limits: ClientLimits) -> None:
        self._app = app
        self._clients = AskingBook(limits.client, "client")
        self._sessions = AskingBook(limits.session, "session")
        self._any = limits.client.any() or limits.session.any()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it unread."""
        if not self._any or scope["type"] != "http" or scope["path"] not in _LIMITED:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        client, session = client_key(scope), session_key(scope, headers)
        try:
            self._sessions.check(session)  # what it refuses does not count for the client either
            self._clients.enter(client)
        except Refusal as refusal:
            await refuse(grammar_of(scope["path"], headers), refusal)(scope, receive, send)
            return
        self._sessions.enter(session)
        try:
            await self._app(scope, receive, send)
        finally:
            self._sessions.leave(session)
            self._clients.leave(client)
