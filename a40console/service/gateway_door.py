"""The gateway's address and token, from the socket that the parent bound."""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

from a40console.gateway.auth import (
    Authoriser,
    allow_this_machine,
    load_or_make_token,
    require_token,
)

OPEN_TOKEN = "local"  # noqa: S105 - clients insist on sending one; nobody checks it on loopback


class GatewayDoor:
    """Where clients come in, and whether they must show a token."""

    def __init__(self, door: socket.socket, token_path: Path, *, token_required: bool) -> None:
        host, port = door.getsockname()[:2]
        address = ipaddress.ip_address(host)
        any_address = "127.0.0.1" if address.version == 4 else "::1"
        reached = any_address if address.is_unspecified else host
        self.url = f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"
        """How this machine reaches it."""

        self.listens_on: str = host
        """The address that it is bound to."""

        required = token_required or not address.is_loopback
        self.token = load_or_make_token(token_path) if required else None
        """The token that is demanded; None on loopback, where there is none by default."""

    @property
    def client_token(self) -> str:
        """What a client sends: the token, or any word where none is demanded."""
        return self.token or OPEN_TOKEN

    def authoriser(self) -> Authoriser:
        """What decides whether a request may pass."""
        return require_token(self.token) if self.token else allow_this_machine
