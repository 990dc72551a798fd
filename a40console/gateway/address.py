"""Addresses: the served routes stand behind any prefix, which may name a session.

A client that is given a base address with a path, `http://HOST/s/NAME`, puts its routes behind it.
"""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

_PREFIX_KEY = "a40console.prefix"
_SERVED = re.compile(
    r"(?P<prefix>(?:/.*?)?)(?P<route>/v1/(?:messages(?:/count_tokens)?|chat/completions|"
    r"completions|models(?:/.+)?)|/api/hello)",
    re.DOTALL,
)
_ROOT = re.compile(r"/s/[^/]+/?")


def split_address(path: str) -> tuple[str, str]:
    """The prefix of an address and the route behind it; no prefix where no such route is served."""
    if _ROOT.fullmatch(path):
        return path.rstrip("/"), "/"
    match = _SERVED.fullmatch(path)
    return (match["prefix"], match["route"]) if match else ("", path)


def written_address(scope: Scope) -> str:
    """The path as the client wrote it."""
    written: str = scope.get(_PREFIX_KEY, "") + scope["path"]
    return written


class AnyPrefix:
    """ASGI middleware: everything behind it sees the bare route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on under its route."""
        if scope["type"] == "http":
            prefix, route = split_address(scope["path"])
            if route != scope["path"]:
                raw = route.encode("utf-8", "surrogateescape")
                scope = {**scope, "path": route, "raw_path": raw, _PREFIX_KEY: prefix}
        await self._app(scope, receive, send)
