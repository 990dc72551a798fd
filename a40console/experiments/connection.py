"""HTTP/1.1 over one socket, written for stamps: a piece is stamped before anything parses it.

A library's client hands a body on through its own buffers and tasks, and whatever else is ready
then comes before the stamp. Here the time is taken as the loop reads the socket; what a piece means
is read later, once every socket that is ready has been read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol, cast

import httptools

LONGEST_HEAD_BYTES = 256 * 1024
"""Of status and headers: what is longer never ends."""


class Receiver(Protocol):
    """Takes what comes back."""

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Status and headers, names in lower case; before any piece."""

    def piece(self, at_s: float, data: bytes) -> None:
        """A piece of the body, and when it came; raises ExchangeError to hear no more."""


class ExchangeError(Exception):
    """No whole answer came; the text says why."""


class ClosedWhileIdleError(ExchangeError):
    """A connection that had carried an answer was closed before a byte of the next one came.

    The server had closed it as nothing went over it: nothing was done with the request.
    """


class Exchange:
    """One request's answer on its way."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.status = 0
        self.last_s: float | None = None
        """When the last piece of the body came."""

        self._loop = asyncio.get_running_loop()
        self.finished: asyncio.Future[None] = self._loop.create_future()
        """Done when the receiver has the whole body, or with an `ExchangeError`."""

        self._pieces: deque[tuple[float, bytes]] = deque()
        self._end: ExchangeError | None = None
        self._over = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """The head came."""
        self.status = status
        self.receiver.head(status, headers)

    def put(self, at_s: float, piece: bytes) -> None:
        """A piece of the body came."""
        self.last_s = at_s
        if not self._pieces:
            self._loop.call_soon(self._drain)
        self._pieces.append((at_s, piece))

    def end(self, error: ExchangeError | None = None) -> None:
        """Nothing more comes."""
        if self._over:
            return
        self._over, self._end = True, error
        if not self._pieces:
            self._settle()

    def _drain(self) -> None:
        while self._pieces:
            try:
                self.receiver.piece(*self._pieces.popleft())
            except ExchangeError as error:
                self._pieces.clear()
                self._over, self._end = True, error
        if self._over:
            self._settle()

    def _settle(self) -> None:
        if self.finished.done():
            return
        if self._end is None:
            self.finished.set_result(None)
        else:
            self.finished.set_exception(self._end)


class Connection(asyncio.Protocol):
    """One connection, which carries one exchange after another."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._exchange: Exchange | None = None
        self._headers: dict[str, str] = {}
        self._at_s = 0.0
        self._parser = httptools.HttpResponseParser(self)
        self._kept = False
        self._head_bytes = 0
        self._carried = 0
        """Answers that came over it whole."""

        self.idle_since_s: float | None = None
        """Since when it waits for its next exchange; None while it does not, or cannot any more."""

    def ask(self, head: bytes, body: bytes, exchange: Exchange) -> float:
        """Send a request, and say when."""
        self._parser = httptools.HttpResponseParser(self)
        self._exchange, self._kept, self.idle_since_s = exchange, False, None
        self._head_bytes = 0
        sent_s = self._clock()
        self._transport.write(head + body)
        return sent_s

    def close(self) -> None:
        """Close at once; what was under way does not end whole."""
        self.idle_since_s = None
        self._transport.abort()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        self._transport = cast("asyncio.Transport", transport)
        self.idle_since_s = self._clock()

    def data_received(self, data: bytes) -> None:
        """Bytes were read from the socket."""
        self._at_s = self._clock()
        if self._exchange is None:
            self.close()  # nobody asked
            return
        self._head_bytes += 0 if self._exchange.status else len(data)
        if self._head_bytes > LONGEST_HEAD_BYTES:
            self._over(ExchangeError("the answer's head does not end"))
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._over(ExchangeError(f"the answer is no HTTP: {error}"))
            self.close()

    def eof_received(self) -> bool:
        """The server sends nothing more; we close too."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed; an answer whose length nobody told ends with it."""
        self.idle_since_s = None
        exchange = self._exchange
        if exchange is None:
            return
        if error is None and exchange.status and self._ends_by_closing():
            self._over(None)
            return
        when = "in the middle of the answer" if exchange.status else "before it answered"
        idle = self._carried and not exchange.status
        kind = ClosedWhileIdleError if idle else ExchangeError
        self._over(kind(f"the connection was closed {when}" + _because(error)))

    # What the parser calls.

    def on_message_begin(self) -> None:
        """A head begins; after an interim answer (1xx) a second one."""
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; the last of equal ones stands."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is whole."""
        status = self._parser.get_status_code()
        if self._exchange is None or status < 200:
            return
        self._exchange.begin(status, self._headers)

    def on_body(self, piece: bytes) -> None:
        """A part of the body, freed of its framing."""
        if self._exchange is not None:
            self._exchange.put(self._at_s, piece)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._exchange is None or self._parser.get_status_code() < 200:
            return
        self._kept = self._parser.should_keep_alive()
        self._over(None)

    def _over(self, error: ExchangeError | None) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.end(error)
        if error is None and self._kept:
            self._carried += 1
            self.idle_since_s = self._clock()

    def _ends_by_closing(self) -> bool:
        return _unmeasured(self._headers)


def _unmeasured(headers: Mapping[str, str]) -> bool:
    chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
    return "content-length" not in headers and not chunked


def _because(error: Exception | None) -> str:
    return f": {error}" if error is not None and str(error) else ""
