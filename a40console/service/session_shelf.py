"""The sessions' file: written now and then and at the end, read when a service begins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from a40console.files import read_json, write_private
from a40console.gateway.session_store import (
    Frozen,
    KeptSessions,
    file_text,
    frozen,
    in_order,
    records,
)
from a40console.gateway.sessions import SessionBook
from a40console.model.codec import DecodeError, decode

SAVE_EVERY_S = 1.0
"""A killed service loses as much of its sessions; only what changed is frozen anew."""

LARGEST_BYTES = 32 * 1024 * 1024

_Key: TypeAlias = tuple[int, bool]
"""A session's revision, and whether its prompts are kept."""

log = logging.getLogger(__name__)


class SessionShelf:
    """Keeps a book over the service's end.

    Args:
        file: Where; this user's alone.
        book: What is kept.
    """

    def __init__(self, file: Path, book: SessionBook) -> None:
        self._file = file
        self._book = book
        self._texts: dict[str, tuple[_Key, str]] = {}
        self.trouble: str | None = None
        """Why the file could not be written, None while it can."""

    def load(self) -> None:
        """Put what an earlier service knew into the book; a file that is none costs it."""
        try:
            if self._file.stat().st_size > LARGEST_BYTES:
                raise ValueError("it is too large")
            self._book.restore(records(decode(KeptSessions, read_json(self._file))))
        except FileNotFoundError:
            return
        except (OSError, ValueError, DecodeError) as error:
            log.warning("the sessions of before cannot be read: %s: %s", self._file, error)

    async def run(self) -> None:
        """Save whenever something changed, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_EVERY_S)
            await self.save()

    async def save(self) -> None:
        """Write the file if anything changed; a full disk costs the file, and is told once.

        What changed is frozen here and written in a thread: the streams that pass meanwhile must
        not wait.
        """
        kept: dict[str, tuple[_Key, Frozen | str]] = {}
        for record, whole in in_order(self._book.records()):
            key, before = (record.revision, whole), self._texts.get(record.session)
            if before is None or before[0] != key:
                kept[record.session] = key, frozen(record, whole=whole)
            else:
                kept[record.session] = before
        if kept == self._texts:
            return
        try:
            texts = await asyncio.to_thread(self._write, kept)
        except OSError as error:
            if self.trouble is None:
                log.warning("the sessions could not be written: %s", error)
            self.trouble = str(error)
            return
        self.trouble, self._texts = None, texts

    def _write(self, kept: Mapping[str, tuple[_Key, Frozen | str]]) -> dict[str, tuple[_Key, str]]:
        texts = {
            name: (key, told if isinstance(told, str) else told.text())
            for name, (key, told) in kept.items()
        }
        write_private(self._file, file_text(text for _, text in texts.values()))
        return texts
