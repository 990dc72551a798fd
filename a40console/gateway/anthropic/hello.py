"""What clients ask before they ask for anything: whether somebody is there."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

GREETINGS = ("/", "/api/hello")
"""Answered to anybody, token or not: nothing is told but that the gateway is there."""


async def hello(request: Request) -> Response:
    """A short answer; to HEAD its head alone."""
    return JSONResponse({"service": "a40console gateway", "status": "ok"})


def hello_routes() -> list[Route]:
    """The routes, for GET and HEAD."""
    return [Route(path, hello, methods=["GET", "HEAD"]) for path in GREETINGS]
