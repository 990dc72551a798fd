"""Limits on connections, where the server is at work before any of our code: heads, and readers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from a40console.gateway.slow_readers import Patience, ReadingWatch, end_when_silent


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """What the head of a request may take."""

    head_bytes: int = 64 * 1024
    """Request line and headers together; Claude Code's take 2 KB."""

    headers: int = 100
    """How many there may be."""

    head_s: float = 30.0
    """How long a head may take, a connection's first from its beginning."""


class LimitedHeads(HttpToolsProtocol):
    """uvicorn's protocol, which by itself waits for ever: for heads, of any size, and readers."""

    limits = HeadLimits()
    patience = Patience()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_head = True
        self._unfinished_bytes = 0
        self._head_bytes = 0
        self._head_headers = 0
        self._refused = False
        self._patience: asyncio.TimerHandle | None = None
        self._reader: ReadingWatch | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        end_when_silent(transport.get_extra_info("socket"), self.patience)
        self._reader = ReadingWatch(transport, self.patience)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._wait_no_longer()
        if self._reader is not None:
            self._reader.has_room()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes less than it is sent: for so long and no longer."""
        super().pause_writing()
        if self._reader is not None:
            self._reader.full()

    def resume_writing(self) -> None:
        """There is room for more."""
        super().resume_writing()
        if self._reader is not None:
            self._reader.has_room()

    def data_received(self, data: bytes) -> None:
        """Read on, as long as the head is not too long."""
        if self._refused:
            return
        super().data_received(data)
        if self._in_head:
            # The parser keeps what it has of a header until it has it all.
            self._unfinished_bytes += len(data)
            if self._unfinished_bytes > self.limits.head_bytes:
                self._refuse(431, "The request's headers are too large.")

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head = True
        self._unfinished_bytes = self._head_bytes = self._head_headers = 0
        if self._patience is None and not self._refused:
            self._wait()

    def on_url(self, url: bytes) -> None:
        """Keep a piece of the address."""
        self._head_bytes += len(url)
        if not self._too_large():
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, unless there are too many."""
        self._head_headers += 1
        self._head_bytes += len(name) + len(value)
        if not self._too_large():
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Serve the request, unless its head was too large."""
        self._wait_no_longer()
        self._in_head = False
        if self._too_large():
            self._refuse(431, "The request's headers are too large.")
        if not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body of a request that is served."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if not self._refused:
            super().on_message_complete()

    def _too_large(self) -> bool:
        limits = self.limits
        return self._head_headers > limits.headers or self._head_bytes > limits.head_bytes

    def _wait(self) -> None:
        self._patience = self.loop.call_later(
            self.limits.head_s, self._refuse, 408, "The request's headers come too slowly."
        )

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _refuse(self, status: int, message: str) -> None:
        """Answer in a shape that callers of both APIs read, and close."""
        self._wait_no_longer()
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        kind = "timeout_error" if status == 408 else "invalid_request_error"
        error = {"type": "error", "error": {"type": kind, "message": message}}
        body = json.dumps(error).encode()
        if self._is_free() and (self._unfinished_bytes or status != 408):
            head = (
                f"HTTP/1.1 {status} {'Request Timeout' if status == 408 else 'Headers Too Large'}"
                f"\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
                "\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()

    def _is_free(self) -> bool:
        """Whether no answer is under way on the connection."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete
