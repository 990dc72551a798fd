"""The journal: what happened, kept in a file so that ids and history survive the service."""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from a40console.model.codec import DecodeError, decode, encode
from a40console.model.event import Event, Severity

KEPT_IN_MEMORY = 1000
FILE_LIMIT_BYTES = 4 * 1024 * 1024
_TAIL_BYTES = 512 * 1024

log = logging.getLogger(__name__)


def now() -> str:
    """This instant, ISO 8601 with milliseconds, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Journal:
    """Appends events to a file and keeps the newest in memory.

    A disk that does not take an entry costs its permanence, not the entry: what could not be
    written is tried again with the next one, and by `retry`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: deque[Event] = deque(_read_tail(path), maxlen=KEPT_IN_MEMORY)
        self._unwritten: deque[Event] = deque(maxlen=KEPT_IN_MEMORY)
        self._last_id = self._events[-1].id if self._events else 0
        self.trouble: str | None = None
        """Why the file does not take entries, None while it does."""

    @property
    def last_id(self) -> int:
        """Id of the newest event, 0 before the first."""
        return self._last_id

    def record(
        self,
        kind: str,
        text: str,
        severity: Severity = "info",
        data: Mapping[str, str] | None = None,
    ) -> Event:
        """Write down what happened, now."""
        self._last_id += 1
        event = Event(
            id=self._last_id,
            at=now(),
            kind=kind,
            text=text,
            severity=severity,
            data=dict(data or {}),
        )
        self._events.append(event)
        self._unwritten.append(event)
        log.info("%s: %s", kind, text)
        self._write()
        return event

    def since(self, event_id: int, limit: int) -> tuple[Event, ...]:
        """The newest `limit` events with a greater id, oldest first."""
        newer = [event for event in self._events if event.id > event_id]
        return tuple(newer[-limit:]) if limit > 0 else ()

    def retry(self) -> None:
        """Write what the disk did not take before."""
        if self._unwritten:
            self._write()

    def _write(self) -> None:
        lines = "".join(
            json.dumps(encode(event), ensure_ascii=False) + "\n" for event in self._unwritten
        )
        try:
            self._rotate()
            # Unbuffered: what a buffer could not write it tries again as the file closes.
            with self._path.open("ab", buffering=0) as file:
                start = file.tell()
                try:
                    _write_all(file.fileno(), lines.encode())
                except OSError:
                    os.ftruncate(file.fileno(), start)
                    raise
        except OSError as error:
            self.trouble = str(error)
            return
        self.trouble = None
        self._unwritten.clear()

    def _rotate(self) -> None:
        try:
            full = self._path.stat().st_size > FILE_LIMIT_BYTES
        except FileNotFoundError:
            return
        if full:
            self._path.replace(self._path.with_suffix(".jsonl.1"))


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _read_tail(path: Path) -> list[Event]:
    events: list[Event] = []
    for candidate in (path.with_suffix(".jsonl.1"), path):
        try:
            with candidate.open("rb") as file:
                file.seek(max(0, candidate.stat().st_size - _TAIL_BYTES))
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                events.append(decode(Event, json.loads(line)))
            except (ValueError, DecodeError):
                continue  # the first line of a tail, or one that a full disk cut
    return events
