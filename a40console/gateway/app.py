"""The gateway's ASGI application: its routes, its own health, and refusals in their grammar."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from a40console.gateway.address import AnyPrefix
from a40console.gateway.allocator import return_freed_memory
from a40console.gateway.anthropic.catalogue import Catalogue
from a40console.gateway.anthropic.commitment import TIMING, Timing
from a40console.gateway.anthropic.counting import CountRoute, TokenCounter
from a40console.gateway.anthropic.doors import MessagesDoors
from a40console.gateway.anthropic.exchange import MessagesRoute
from a40console.gateway.anthropic.hello import hello_routes
from a40console.gateway.auth import Authoriser, RequireAuthorisation
from a40console.gateway.bodies import BodyLimits, HeldBudget
from a40console.gateway.client_limits import ClientLimits, LimitClients
from a40console.gateway.dialect import DialectOf
from a40console.gateway.faults import FaultsWithoutTexts
from a40console.gateway.hold import AdmissionGate
from a40console.gateway.meter import Meter
from a40console.gateway.model_names import ModelNames, NamesOf
from a40console.gateway.passthrough import Passthrough
from a40console.gateway.probing import Dialects
from a40console.gateway.reading import BodyReading
from a40console.gateway.refusals import Refusal, grammar_of, refuse
from a40console.gateway.relay import MeteredRoute, PlainRoute
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import (
    EngineSessions,
    SessionFactory,
    UpstreamState,
    open_session,
)

_DEFAULT_LIMITS = BodyLimits()
_NO_LIMITS = ClientLimits()


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What the gateway works with, where the service does not share its own."""

    session_factory: SessionFactory = open_session
    dialects: DialectOf | None = None
    book: SessionBook | None = None
    """Follows the sessions; without one they are followed for nobody."""

    timing: Timing = TIMING
    names: NamesOf | None = None
    """Under which an OpenAI client's model is asked of the engine."""

    gate: AdmissionGate | None = None
    """Holds requests while the engine is switched; without one none is ever held."""


_ITS_OWN = Collaborators()


def build_gateway(
    *,
    upstream: UpstreamState,
    meter: Meter,
    authorise: Authoriser,
    limits: BodyLimits = _DEFAULT_LIMITS,
    budget: HeldBudget | None = None,
    client_limits: ClientLimits = _NO_LIMITS,
    collaborators: Collaborators = _ITS_OWN,
) -> Starlette:
    """The gateway as an ASGI application, to be served with httptools and uvloop.

    Serve it with its lifespan, which closes the sessions to the engine, without the server's
    access log, and on a listener with a long queue.
    """
    sessions = EngineSessions(collaborators.session_factory)
    held = budget or HeldBudget(limits.held_bytes)
    known = collaborators.dialects or Dialects(session_factory=collaborators.session_factory)
    book = collaborators.book or SessionBook(clock=meter.clock)
    names, timing = collaborators.names or ModelNames(), collaborators.timing
    gate = collaborators.gate or AdmissionGate(patience_s=0)
    shared = Passthrough(upstream, gate, meter, sessions, held, limits, book, timing, names)
    messages = MessagesDoors(
        upstream, gate, meter, sessions, held, limits, known, book, timing, BodyReading()
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        return_freed_memory()
        yield
        await sessions.close()

    app = Starlette(
        routes=_routes(shared, messages),
        middleware=[
            Middleware(FaultsWithoutTexts),
            Middleware(AnyPrefix),
            Middleware(RequireAuthorisation, authorise=authorise),
            Middleware(LimitClients, limits=client_limits),
        ],
        exception_handlers={HTTPException: _no_such_route, Exception: _our_fault},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def _routes(shared: Passthrough, messages: MessagesDoors) -> list[BaseRoute]:
    state, post, get = shared.state, ["POST"], ["GET"]
    counting = CountRoute(messages, TokenCounter(messages.sessions))
    catalogue = Catalogue(messages)

    async def health(request: Request) -> Response:
        engine = "serving" if state.current() else state.why_not().phase
        return JSONResponse({"status": "ok", "engine": engine})

    return [
        Route("/v1/messages", MessagesRoute(messages), methods=post),
        Route("/v1/chat/completions", MeteredRoute(shared, "chat"), methods=post),
        Route("/v1/completions", MeteredRoute(shared, "completions"), methods=post),
        Route("/v1/messages/count_tokens", counting, methods=post),
        Route("/v1/models", catalogue, methods=get),
        Route("/v1/models/{name:path}", catalogue, methods=get),
        Route("/version", PlainRoute(shared), methods=get),
        Route("/health", health, methods=get),
        *hello_routes(),
    ]


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
