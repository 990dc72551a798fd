"""Clients that no longer read: their connections end, and the engine's work for them with them."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from termios import TIOCOUTQ
from typing import Any


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client may take nothing of what it is sent."""

    reading_s: float = 120.0
    """So long a client may take nothing of an answer that fills its buffer; a slow one does."""

    silent_s: float = 120.0
    """So long may the other machine acknowledge nothing: it sleeps, or its network is gone."""


KEEPALIVE_PROBES = 4


def end_when_silent(connection: Any, patience: Patience) -> None:
    """Let the kernel end a TCP connection whose other machine is gone, idle or not."""
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    between_s = max(1, round(patience.silent_s / (KEEPALIVE_PROBES + 1)))
    wanted = (
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, between_s),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, between_s),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES),
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(patience.silent_s * 1000)),
    )
    with suppress(OSError):  # it may be gone already
        for level, option, value in wanted:
            connection.setsockopt(level, option, value)


class ReadingWatch:
    """Ends a connection of whose full buffer nothing is taken; costs nothing while it has room.

    Args:
        transport: The connection.
        patience: How long nothing may be taken.
    """

    def __init__(self, transport: asyncio.Transport, patience: Patience) -> None:
        self._transport = transport
        self._patience = patience
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_bytes = 0

    def full(self) -> None:
        """The client takes less than it is sent."""
        if self._timer is None:
            self._look_later()

    def has_room(self) -> None:
        """There is room for more again, or it is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        self._waiting_bytes = self._waiting()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._patience.reading_s, self._look)

    def _look(self) -> None:
        """The kernel's buffer is megabytes: a slow client may need minutes to make room in ours."""
        if self._waiting() < self._waiting_bytes:
            self._look_later()
        else:
            self._transport.abort()

    def _waiting(self) -> int:
        """Bytes that the client has not taken yet, the kernel's among them."""
        ours, kernels = self._transport.get_write_buffer_size(), bytearray(4)
        with suppress(OSError):
            fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), TIOCOUTQ, kernels)
        return ours + int.from_bytes(kernels, sys.byteorder)
