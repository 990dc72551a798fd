"""One request through the gateway: its body to the engine, the engine's answer to its client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from a40console.gateway.address import written_address
from a40console.gateway.admission import DYING, Admission, SendAgainError
from a40console.gateway.answer import AnswerReader, EventStream, tokens
from a40console.gateway.anthropic.commitment import COMMENT, Outlet, abandon
from a40console.gateway.bodies import Body, declared_length, read_body
from a40console.gateway.clients import client_of, shown
from a40console.gateway.departure import ClientLeftError, unless_left
from a40console.gateway.meter import Outcome, Passage, Route
from a40console.gateway.openai import OpenAIReader, additions_for
from a40console.gateway.opening import (
    TROUBLE,
    EngineDoor,
    EngineRequest,
    expect,
    expect_poll,
    new_request_id,
)
from a40console.gateway.passthrough import Opened, Passthrough
from a40console.gateway.refusals import (
    Grammar,
    Refusal,
    ended_by_operator,
    error_in_stream,
    grammar_of,
    refuse,
    stream_end,
    told_status,
)
from a40console.gateway.session_arrival import plain_arrival
from a40console.gateway.upstream import (
    Upstream,
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
        self._admission = Admission(shared, scope, passage)
        self._outlet: Outlet | None = None
        """Holds the connection of a stream that waits for an engine."""

        self._started = False
        """The client has a head."""

        self._opened = False
        """The client has what stands before an answer's first token."""

        self._begun = False
        """The client has something of the answer itself."""

        self._reader: AnswerReader | None = None
        self._answered = False
        """The last of the answer is on its way."""

    async def run(self) -> Outcome:
        """Serve it, and say how it ended; a client that leaves stops the engine's work at once."""
        shared = self._shared
        try:
            declared = declared_length(self._headers)
            if self._passage:
                expect(shared.gate, shared.state, declared)
            else:
                expect_poll(shared.gate, shared.state)
            body = await read_body(self._receive, declared, shared.budget, shared.limits)
            try:
                exchange = self._exchange(body)
                return await unless_left(self._receive, exchange, lambda: self._answered)
            finally:
                self._admission.over()
                body.discard()
        except Refusal as refusal:
            return await self._refuse(refusal)
        except ClientLeftError:
            return "aborted"

    async def _refuse(self, refusal: Refusal) -> Outcome:
        if self._passage and self._passage.is_stopped:
            refusal = ended_by_operator()
        if self._started:
            return await self._fail(stream_end(refusal.message, begun=False))
        if self._passage:
            self._passage.status = told_status(self._grammar, refusal.status)
        answer = refuse(self._grammar, refusal, self._told_id)
        await answer(self._scope, self._receive, self._send)
        return "failed"

    async def _fail(self, events: bytes) -> Outcome:
        """End a stream that has a head with an error."""
        if self._passage:
            self._passage.status = 200
        await self._part(events, more=False)
        return "failed"

    async def _exchange(self, body: Body) -> Outcome:
        try:
            while True:
                try:
                    return await self._attempt(body)
                except SendAgainError:
                    self._admission.begin_again()
        finally:
            if self._outlet is not None:
                await self._outlet.close()

    async def _attempt(self, body: Body) -> Outcome:
        held = self._passage is not None and not self._shared.gate.is_free
        if held and self._outlet is None and body.values(("stream",)).get("stream") is True:
            self._hold_connection()
        if self._outlet is None:
            opened = await self._open(body)
        else:
            opened = await self._held_open(self._outlet, body)
        try:
            return await self._answer(opened)
        finally:
            opened.close()

    async def _held_open(self, outlet: Outlet, body: Body) -> Opened:
        opening = asyncio.create_task(self._open(body))
        try:
            return await outlet.in_time(opening)
        except BaseException:
            await abandon(opening)
            raise
        finally:
            self._started = self._started or outlet.committed

    def _hold_connection(self) -> None:
        """From here on let the client wait as long as need be."""
        outlet = Outlet(self._send, self._told_id, self._shared.timing, ping=COMMENT)
        self._outlet, self._send = outlet, outlet.passing
        if self._started:
            outlet.keep_alive()

    async def _open(self, body: Body) -> Opened:
        if self._passage:
            await self._admission.enter(body)
        else:
            await self._admission.enter_unserved(body)
        upstream = self._door.engine()
        if self._passage:
            self._reader = await self._prepare(self._passage, upstream, body)
        lease = await self._shared.sessions.take(upstream.endpoint)
        try:
            asking = self._asking(upstream, body)
            response = await self._door.open(lease.session, asking, body)
        except Refusal as refusal:
            lease.end()
            if await self._admission.lost(upstream, answered=False):
                raise SendAgainError from refusal
            raise self._door.by_now(refusal) from refusal
        except BaseException:
            lease.end()
            raise
        return Opened(upstream, lease, response)

    async def _answer(self, opened: Opened) -> Outcome:
        response, reader = opened.response, self._reader
        streams = response.content_type == "text/event-stream" and response.status < 400
        if reader is not None and streams:
            await self._start(response, sized=False)
            return await self._stream(opened, reader)
        if response.status in DYING:
            if await self._admission.lost(opened.upstream, answered=True):
                raise SendAgainError
            if self._shared.state.current() is None:  # its last words tell nobody what to do
                raise self._door.by_now(Refusal(response.status, "The engine ended."))
        return await self._whole(opened)

    async def _prepare(self, passage: Passage, upstream: Upstream, body: Body) -> AnswerReader:
        """Read what the body asks for, and add what is needed to count the answer."""
        shared = self._shared
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
        if self._admission.again:
            shared.book.resent(passage)
        else:
            shared.book.arrived(passage, arrival)
            shared.book.captures.asked(passage, body.whole)
        additions = additions_for(upstream, asked)
        changes: dict[str, object] = {} if additions.member is None else dict([additions.member])
        name = await shared.names.instead(shared.sessions, upstream, passage, asked.get("model"))
        if name is not None:
            changes["model"] = name
        if changes:
            body.set_values(changes)
        return OpenAIReader(shared.meter, passage, additions)

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
        self._started = True
        await self._send(head)
        if self._outlet is not None and not sized:
            self._outlet.keep_alive()

    async def _stream(self, opened: Opened, reader: AnswerReader) -> Outcome:
        """Pass events on as they come; a stream that breaks ends with an error the client reads."""
        events = EventStream(reader)
        broken = False
        try:
            await self._pump(events, opened, reader)
        except TROUBLE:
            broken = True
        rest = b""
        if not reader.complete and (broken or not reader.ended()):
            await self._unless_lost(opened, answered=False)
            reader.failed = True
            begun = reader.passage.first_token_at_s is not None
            rest = stream_end(self._door.cut_short(), begun=begun)
        elif not broken:
            rest = events.rest()
        await self._part(rest, more=False)
        return "failed" if reader.failed else "completed"

    async def _pump(self, events: EventStream, opened: Opened, reader: AnswerReader) -> None:
        content, send = opened.response.content, self._send
        while True:
            chunk, _ = await content.readchunk()
            if chunk:
                passed = events.feed(chunk)
                if passed and not self._begun:
                    passed = await self._opening(passed, opened, reader)
                if passed:
                    await send({"type": "http.response.body", "body": passed, "more_body": True})
            elif content.at_eof():
                return

    async def _opening(self, events: bytes, opened: Opened, reader: AnswerReader) -> bytes:
        """What goes out of these events, the first of an answer; what opens it goes out once."""
        if reader.failed:
            await self._unless_lost(opened, answered=True)
        if reader.passage.first_token_at_s is not None or reader.failed or reader.ended():
            self._begun = True
            self._admission.begun()
        elif self._opened and self._admission.again:
            return b""
        self._opened = True
        return events

    async def _unless_lost(self, opened: Opened, *, answered: bool) -> None:
        """See that a stream of which the client has no token need not begin again.

        `answered` where it ends in words of the engine's own.

        Raises:
            SendAgainError: If it is to.
        """
        if self._begun:
            return
        if self._outlet is None:
            self._hold_connection()  # to find out may take long
        if await self._admission.lost(opened.upstream, answered=answered):
            raise SendAgainError

    async def _whole(self, opened: Opened) -> Outcome:
        """Pass on an answer that is not a stream, once it is whole: a cut one becomes an error."""
        response = opened.response
        kept = bytearray()
        chunks = response.content.iter_any()
        try:
            async for chunk in chunks:
                kept += chunk
                if len(kept) > _WHOLE_LIMIT_BYTES:
                    break
        except TROUBLE as error:
            if await self._admission.lost(opened.upstream, answered=False):
                raise SendAgainError from error
            raise self._door.no_engine("The engine broke off its answer.", status=502) from error
        if self._started:
            return await self._fail(error_in_stream(response.status, bytes(kept)))
        self._admission.begun()
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
