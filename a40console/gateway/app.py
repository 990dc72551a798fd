"""The gateway's ASGI application: its routes, its own health, and refusals in their grammar."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from a40console.gateway.allocator import return_freed_memory
from a40console.gateway.auth import Authoriser, RequireAuthorisation
from a40console.gateway.bodies import BodyLimits, HeldBudget
from a40console.gateway.meter import Meter
from a40console.gateway.refusals import Refusal, grammar_of, refuse
from a40console.gateway.relay import MeteredRoute, Passthrough, PlainRoute
from a40console.gateway.upstream import (
    EngineSessions,
    SessionFactory,
    UpstreamState,
    open_session,
)

_DEFAULT_LIMITS = BodyLimits()


def build_gateway(
    *,
    upstream: UpstreamState,
    meter: Meter,
    authorise: Authoriser,
    limits: BodyLimits = _DEFAULT_LIMITS,
    budget: HeldBudget | None = None,
    session_factory: SessionFactory = open_session,
) -> Starlette:
    """The gateway as an ASGI application, to be served with httptools and uvloop.

    Serve it with its lifespan, which closes the sessions to the engine, without the server's
    access log, and on a listener with a long queue.
    """
    sessions = EngineSessions(session_factory)
    held = budget or HeldBudget(limits.held_bytes)
    shared = Passthrough(upstream, meter, sessions, held, limits)

    async def health(request: Request) -> Response:
        engine = "serving" if upstream.current() else upstream.why_not().phase
        return JSONResponse({"status": "ok", "engine": engine})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        return_freed_memory()
        yield
        await sessions.close()

    post, get = ["POST"], ["GET"]
    app = Starlette(
        routes=[
            Route("/v1/messages", MeteredRoute(shared, "messages"), methods=post),
            Route("/v1/chat/completions", MeteredRoute(shared, "chat"), methods=post),
            Route("/v1/completions", MeteredRoute(shared, "completions"), methods=post),
            Route("/v1/messages/count_tokens", PlainRoute(shared), methods=post),
            Route("/v1/models", PlainRoute(shared), methods=get),
            Route("/version", PlainRoute(shared), methods=get),
            Route("/health", health, methods=get),
        ],
        middleware=[Middleware(RequireAuthorisation, authorise=authorise)],
        exception_handlers={HTTPException: _no_such_route, Exception: _our_fault},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


async def _no_such_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    path, method = request.url.path, request.method
    said = (
        f"{method} is not a method of {path}."
        if status == 405
        else f"The gateway has no route {method} {path}."
    )
    response = refuse(grammar_of(path, request.headers), Refusal(status, said))
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


async def _our_fault(request: Request, error: Exception) -> Response:
    said = "The gateway failed on this request. Send it again; its log has the details."
    return refuse(grammar_of(request.url.path, request.headers), Refusal(500, said))
