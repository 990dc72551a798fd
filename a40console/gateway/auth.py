"""Who may use the gateway: anybody on loopback, else whoever holds the token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from a40console.errors import RefusedError
from a40console.files import write_private
from a40console.gateway.anthropic.hello import GREETINGS
from a40console.gateway.refusals import Refusal, grammar_of, refuse
from a40console.paths import make_private

Authoriser: TypeAlias = Callable[[Headers], bool]
"""Whether a request with these headers may pass."""

_OPEN = frozenset({"/health", *GREETINGS})
"""Routes that tell nobody anything."""

_TOKEN_PREFIX = "a40-"  # noqa: S105 - what tokens begin with, no secret
_SHORTEST_TOKEN = 16


def load_or_make_token(path: Path) -> str:
    """The gateway's token; made at first use, in a file that only its owner can read.

    Raises:
        RefusedError: If the file can be neither read nor written.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
        if len(token) >= _SHORTEST_TOKEN:
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)
            return token
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, error) from error
    token = _TOKEN_PREFIX + secrets.token_urlsafe(32)
    make_private(path.parent)
    try:
        write_private(path, token + "\n")
    except OSError as error:
        raise _unusable(path, error) from error
    return token


def allow_this_machine(headers: Headers) -> bool:
    """Loopback without a token: programs of this machine may, web pages may not.

    A page that a browser here shows could otherwise use the models: by a request of its own, which
    names its origin, or under a host name of its own that resolves to this machine.
    """
    origin = headers.get("origin")
    if origin is not None and not _is_loopback(origin):
        return False
    return _is_loopback(f"//{headers.get('host', 'localhost')}")


def _is_loopback(url: str) -> bool:
    """Whether a URL names this machine; one that cannot be read does not."""
    try:
        name = urlsplit(url).hostname
    except ValueError:
        return False
    if name is None:
        return False
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def require_token(token: str) -> Authoriser:
    """Accept the token as `Authorization: Bearer` or as `x-api-key`, compared in constant time."""
    expected = token.encode()

    def authorised(headers: Headers) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        offered = [headers.get("x-api-key", "")]
        if scheme.lower() == "bearer":
            offered.append(bearer.strip())
        matches = [hmac.compare_digest(one.encode("latin-1"), expected) for one in offered]
        return any(matches)

    return authorised


class RequireAuthorisation:
    """ASGI middleware: 401 in the caller's grammar; health and greetings stay open."""

    def __init__(self, app: ASGIApp, authorise: Authoriser) -> None:
        self._app = app
        self._authorise = authorise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it unread."""
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if self._authorise(headers):
            await self._app(scope, receive, send)
            return
        refusal = Refusal(
            401,
            "The gateway's token is missing or wrong; where none is demanded, only programs of "
            "this machine may use it, under the name localhost. Send the token as 'Authorization: "
            "Bearer TOKEN' or as x-api-key; on the gateway's machine, 'a40console env' prints it.",
        )
        await refuse(grammar_of(scope["path"], headers), refusal)(scope, receive, send)


def _unusable(path: Path, error: Exception) -> RefusedError:
    return RefusedError(
        f"The gateway's token file {path} cannot be used",
        evidence=str(error),
        remedy="Mend or remove the file: a new token is made when there is none.",
    )
