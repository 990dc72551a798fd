"""Faults of our own, logged by where they are: what an exception says may be a client's text."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb

from starlette.types import ASGIApp, Receive, Scope, Send

_SHOWN_FRAMES = 6


class GatewayFaultError(Exception):
    """Something failed that should not; says what kind of exception it was, and where."""


class FaultsWithoutTexts:
    """ASGI middleware: whatever is raised goes on without its words, its causes and its values."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        fault = ""
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - its place is told, in its stead
            fault = where(error)
        if fault:
            raise GatewayFaultError(fault)


def where(error: BaseException) -> str:
    """An exception's kind and the innermost places that it passed."""
    frames = extract_tb(error.__traceback__)[-_SHOWN_FRAMES:]
    places = (f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    return f"{type(error).__name__} at {' > '.join(places)}"
