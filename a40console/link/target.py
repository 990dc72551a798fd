"""The other machine as the operator names it: `user@host[:port]`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from a40console.errors import UsageError

_FORM = re.compile(
    r"(?:(?P<user>[^@\s:\[\]]+)@)?(?:\[(?P<address>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^@\s:\[\]/]+))"
    r"(?::(?P<port>\d{1,5}))?"
)
_MOST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Target:
    """Where ssh leads: a host, or an alias of the operator's ssh configuration."""

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{user}{host}" + (f":{self.port}" if self.port else "")

    @property
    def arguments(self) -> tuple[str, ...]:
        """The target as arguments of ssh."""
        port = ("-p", str(self.port)) if self.port else ()
        user = ("-l", self.user) if self.user else ()
        return (*port, *user, self.host)


def parse_target(text: str) -> Target:
    """Read `user@host:port`, `host`, `[::1]:2222` or `ssh://` before any of them.

    Raises:
        UsageError: If it is none. What begins with a dash, ssh would take for an option.
    """
    named = text.strip().removeprefix("ssh://").rstrip("/")
    found = _FORM.fullmatch(named)
    port = int(found["port"]) if found and found["port"] else None
    parts = (found["user"] or "", found["address"] or found["host"]) if found else ("", "-")
    if found is None or any(part.startswith("-") for part in parts):
        raise UsageError(
            f"{text!r} names no machine",
            remedy="Write it like root@203.0.113.7:22 or as a name of your ssh configuration.",
        )
    if port is not None and not 0 < port <= _MOST_PORT:
        raise UsageError(f"{port} is no port", remedy="Ports go from 1 to 65535.")
    return Target(host=parts[1], user=parts[0] or None, port=port)
