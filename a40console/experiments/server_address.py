"""Where a load goes: the server's address, its credentials, and connections to it."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from a40console import __version__
from a40console.experiments.connection import Connection, ExchangeError
from a40console.model.run import Dialect

CONNECT_TIMEOUT_S = 10.0
LONGEST_IDLE_S = 2.0
"""Servers close idle connections after 5 s: one that is used again well before that is not lost
in the very moment that a request is sent on it."""

_PORTS = {"http": 80, "https": 443}
_COVERED = "***"
_LEAST_BEGINNING = 4
"""Characters of a key that tell something of it."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, as it is asked."""

    host: str
    port: int
    secure: bool
    prefix: str
    """What stands before every path."""

    socket_path: str
    dialect: Dialect
    token: str = field(repr=False)

    def head(self, path: str, length: int, headers: Mapping[str, str]) -> bytes:
        """A request's head; `headers` over our own."""
        sent = {
            "Host": self._authority(),
            "User-Agent": f"a40console/{__version__}",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "Content-Length": str(length),
            **self._credentials(),
            **headers,
        }
        target = self.prefix + path
        if self.prefix.endswith("/v1") and path.startswith("/v1/"):
            target = self.prefix + path.removeprefix("/v1")
        lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        if any("\r" in line or "\n" in line for line in lines):
            raise ExchangeError("a header or the key has a line end in it: it cannot be sent")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")

    def hidden(self, text: str) -> str:
        """The text without the key, should a server echo it, be it cut short at the end."""
        return without_key(text, self.token)

    def _authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == _PORTS["https" if self.secure else "http"]
        return host if usual else f"{host}:{self.port}"

    def _credentials(self) -> dict[str, str]:
        """Servers of the Anthropic dialect read the one header or the other."""
        said = {"anthropic-version": "2023-06-01"} if self.dialect == "anthropic" else {}
        if self.token:
            said["Authorization"] = f"Bearer {self.token}"
            if self.dialect == "anthropic":
                said["x-api-key"] = self.token
        return said


def without_key(text: str, key: str) -> str:
    """The text without a key, and without the beginning of one where the text was cut short."""
    if not key:
        return text
    covered = text.replace(key, _COVERED)
    for length in range(len(key) - 1, _LEAST_BEGINNING - 1, -1):
        if covered.endswith(key[:length]):
            return covered[:-length] + _COVERED
    return covered


def server_address(
    base_url: str, *, socket_path: str, token: str, dialect: Dialect
) -> ServerAddress:
    """Read an address.

    Raises:
        ValueError: If it is no address of a web server.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError(f"{base_url!r} is no address: http://HOST[:PORT] or https://… is one")
    return ServerAddress(
        host=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        secure=parts.scheme == "https",
        prefix=parts.path.rstrip("/"),
        socket_path=socket_path,
        dialect=dialect,
        token=token,
    )


class Connections:
    """As many connections to one server as are needed at once, used again while they are fresh."""

    def __init__(self, address: ServerAddress, clock: Callable[[], float]) -> None:
        self.address = address
        self._clock = clock
        self._idle: list[Connection] = []
        self._context = ssl.create_default_context() if address.secure else None

    async def take(self, *, fresh: bool = False) -> Connection:
        """A connection that nobody else uses; with `fresh` one that carried nothing yet.

        Raises:
            ExchangeError: If the server cannot be reached.
        """
        now_s = self._clock()
        while self._idle and not fresh:
            connection = self._idle.pop()
            since_s = connection.idle_since_s
            if since_s is not None and now_s - since_s < LONGEST_IDLE_S:
                return connection
            connection.close()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await self._open()
        except TimeoutError:
            reason = f"no connection within {CONNECT_TIMEOUT_S:g} s"
        except OSError as error:
            reason = _why(error)
        raise ExchangeError(f"cannot connect: {reason}")

    def give_back(self, connection: Connection) -> None:
        """It is not used any more; it is kept where its answer ended whole."""
        if connection.idle_since_s is None:
            connection.close()
        else:
            self._idle.append(connection)

    def close(self) -> None:
        """Close those that nobody uses."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def _open(self) -> Connection:
        loop = asyncio.get_running_loop()
        at = self.address
        if at.socket_path:
            _, connection = await loop.create_unix_connection(self._new, at.socket_path)
            return connection
        _, connection = await loop.create_connection(self._new, at.host, at.port, ssl=self._context)
        return connection

    def _new(self) -> Connection:
        return Connection(self._clock)


def _why(error: OSError) -> str:
    """In the system's words; asyncio's own name only where it connected to."""
    if error.errno is not None and error.errno > 0 and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return str(error)
