"""The newest snapshot, encoded once; readers wait for the next one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from a40console.errors import NoServiceError
from a40console.model.codec import encode
from a40console.model.figures import Figure, Missing
from a40console.model.snapshot import Snapshot


class Board:
    """Where the service pins its newest snapshot."""

    def __init__(self) -> None:
        self._line: bytes | None = None
        self._changed = asyncio.Event()
        self._closed = False
        self.snapshot: Snapshot | None = None

    def close(self) -> None:
        """End every reader's stream."""
        self._closed = True
        self._changed.set()

    def window_tokens(self) -> Figure:
        """The engine's window, as the newest snapshot has it."""
        return self.snapshot.engine.max_model_len if self.snapshot else Missing("not read yet")

    def pin(self, snapshot: Snapshot) -> None:
        """Publish a snapshot."""
        self.snapshot = snapshot
        self._line = json.dumps(encode(snapshot), separators=(",", ":"), allow_nan=False).encode()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def newest(self) -> bytes:
        """The newest snapshot as JSON, waiting for the first one.

        Raises:
            NoServiceError: If the service ends before there is one.
        """
        while self._line is None:
            if self._closed:
                raise NoServiceError("The service stops", remedy="Start it again: a40console serve")
            await self._changed.wait()
        return self._line

    async def lines(self) -> AsyncIterator[bytes]:
        """Snapshots as NDJSON lines; a slow reader misses some rather than falling behind."""
        line = await self.newest()
        while not self._closed:
            yield line + b"\n"
            await self._changed.wait()
            line = self._line or line
