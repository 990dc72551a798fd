"""The text of chosen sessions, written to private files while their operator wants it.

Off unless switched on for one session, off again with the next service; bounded in size. What goes
to the engine is written, without the client's metadata, and what the client was answered. Headers,
and with them keys and tokens, never are.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from starlette.types import Message, Send

from a40console.errors import RefusedError
from a40console.files import write_private
from a40console.gateway.meter import Passage
from a40console.paths import make_private

FILE_LIMIT_BYTES = 8 * 1024 * 1024
SESSION_LIMIT_BYTES = 256 * 1024 * 1024
"""Then the capture ends by itself."""

_PERSONAL = ("metadata", "user")
"""Members of a body that may say who the user is."""

_CUT = "\n… cut here: no file of a capture is larger\n"

Ended = Callable[[str, str], None]
"""Told of a capture that ended by itself: which session's, and why."""


@dataclass(slots=True)
class _Running:
    """A capture under way."""

    folder: Path
    taken_bytes: int = 0
    """What was there, and what passed since."""

    added_bytes: int = 0
    """What it takes more as it is written; counted by the writer alone."""

    trouble: str = ""
    """Why the disk took something not."""

    @property
    def written_bytes(self) -> int:
        """What it takes, of what is not yet written as much as it came to."""
        return self.taken_bytes + self.added_bytes


@dataclass(slots=True)
class _Answer:
    """What a client was sent so far of one answer."""

    session: str
    stem: str
    suffix: str = "response.json"
    kept: bytearray = field(default_factory=bytearray)
    is_cut: bool = False

    def take(self, message: Message) -> None:
        """One message of ASGI on its way to the client."""
        if message["type"] == "http.response.start":
            heads = {name.lower(): value for name, value in message.get("headers", ())}
            if heads.get(b"content-type", b"").startswith(b"text/event-stream"):
                self.suffix = "response.sse"
            return
        body = message.get("body", b"")
        room = FILE_LIMIT_BYTES - len(self.kept)
        self.kept += body[:room]
        self.is_cut = self.is_cut or len(body) > room


class Captures:
    """Which sessions' text is written down, and where.

    Args:
        folder: Where each session gets a folder; None where no text may be kept at all.
        wall: Unix time.
    """

    def __init__(self, folder: Path | None = None, wall: Callable[[], float] = time.time) -> None:
        self.on_end: Ended = lambda session, why: None
        self._folder = folder
        self._wall = wall
        self._running: dict[str, _Running] = {}
        self._answers: dict[int, _Answer] = {}
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="capture")

    def is_on(self, session: str) -> bool:
        """Whether the text of this session is written down."""
        return session in self._running

    @property
    def sessions(self) -> tuple[str, ...]:
        """Whose text is written down."""
        return tuple(self._running)

    def begin(self, session: str) -> Path:
        """Write the text of this session's next requests down; the folder, 0700.

        Raises:
            RefusedError: If it cannot be made, or no text may be kept here.
        """
        if self._folder is None:
            raise RefusedError("No text is kept by this gateway")
        folder = make_private(make_private(self._folder) / session)
        size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
        if size >= SESSION_LIMIT_BYTES:
            raise RefusedError(
                f"The captures of {session} are full",
                evidence=f"{size:,} bytes in {folder}",
                remedy="Delete what is no longer needed there.",
            )
        self._running[session] = _Running(folder, size)
        return folder

    def end(self, session: str) -> bool:
        """Write no more of it; whether anything was."""
        return self._running.pop(session, None) is not None

    def settle(self) -> None:
        """End them all, and wait until what was begun is written."""
        self._running.clear()
        self._writer.submit(str).result()

    # --- What passes ------------------------------------------------------------------------

    def tapped(self, passage: Passage, send: Send) -> Send:
        """The way to a client; while nothing is captured, the very one that was given."""
        if not self._running:
            return send

        async def tap(message: Message) -> None:
            answer = self._answers.get(passage.order)
            if answer is not None:
                answer.take(message)
            await send(message)

        return tap

    def asked(self, passage: Passage, read: Callable[[], bytes]) -> None:
        """A request of a session whose name is known by now; `read` gives its body."""
        session = passage.session
        if session is None or session not in self._running:
            return
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._wall()))
        answer = _Answer(session, f"{at}-{passage.order:06d}-{passage.request_id}")
        self._answers[passage.order] = answer
        self._write(answer, "request.json", read(), _question)

    def ended(self, passage: Passage) -> None:
        """A request ended: its answer is written as far as it went."""
        answer = self._answers.pop(passage.order, None)
        if answer is not None:
            self._write(answer, answer.suffix, answer.kept, _cut if answer.is_cut else _plain)

    def _write(
        self, answer: _Answer, suffix: str, data: bytes | bytearray, told: Callable[[bytes], str]
    ) -> None:
        """Have it written as it is told; nothing is read here, where streams pass."""
        running = self._running.get(answer.session)
        if running is None:
            return
        running.taken_bytes += len(data)
        self._writer.submit(_save, running, f"{answer.stem}.{suffix}", data, told)
        if running.written_bytes > SESSION_LIMIT_BYTES:
            self._give_up(answer.session, f"{SESSION_LIMIT_BYTES:,} bytes are written")
        elif running.trouble:
            self._give_up(answer.session, f"it cannot be written: {running.trouble}")

    def _give_up(self, session: str, why: str) -> None:
        if self.end(session):
            self.on_end(session, why)


def _save(
    running: _Running, name: str, data: bytes | bytearray, told: Callable[[bytes], str]
) -> None:
    # What only an escape can carry, half a surrogate pair, no file can.
    written = told(bytes(data)).encode("utf-8", "replace")
    running.added_bytes += len(written) - len(data)
    try:
        write_private(running.folder / name, written.decode())
    except OSError as error:
        running.trouble = str(error)


def _plain(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _cut(data: bytes) -> str:
    return _plain(data) + _CUT


def _question(data: bytes) -> str:
    """A body without what may say who the user is, cut where it is too long."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(body, dict):
        return ""
    kept = {name: value for name, value in body.items() if name not in _PERSONAL}
    text = json.dumps(kept, ensure_ascii=False, indent=1)
    return text if len(text) <= FILE_LIMIT_BYTES else text[:FILE_LIMIT_BYTES] + _CUT
