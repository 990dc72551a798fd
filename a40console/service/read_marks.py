"""Up to where the operator has read the journal, kept on the disk: a console is disposable."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

from a40console.files import read_json, write_private
from a40console.model.codec import DecodeError, decode, encode
from a40console.model.control import ReadMark
from a40console.model.figures import Missing
from a40console.service.journal import now

NEVER = ReadMark(event=0, at=Missing("nothing was read yet"))

log = logging.getLogger(__name__)


class ReadMarks:
    """The one mark of this user's service.

    Args:
        file: Where it is kept.
        last_id: Id of the journal's newest event: a mark beyond it belongs to another journal.
    """

    def __init__(self, file: Path, last_id: Callable[[], int]) -> None:
        self._file = file
        self._last_id = last_id
        self._mark = _read(file)

    @property
    def mark(self) -> ReadMark:
        """Up to where was read."""
        return self._mark if self._mark.event <= self._last_id() else NEVER

    def set(self, event_id: int) -> ReadMark:
        """Note that was read up to an event, and that somebody was here now.

        It never goes back. A full disk costs the note.
        """
        event_id = min(event_id, self._last_id())
        if event_id and event_id >= self.mark.event:
            self._mark = ReadMark(event=event_id, at=now())
            try:
                write_private(self._file, json.dumps(encode(self._mark)))
            except OSError as error:
                log.warning("the read mark could not be written: %s", error)
        return self.mark


def _read(file: Path) -> ReadMark:
    try:
        return decode(ReadMark, read_json(file))
    except (OSError, ValueError, DecodeError):
        return NEVER
