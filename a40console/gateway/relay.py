"""One request through the gateway: its body to the engine, the engine's answer to its client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass

import aiohttp
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from a40console.gateway.address import written_address
from a40console.gateway.answer import AnswerReader, EventStream, tokens
from a40console.gateway.bodies import Body, BodyLimits, HeldBudget, declared_length, read_body
from a40console.gateway.clients import client_of, shown
from a40console.gateway.departure import ClientLeftError, unless_left
from a40console.gateway.meter import Meter, Outcome, Passage, Route
from a40console.gateway.openai import OpenAIReader, additions_for
from a40console.gateway.opening import TROUBLE, EngineDoor, EngineRequest, new_request_id
from a40console.gateway.refusals import Grammar, Refusal, grammar_of, refuse, stream_end
from a40console.gateway.session_arrival import plain_arrival
from a40console.gateway.sessions import SessionBook
from a40console.gateway.upstream import (
    EngineSessions,
    Upstream,
    UpstreamState,
    request_headers,
    response_headers,
    upstream_url,
)

_READ_FROM_BODY = (
    "model",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "timings_per_token",
)
_WHOLE_LIMIT_BYTES = 4 * 1024 * 1024
"""How much of an answer that is not a stream is held until it is whole."""


@dataclass(frozen=True, slots=True)
class Passthrough:
    """What every request through the gateway shares."""

    state: UpstreamState
    meter: Meter
    sessions: EngineSessions
    budget: HeldBudget
    limits: BodyLimits
    book: SessionBook


class MeteredRoute:
    """ASGI endpoint: a generation request, counted from its arrival to its last byte."""

    def __init__(self, shared: Passthrough, route: Route) -> None:
        self._shared = shared
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        passage = self._shared.meter.accept(self._route, new_request_id())
        headers = Headers(scope=scope)
        passage.client = client_of(headers.get("user-agent"))
        outcome: Outcome = "failed"
        captures = self._shared.book.captures
        send = captures.tapped(passage, send)
        try:
            outcome = await Exchange(self._shared, scope, receive, send, passage).run()
        finally:
            self._shared.meter.end(passage, outcome)
            self._shared.book.ended(passage)
            captures.ended(passage)


class PlainRoute:
    """ASGI endpoint: a request that generates nothing and is not counted."""

    def __init__(self, shared: Passthrough) -> None:
        self._shared = shared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await Exchange(self._shared, scope, receive, send, None).run()


class Exchange:
    """One request and its answer."""

    def __init__(
        self,
        shared: Passthrough,
        scope: Scope,
        receive: Receive,
        send: Send,
        passage: Passage | None,
    ) -> None:
        self._shared = shared
        self._scope = scope
        self._receive = receive
        self._send = send
        self._passage = passage
        self._headers = Headers(scope=scope)
        self._request_id = passage.request_id if passage else new_request_id()
        self._told_id = shown(self._headers.get("x-request-id")) or self._request_id
        self._door = EngineDoor(shared.state, shared.meter.clock, passage)
        self._grammar: Grammar = grammar_of(scope["path"], self._headers)
        self._reader: AnswerReader | None = None
        self._answered = False
        """The last of the answer is on its way."""

    async def run(self) -> Outcome:
        """Serve it, and say how it ended; a client that leaves stops the engine's work at once."""
        try:
            self._door.engine()
            body = await self._read()
            try:
                exchange = self._exchange(self._door.engine(), body)
                return await unless_left(self._receive, exchange, lambda: self._answered)
            finally:
                body.discard()
        except Refusal as refusal:
            return await self._refuse(refusal)
        except ClientLeftError:
            return "aborted"

    async def _read(self) -> Body:
        declared = declared_length(self._headers)
        return await read_body(self._receive, declared, self._shared.budget, self._shared.limits)

    async def _refuse(self, refusal: Refusal) -> Outcome:
        if self._passage:
            self._passage.status = refusal.status
        answer = refuse(self._grammar, refusal, self._told_id)
        await answer(self._scope, self._receive, self._send)
        return "failed"

    async def _exchange(self, upstream: Upstream, body: Body) -> Outcome:
        if self._passage:
            self._reader = self._prepare(self._passage, upstream, body)
        async with self._shared.sessions.lease(upstream.endpoint) as session:
            asking = self._asking(upstream, body)
            with closing(await self._door.open(session, asking, body)) as response:
                streaming = response.content_type == "text/event-stream" and response.status < 400
                if self._reader is not None and streaming:
                    await self._start(response, sized=False)
                    return await self._stream(response, self._reader)
                return await self._whole(response)

    def _prepare(self, passage: Passage, upstream: Upstream, body: Body) -> AnswerReader:
        """Read what the body asks for, and add what is needed to count the answer."""
        asked = body.values(_READ_FROM_BODY)
        passage.model = shown(asked.get("model"))
        limit = tokens(asked, "max_completion_tokens")
        passage.max_tokens = tokens(asked, "max_tokens") if limit is None else limit
        arrival = plain_arrival(
            self._headers,
            written_address(self._scope),
            model=passage.model,
            stream=asked.get("stream") is True,
            max_tokens=passage.max_tokens,
        )
        self._shared.book.arrived(passage, arrival)
        self._shared.book.captures.asked(passage, body.whole)
        additions = additions_for(upstream, asked)
        if additions.member is not None:
            body.set_value(*additions.member)
        return OpenAIReader(self._shared.meter, passage, additions)

    def _asking(self, upstream: Upstream, body: Body) -> EngineRequest:
        scope, endpoint = self._scope, upstream.endpoint
        return EngineRequest(
            scope["method"],
            upstream_url(endpoint, scope["path"], scope["query_string"]),
            request_headers(scope["headers"], endpoint, self._request_id, body.length or None),
        )

    async def _start(self, response: aiohttp.ClientResponse, *, sized: bool) -> None:
        """Send the head; `sized` where the body's length will be what the engine said."""
        if self._passage:
            self._passage.status = response.status
        headers = response_headers(response.raw_headers, self._told_id)
        if not sized:
            headers = [(name, value) for name, value in headers if name != b"content-length"]
        head = {"type": "http.response.start", "status": response.status, "headers": headers}
        await self._send(head)

    async def _stream(self, response: aiohttp.ClientResponse, reader: AnswerReader) -> Outcome:
        """Pass events on as they come; a stream that breaks ends with an error the client reads."""
        events, content, send = EventStream(reader), response.content, self._send
        broken = False
        try:
            while True:
                chunk, _ = await content.readchunk()
                if chunk:
                    passed = events.feed(chunk)
                    if passed:
                        await send(
                            {"type": "http.response.body", "body": passed, "more_body": True}
                        )
                elif content.at_eof():
                    break
        except TROUBLE:
            broken = True
        rest = b""
        if not reader.complete and (broken or not reader.ended()):
            reader.failed = True
            begun = reader.passage.first_token_at_s is not None
            rest = stream_end(self._door.cut_short(), begun=begun)
        elif not broken:
            rest = events.rest()
        await self._part(rest, more=False)
        return "failed" if reader.failed else "completed"

    async def _whole(self, response: aiohttp.ClientResponse) -> Outcome:
        """Pass on an answer that is not a stream, once it is whole: a cut one becomes an error."""
        kept = bytearray()
        chunks = response.content.iter_any()
        try:
            async for chunk in chunks:
                kept += chunk
                if len(kept) > _WHOLE_LIMIT_BYTES:
                    break
        except TROUBLE as error:
            raise self._door.no_engine("The engine broke off its answer.", status=502) from error
        await self._start(response, sized=True)
        failed = response.status >= 400
        if len(kept) > _WHOLE_LIMIT_BYTES:
            return await self._long(kept, chunks, failed=failed)
        if self._reader is not None and not failed:
            self._reader.whole(bytes(kept))
        await self._part(kept, more=False)
        return "failed" if failed else "completed"

    async def _long(
        self, begun: bytearray, chunks: AsyncIterator[bytes], *, failed: bool
    ) -> Outcome:
        """Pass on an answer too long to hold; one that breaks stays without its end.

        The server closes the connection of an answer that was not ended, and by that the client
        knows: a complete one has its length or its last chunk.
        """
        await self._part(begun)
        try:
            async for chunk in chunks:
                await self._part(chunk)
        except TROUBLE:
            return "failed"
        await self._part(b"", more=False)
        return "failed" if failed else "completed"

    async def _part(self, body: bytes | bytearray, *, more: bool = True) -> None:
        self._answered = not more
        await self._send({"type": "http.response.body", "body": bytes(body), "more_body": more})
