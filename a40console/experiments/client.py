"""The client of every experiment: streams timed at the socket, tokens from usage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from a40console.experiments.answer import NO_CONTENT
from a40console.experiments.bench import Reply, Request, RunStoppedError
from a40console.experiments.connection import ClosedWhileIdleError, Exchange, ExchangeError
from a40console.experiments.response_reading import ResponseReading
from a40console.experiments.server_address import Connections, server_address
from a40console.model.figures import Figure, Missing
from a40console.model.run import Dialect
from a40console.model.run_record import Sample

STOPPED = "the run was stopped"
"""The error of a request that was under way as the run was stopped."""

COUNT_ROLE = "count"
"""Of a request that counts tokens: no counter of a server takes it for a request."""

NOT_STREAMED = Missing("it was not streamed")
_FAILED = Missing("the request failed")
_DIGITS = 6


@dataclass(slots=True)
class _Attempt:
    """One request on its way."""

    request: Request
    due_s: float
    reading: ResponseReading
    sent_s: float | None = None
    status: int = 0
    last_s: float | None = None
    """When the last byte of any kind came."""


class LoadClient:
    """Sends requests to one server, as many at once as it is told to.

    Latencies count from when a request was due, so whatever holds it up in here is in them. They
    end with the last content, not with what closes the stream. Whatever goes wrong is the sample's
    error, and such a sample has no latencies.
    """

    def __init__(
        self,
        base_url: str,
        *,
        socket_path: str = "",
        token: str = "",
        dialect: Dialect = "openai",
        clock: Callable[[], float],
        record: Callable[[Sample], None],
        stop: asyncio.Event,
    ) -> None:
        """Open nothing yet.

        Args:
            base_url: `http://HOST:PORT`, with or without `/v1`; for a socket any host.
            socket_path: A Unix socket to use instead of the address.
            token: The server's key; told to nobody else.
            dialect: Which credentials the server reads; what is sent, each request's path says.
            clock: The run's clock, in seconds; no loop's, uvloop's ticks in milliseconds.
            record: Takes every sample.
            stop: Ends what is in flight once it is set.

        Raises:
            ValueError: If `base_url` is no address.
        """
        address = server_address(base_url, socket_path=socket_path, token=token, dialect=dialect)
        self._address = address
        self._connections = Connections(address, clock)
        self._clock = clock
        self._record = record
        self._stop = stop
        self._stopping: asyncio.Task[bool] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that are open and idle."""
        self._connections.close()
        if self._stopping is not None:
            self._stopping.cancel()
            await asyncio.wait({self._stopping})
            self._stopping = None

    async def send(self, request: Request) -> Reply:
        """One request, streamed; whatever goes wrong is in the sample.

        Raises:
            RunStoppedError: Where the run was stopped meanwhile.
        """
        return await self._ask(request, streamed=True)

    async def send_whole(self, request: Request) -> Reply:
        """One request that is not streamed; its sample has no time to first token.

        Raises:
            RunStoppedError: Where the run was stopped meanwhile.
        """
        return await self._ask(request, streamed=False)

    async def closed(self, streams: Sequence[Sequence[Request]]) -> Sequence[Reply]:
        """Several streams at once, each sending its next request when its last one ended.

        Returns:
            The replies, stream after stream.

        Raises:
            RunStoppedError: Where the run was stopped meanwhile.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._stream(stream)) for stream in streams]
        replies = [task.result() for task in tasks]
        if any(each is None for each in replies):
            raise RunStoppedError(STOPPED)
        return [reply for each in replies for reply in each or ()]

    async def _stream(self, requests: Sequence[Request]) -> list[Reply] | None:
        """Its replies; None where the run was stopped."""
        try:
            return [await self.send(request) for request in requests]
        except RunStoppedError:
            return None

    async def _ask(self, request: Request, *, streamed: bool) -> Reply:
        due_s = self._clock() if request.due_s is None else request.due_s
        if self._stop.is_set():
            raise RunStoppedError(STOPPED)
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop.wait())
        attempt = _Attempt(request, due_s, ResponseReading(request.path, streamed=streamed))
        work = asyncio.create_task(self._perform(attempt, _body(request, streamed=streamed)))
        try:
            await asyncio.wait({work, self._stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped = work.cancel()
            if stopped:
                attempt.reading.answer.fail(STOPPED)
                await asyncio.wait({work})
        if not stopped:
            work.result()  # our own fault is no fault of the server
        if attempt.sent_s is None and stopped:
            raise RunStoppedError(STOPPED)
        reply = self._reply(attempt, streamed=streamed)
        self._record(reply.sample)
        if stopped:
            raise RunStoppedError(STOPPED)
        return reply

    async def _perform(self, attempt: _Attempt, body: bytes) -> None:
        """Wait until it is due, send it, read the answer."""
        wait_s = attempt.due_s - self._clock()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        answer = attempt.reading.answer
        try:
            async with asyncio.timeout(attempt.request.timeout_s):
                await self._exchange(attempt, body)
        except TimeoutError:
            answer.fail(f"the answer did not end within {attempt.request.timeout_s:g} s")
        except ExchangeError as error:
            answer.fail(str(error))

    async def _exchange(self, attempt: _Attempt, body: bytes) -> None:
        try:
            await self._exchange_over(attempt, body, fresh=False)
        except ClosedWhileIdleError:
            # llama.cpp's server promises to keep a connection and closes it after a stream.
            await self._exchange_over(attempt, body, fresh=True)

    async def _exchange_over(self, attempt: _Attempt, body: bytes, *, fresh: bool) -> None:
        request, reading = attempt.request, attempt.reading
        head = self._address.head(request.path, len(body), request.headers)
        connection = await self._connections.take(fresh=fresh)
        exchange = Exchange(reading)
        try:
            attempt.sent_s = connection.ask(head, body, exchange)
            await exchange.finished
            reading.end(exchange.status, exchange.last_s or attempt.sent_s)
        finally:
            attempt.status, attempt.last_s = exchange.status, exchange.last_s
            self._connections.give_back(connection)

    def _reply(self, attempt: _Attempt, *, streamed: bool) -> Reply:
        answer, request = attempt.reading.answer, attempt.request
        error = self._address.hidden(answer.error)
        sent_s = attempt.due_s if attempt.sent_s is None else attempt.sent_s
        first_s = answer.first_s if streamed else None
        last_s = answer.last_s if streamed else attempt.last_s
        sample = Sample(
            arm=request.arm,
            repeat=request.repeat,
            index=request.index,
            warm_up=request.warm_up,
            due_s=round(attempt.due_s, _DIGITS),
            sent_s=round(sent_s, _DIGITS),
            ttft_s=_since(attempt.due_s, first_s, error, NO_CONTENT if streamed else NOT_STREAMED),
            total_s=_since(attempt.due_s, last_s, error, NO_CONTENT),
            gaps_s=() if error else answer.gaps_s(),
            prompt_tokens=answer.prompt_tokens,
            cached_tokens=answer.cached_tokens,
            generated_tokens=answer.generated_tokens,
            error=error,
            role=COUNT_ROLE if request.path.endswith("/count_tokens") else request.role,
        )
        return Reply(
            sample=sample,
            text=answer.text,
            status=attempt.status,
            events=tuple(answer.events),
            blocks=answer.whole_blocks(),
            stop_reason=answer.stop_reason,
            logprobs=tuple(answer.logprobs),
        )


def _since(due_s: float, at_s: float | None, error: str, otherwise: Missing) -> Figure:
    if error:
        return _FAILED
    return otherwise if at_s is None else round(at_s - due_s, _DIGITS)


def _body(request: Request, *, streamed: bool) -> bytes:
    sent: Mapping[str, Any] = request.body
    if streamed:
        sent = {**sent, "stream": True}
        if "/messages" not in request.path:
            sent |= {"stream_options": {"include_usage": True}}
    return json.dumps(sent, ensure_ascii=False).encode(errors="replace")
