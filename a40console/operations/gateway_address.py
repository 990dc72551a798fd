"""The address that the gateway's host setting stands for, or what is wrong with the setting."""

from __future__ import annotations

import socket
from typing import Any

from a40console.errors import ConsoleError, RefusedError, UsageError

_SHOWN_CHARS = 60


def gateway_address(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """The family and the address to bind.

    Raises:
        UsageError: If the host is neither an address nor the name of one.
        RefusedError: If it is not this machine's.
    """
    kind: type[ConsoleError] = UsageError
    try:
        if not host:
            raise ValueError("it is empty")
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        kind = RefusedError
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address[0], 0, *address[2:]))
    except (OSError, ValueError) as error:  # part of a name too long: a UnicodeError
        raise kind(
            f"The gateway cannot listen on {_shown(host)}",
            evidence=f"gateway.host: {getattr(error, 'strerror', None) or error}",
            remedy="Set an address of this machine: a40console serve --host 127.0.0.1, or "
            "[gateway] host in config.toml.",
        ) from error
    return family, address


def _shown(host: str) -> str:
    """The host, at most 60 characters of it, with escapes for what a terminal would obey."""
    short = host if len(host) <= _SHOWN_CHARS else f"{host[:_SHOWN_CHARS]}…"
    return short if host.isprintable() and host else ascii(short)
