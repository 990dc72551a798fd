"""POST /v1/messages, from the client's body to the last byte of its answer, by either route."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import aiohttp
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from a40console.gateway.address import written_address
from a40console.gateway.admission import DYING, Admission, SendAgainError
from a40console.gateway.anthropic.answers import Answer, NativeAnswer, TranslatedAnswer
from a40console.gateway.anthropic.asked import Asked, read_asked
from a40console.gateway.anthropic.commitment import Outlet, abandon
from a40console.gateway.anthropic.doors import MessagesDoors, OpenMessage, Question
from a40console.gateway.anthropic.failures import (
    OverflowRefusal,
    error_event,
    refusal_of,
    told_late,
)
from a40console.gateway.anthropic.guard import Guard
from a40console.gateway.anthropic.shape import CHARACTERS_PER_TOKEN
from a40console.gateway.anthropic.stream import MessagesReader
from a40console.gateway.anthropic.whole import whole_message
from a40console.gateway.bodies import Body, declared_length, read_body
from a40console.gateway.clients import client_of, shown
from a40console.gateway.departure import ClientLeftError, unless_left
from a40console.gateway.dialect import Dialect
from a40console.gateway.meter import Outcome, Passage
from a40console.gateway.openai import OpenAIReader, additions_for
from a40console.gateway.opening import (
    TROUBLE,
    EngineDoor,
    EngineRequest,
    expect,
    new_request_id,
)
from a40console.gateway.refusals import Refusal, ended_by_operator, refuse
from a40console.gateway.translation import ChatToMessages, to_chat, to_native
from a40console.gateway.upstream import (
    Lease,
    Upstream,
    request_headers,
    upstream_url,
)

log = logging.getLogger(__name__)

_MESSAGES, _CHAT = "/v1/messages", "/v1/chat/completions"
_WHOLE_LIMIT_BYTES = 32 * 1024 * 1024
_ERROR_LIMIT_BYTES = 256 * 1024

_OUR_FAULT = "The gateway failed on this request. Send it again; its log has the details."


class MessagesRoute:
    """ASGI endpoint: a message, counted from its arrival to its last byte."""

    def __init__(self, doors: MessagesDoors) -> None:
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        doors = self._doors
        passage = doors.meter.accept("messages", new_request_id())
        headers = Headers(scope=scope)
        passage.client = client_of(headers.get("user-agent"))
        outcome: Outcome = "failed"
        captures = doors.book.captures
        send = captures.tapped(passage, send)
        try:
            outcome = await MessagesExchange(doors, scope, receive, send, passage).run()
        finally:
            doors.meter.end(passage, outcome)
            doors.book.ended(passage)
            captures.ended(passage)


class MessagesExchange:
    """One message asked for, and its answer."""

    def __init__(
        self, doors: MessagesDoors, scope: Scope, receive: Receive, send: Send, passage: Passage
    ) -> None:
        self._doors = doors
        self._scope = scope
        self._receive = receive
        self._send = send
        self._passage = passage
        self._headers = Headers(scope=scope)
        self._told_id = shown(self._headers.get("x-request-id")) or passage.request_id
        self._door = EngineDoor(doors.state, doors.meter.clock, passage)
        self._outlet = Outlet(send, self._told_id, doors.timing)
        self._admission = Admission(doors, scope, passage)
        self._started = False
        """The client has the start of a message."""

    async def run(self) -> Outcome:
        """Serve it, and say how it ended; a client that leaves stops the engine's work at once."""
        try:
            declared = declared_length(self._headers)
            expect(self._doors.gate, self._doors.state, declared)
            body = await read_body(self._receive, declared, self._doors.budget, self._doors.limits)
            try:
                outlet = self._outlet
                exchange = self._exchange(body)
                return await unless_left(self._receive, exchange, lambda: outlet.finished)
            finally:
                self._admission.over()
                body.discard()
        except Refusal as refusal:
            self._passage.status = refusal.status
            answer = refuse("anthropic", refusal, self._told_id)
            await answer(self._scope, self._receive, self._send)
            return "failed"
        except ClientLeftError:
            return "aborted"

    async def _exchange(self, body: Body) -> Outcome:
        """Ask the engine; a stream has its status by then, or after so many seconds without."""
        stream = body.values(("stream",)).get("stream") is True
        try:
            while True:
                try:
                    return await self._attempt(body, stream=stream)
                except SendAgainError:
                    self._admission.begin_again()
        except Refusal as found:
            refusal = ended_by_operator() if self._passage.is_stopped else found
            if isinstance(refusal, OverflowRefusal):
                self._doors.book.overflowed(self._passage)
            if not self._outlet.committed:
                raise refusal from found.__cause__
            await self._fail(*told_late(refusal))
            return "failed"
        except Exception:
            # Whatever it was, the client must not take what it has for the whole answer.
            if self._outlet.committed:
                await self._fail("api_error", _OUR_FAULT)
            raise
        finally:
            await self._outlet.close()

    async def _attempt(self, body: Body, *, stream: bool) -> Outcome:
        opening = asyncio.create_task(self._open(body))
        try:
            opened = await (self._outlet.in_time(opening) if stream else opening)
            if stream:
                self._passage.status = 200
            return await (self._stream if opened.question.stream else self._whole)(opened)
        finally:
            await abandon(opening)

    # --- the question ----------------------------------------------------------------------------

    async def _open(self, body: Body) -> OpenMessage:
        await self._admission.enter(body)
        upstream = self._door.engine()
        lease = await self._doors.sessions.take(upstream.endpoint)
        try:
            question, request = await self._asking(body, upstream)
            response = await self._answered(lease, request, body, upstream)
            try:
                await self._check(response, question, upstream)
            except BaseException:
                response.close()
                raise
        except BaseException:
            lease.end()
            raise
        return OpenMessage(upstream, lease, response, question)

    async def _asking(self, body: Body, upstream: Upstream) -> tuple[Question, EngineRequest]:
        dialect = await self._doors.dialects.of(upstream)
        read = (body, upstream, dialect)
        asked, dialect, engines = await self._doors.reading.read(
            body, partial(self._read_question, *read)
        )
        question = self._take(body, asked, upstream, dialect, engines)
        return question, self._request(upstream, dialect, body.length)

    async def _answered(
        self, lease: Lease, request: EngineRequest, body: Body, upstream: Upstream
    ) -> aiohttp.ClientResponse:
        try:
            return await self._door.open(lease.session, request, body)
        except Refusal as refusal:
            if await self._admission.lost(upstream, answered=False):
                raise SendAgainError from refusal
            raise self._door.by_now(refusal) from refusal

    def _read_question(
        self, body: Body, upstream: Upstream, dialect: Dialect
    ) -> tuple[Asked, Dialect, bytes]:
        """What the client asks, and how the engine is asked the same."""
        asked = read_asked(body.whole(), self._headers, written_address(self._scope), dialect)
        dialect = dialect.for_body(asked.body)
        if dialect.route == "native":
            return asked, dialect, _as_json(to_native(asked.body, dialect))
        chat = to_chat(asked.body, dialect)
        added = additions_for(upstream, chat)
        if added.member is not None:
            chat |= dict([added.member])
        return asked, dialect, _as_json(chat)

    def _take(
        self, body: Body, asked: Asked, upstream: Upstream, dialect: Dialect, engines: bytes
    ) -> Question:
        """Note the request, put what the engine is asked in its place, and say how to read on."""
        meter, passage, book = self._doors.meter, self._passage, self._doors.book
        body.rewrite(engines)
        passage.model, passage.max_tokens = shown(asked.model), asked.max_tokens
        if self._admission.again:
            book.resent(passage)
        else:
            book.arrived(passage, asked)
            book.captures.asked(passage, lambda: engines)
        estimate = sum(block.characters for block in asked.outline) // CHARACTERS_PER_TOKEN
        guard = Guard(
            model=asked.model,
            request_id=self._told_id,
            prompt_estimate=estimate,
            called=lambda name, identity: book.called(passage, name, identity),
            started=self._started,
        )
        if dialect.route == "native":
            broken_off = upstream.kind == "vllm"
            reader = MessagesReader(meter, passage)
            answer: Answer = NativeAnswer(reader, guard, null_is_broken_off=broken_off)
        else:
            chat = ChatToMessages(asked.model or dialect.served_name, f"msg_{self._told_id}")
            answer = TranslatedAnswer(OpenAIReader(meter, passage), guard, chat)
        return Question(answer, asked.stream, asked.model, estimate)

    def _request(self, upstream: Upstream, dialect: Dialect, length: int) -> EngineRequest:
        endpoint, native = upstream.endpoint, dialect.route == "native"
        headers = request_headers(
            self._scope["headers"], endpoint, self._passage.request_id, length
        )
        headers["Content-Type"] = "application/json"
        query = self._scope["query_string"] if native else b""
        return EngineRequest(
            "POST", upstream_url(endpoint, _MESSAGES if native else _CHAT, query), headers
        )

    async def _check(
        self, response: aiohttp.ClientResponse, question: Question, upstream: Upstream
    ) -> None:
        """Nothing but a good answer of the kind that was asked for goes on."""
        streams = response.content_type == "text/event-stream"
        if 200 <= response.status < 300 and streams is question.stream:
            return
        dying = response.status in DYING
        if dying and await self._admission.lost(upstream, answered=True):
            raise SendAgainError
        refusal = refusal_of(
            response.status,
            await self._held(response, _ERROR_LIMIT_BYTES),
            retry_after=response.headers.get("retry-after"),
            prompt_estimate=question.prompt_estimate,
        )
        raise self._door.by_now(refusal) if dying else refusal

    # --- the answer ------------------------------------------------------------------------------

    async def _fail(self, kind: str, message: str) -> None:
        self._passage.status = 200
        await self._outlet.finish(error_event(kind, message, self._told_id))

    async def _stream(self, opened: OpenMessage) -> Outcome:
        """Pass events on as they come, to the end that the guard has seen."""
        await self._outlet.commit()
        answer = opened.question.answer
        guard, broken, last = answer.guard, False, b""
        try:
            last = await self._pump(answer, opened.response.content)
        except TROUBLE:
            broken = True
        if guard.failed or not guard.ended:
            await self._unless_lost(opened)
        if not guard.ended:
            last = answer.end(self._door.cut_short(), broken=broken)
        await self._outlet.finish(last)
        if guard.dropped:
            told = "%d events of the answer to %s could not be read and were left out"
            log.warning(told, guard.dropped, self._passage.request_id)
        return "failed" if guard.failed else "completed"

    async def _pump(self, answer: Answer, content: aiohttp.StreamReader) -> bytes:
        """Pass on all but the last events, which are returned."""
        guard, outlet, begun = answer.guard, self._outlet, False
        while True:
            chunk, _ = await content.readchunk()
            if chunk:
                events = answer.feed(chunk)
                if guard.ended:
                    return events
                if events:
                    if not begun:
                        begun = self._opening(guard)
                    await outlet.write(events)
            elif content.at_eof():
                return b""

    def _opening(self, guard: Guard) -> bool:
        """The first events of an answer go out: whether the first token is among them."""
        self._started = guard.started
        begun = self._has_begun(guard)
        if begun:
            self._admission.begun()
        return begun

    def _has_begun(self, guard: Guard) -> bool:
        return guard.begun or self._passage.first_token_at_s is not None

    async def _unless_lost(self, opened: OpenMessage) -> None:
        """See that a stream of which the client has no token need not begin again.

        Raises:
            SendAgainError: If it is to.
        """
        guard = opened.question.answer.guard
        if not self._has_begun(guard) and await self._admission.lost(
            opened.upstream, answered=guard.ended
        ):
            raise SendAgainError

    async def _whole(self, opened: OpenMessage) -> Outcome:
        """Pass on an answer that is not a stream, once it is whole and made a message."""
        try:
            body = await self._held(opened.response, _WHOLE_LIMIT_BYTES)
        except Refusal as refusal:
            if await self._admission.lost(opened.upstream, answered=False):
                raise SendAgainError from refusal
            raise self._door.by_now(refusal) from refusal
        found = opened.question.answer.whole(body)
        if self._passage.is_stopped:
            raise ended_by_operator()
        if found is not None and found.get("type") == "error":
            if await self._admission.lost(opened.upstream, answered=True):
                raise SendAgainError
            raise refusal_of(500, _as_json(found))
        message = None if found is None else self._message(found, opened.question)
        if message is None:
            raise refusal_of(200, body)
        told = self._told_id.encode("latin-1")
        text = _as_json(message)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(text)).encode()),
            (b"request-id", told),
            (b"x-request-id", told),
        ]
        self._passage.status = 200
        head = {"type": "http.response.start", "status": 200, "headers": headers}
        await self._outlet.whole(head, text)
        return "completed"

    def _message(self, found: Mapping[str, Any], question: Question) -> dict[str, Any] | None:
        book, passage = self._doors.book, self._passage
        return whole_message(
            found,
            model=question.model,
            request_id=self._told_id,
            prompt_estimate=question.prompt_estimate,
            called=lambda name, identity: book.called(passage, name, identity),
        )

    async def _held(self, response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
        """A body to its end, or as far as it may go."""
        kept = bytearray()
        try:
            async for chunk in response.content.iter_any():
                kept += chunk
                if len(kept) > limit_bytes:
                    break
        except TROUBLE as error:
            raise self._door.no_engine("The engine broke off its answer.", status=502) from error
        return bytes(kept[:limit_bytes])


def _as_json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can carry
        return json.dumps(value, separators=(",", ":")).encode()
