"""Asks a service over its control socket with the standard library alone: a holder stays small."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from a40console.errors import ConsoleError, Exit, NoServiceError, RefusedError
from a40console.paths import check_control_socket

MOST_BYTES = 256 * 1024 * 1024
"""Of one answer: a run of many hours has some tens of MB."""

WHO_HEADER = "x-a40console-caller"


class _OverSocket(http.client.HTTPConnection):
    """HTTP to whoever listens on a Unix socket."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("service", timeout=timeout_s)
        self._path = path
        self._timeout_s = timeout_s

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self._timeout_s)
        self.sock.connect(str(self._path))


class SocketCalls:
    """The control API at one socket, a connection a call.

    Args:
        path: The socket.
        timeout_s: How long it may be silent.
        who: Who asks, for the events over there.
    """

    def __init__(self, path: Path, *, timeout_s: float, who: str) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._who = who

    def get(self, path: str, **query: str) -> bytes:
        """The whole answer.

        Raises:
            NoServiceError: If nobody answers, or not to the end.
            ConsoleError: What the service refuses it with.
        """
        return self._ask("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, arguments: dict[str, str]) -> Any:
        """The JSON of the answer to a command.

        Raises:
            ConsoleError: As `get`.
        """
        return parsed(self._ask("POST", path, json.dumps(arguments).encode()))

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        check_control_socket(self._path)
        connection = _OverSocket(self._path, self._timeout_s)
        try:
            headers = {"content-type": "application/json", WHO_HEADER: self._who}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            if (length := answer.length) is not None and length > MOST_BYTES:
                raise RefusedError(
                    "The service's answer is too long to be copied", evidence=f"{length:,} bytes"
                )
            found = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise NoServiceError(
                "The service over there does not answer, or not to the end",
                evidence=f"{path}: {str(error) or type(error).__name__}",
            ) from error
        finally:
            connection.close()
        if answer.status >= http.client.BAD_REQUEST:
            raise _refusal(found, answer.status)
        return found


def parsed(text: bytes) -> Any:
    """The JSON of an answer.

    Raises:
        NoServiceError: If it is none: it was cut short.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoServiceError(
            "The answer of the service over there was cut short", evidence=str(error)
        ) from error


def _refusal(body: bytes, status: int) -> ConsoleError:
    """The error over there as one of ours, whatever came with it."""
    told = parsed(body)
    if not isinstance(told, dict):
        told = {}
    code = told.get("exit_code")
    return ConsoleError(
        str(told.get("message") or f"The service over there answers with HTTP {status}"),
        evidence=str(told.get("evidence", "")),
        remedy=str(told.get("remedy", "")),
        exit_code=Exit(code) if code in {int(item) for item in Exit} else Exit.REFUSED,
    )
