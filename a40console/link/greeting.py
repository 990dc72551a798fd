"""What the service over there says of itself, by the forwarded control socket."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT_S = 3.0
MOST_BYTES = 65_536
_QUESTION = b"GET /v1/hello HTTP/1.0\r\nHost: service\r\n\r\n"


def gateway_of(control: Path) -> str:
    """The gateway's `host:port` over there; empty where nobody says it in time."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        return urlsplit(str(_hello(control)["gateway_url"] or "")).netloc
    return ""


def _hello(control: Path) -> dict[str, object]:
    answer = b""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(TIMEOUT_S)
        door.connect(str(control))
        door.sendall(_QUESTION)
        while (piece := door.recv(MOST_BYTES)) and len(answer) < MOST_BYTES:
            answer += piece
    _, _, body = answer.partition(b"\r\n\r\n")
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("no greeting")
    return found
