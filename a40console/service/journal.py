"""The journal: what happened, kept in a file so that ids and history survive the service."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from a40console.files import parse_json
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.event import Event, Severity, gravity
from a40console.model.instants import iso_utc, unix_s
from a40console.operations.who import note_told

KEPT_IN_MEMORY = 1000
FILE_LIMIT_BYTES = 4 * 1024 * 1024
"""Of the present file; the one before it is kept too."""

CLOCK_SLACK_S = 3600.0
"""The clock may have been set back by so much between two events."""

_TAIL_BYTES = 512 * 1024
_GREATEST_ID = 2**50
"""No journal counts so far: a line that says so is damaged."""

log = logging.getLogger(__name__)


def now() -> str:
    """This instant, ISO 8601 with milliseconds, UTC."""
    return iso_utc(time.time())


class Journal:
    """Appends events to a file and keeps the newest in memory.

    A disk that does not take an entry costs its permanence, not the entry: what could not be
    written is tried again with the next one, and by `retry`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._events: deque[Event] = deque(_read_tail(path), maxlen=KEPT_IN_MEMORY)
        self._unwritten: deque[Event] = deque(maxlen=KEPT_IN_MEMORY)
        self._last_id = max((event.id for event in self._events), default=0)
        self.trouble: str | None = None
        """Why the file does not take entries, None while it does."""

    @property
    def last_id(self) -> int:
        """Id of the newest event, 0 before the first."""
        return self._last_id

    def __len__(self) -> int:
        """How many events are in memory."""
        return len(self._events)

    def record(
        self,
        kind: str,
        text: str,
        severity: Severity = "info",
        data: Mapping[str, str] | None = None,
    ) -> Event:
        """Write down what happened, now."""
        note_told((data or {}).get("who", ""))
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

    def pages(self) -> Pages:
        """All that is kept, for a reader in another thread."""
        return Pages(tuple(self._events), (self._path, _before(self._path)))

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
            self._path.replace(_before(self._path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which events are asked for."""

    since: int = 0
    """Ids above it."""

    before: int | None = None
    """Ids below it."""

    severity: Severity = "info"
    """At least."""

    kind: str = ""
    """The kind, or its first words; empty for all."""

    since_s: float = 0.0
    """Not before this Unix time."""

    limit: int = 200
    """How many at the most: the newest."""

    def fits(self, event: Event) -> bool:
        """Whether the event is meant."""
        return (
            event.id > self.since
            and (self.before is None or event.id < self.before)
            and gravity(event.severity) >= gravity(self.severity)
            and (not self.kind or f"{event.kind}.".startswith(f"{self.kind}."))
            and (not self.since_s or (unix_s(event.at) or 0.0) >= self.since_s)
        )


@dataclass(frozen=True, slots=True)
class Pages:
    """The journal at one instant: what is in memory, and the files behind it, newest first."""

    events: tuple[Event, ...]
    files: tuple[Path, ...]

    @property
    def newest_id(self) -> int:
        """Id of the newest event; 0 where there is none."""
        return self.events[-1].id if self.events else 0

    def first_after(self, event_id: int) -> tuple[Event, ...]:
        """The oldest kept event with a greater id, if there is one; reads the files."""
        files = tuple(reversed(self.files))
        for event in chain(_forwards(files), self.events):
            if event.id > event_id:
                return (event,)
        return ()

    def find(self, wanted: Wanted) -> tuple[Event, ...]:
        """The newest events that are meant, oldest first; reads the files only where it must."""
        found: list[Event] = []
        for event in self._newest_first():
            at_s = unix_s(event.at)
            before_all = at_s is not None and at_s < wanted.since_s - CLOCK_SLACK_S
            if len(found) >= wanted.limit or event.id <= wanted.since or before_all:
                break
            if wanted.fits(event):
                found.append(event)
        return tuple(reversed(found))

    def _newest_first(self) -> Iterator[Event]:
        """Every event once; a file may end with some that are in memory."""
        last = None
        for event in chain(reversed(self.events), _backwards(self.files)):
            if last is None or event.id < last:
                last = event.id
                yield event


def _before(path: Path) -> Path:
    return path.with_suffix(".jsonl.1")


def _backwards(files: Iterable[Path]) -> Iterator[Event]:
    for path in files:
        for line in reversed(_lines(path)):
            if (event := _event(line)) is not None:
                yield event


def _forwards(files: Iterable[Path]) -> Iterator[Event]:
    for path in files:
        for line in _lines(path):
            if (event := _event(line)) is not None:
                yield event


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError:
        return []


def _event(line: bytes) -> Event | None:
    """The event of a line; None for one that a full disk cut, or that holds no event of ours."""
    try:
        event = decode(Event, parse_json(line))
    except (ValueError, DecodeError):
        return None
    return event if 0 < event.id <= _GREATEST_ID else None


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _read_tail(path: Path) -> list[Event]:
    events: list[Event] = []
    for candidate in (_before(path), path):
        try:
            with candidate.open("rb") as file:
                file.seek(max(0, candidate.stat().st_size - _TAIL_BYTES))
                lines = file.read().splitlines()
        except OSError:
            continue
        read = [event for line in lines if (event := _event(line)) is not None]
        # The first of a tail may be half a line.
        if (skipped := len(lines) - len(read)) > 1:
            log.warning("%d lines of %s are no events: they are skipped", skipped, candidate)
        events += read
    greatest = 0
    rising = []
    for event in events:
        if event.id > greatest:
            greatest = event.id
            rising.append(event)
    return rising
