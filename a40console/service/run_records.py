"""Where a run's process writes what it measures: one line a record, on the disk as arms end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from a40console.model.codec import encode
from a40console.model.run_record import ArmEnd, Ended, Found, Record, Started

_SYNCED = (Started, ArmEnd, Found, Ended)
"""What must not be lost with the machine; the samples between them come with the next."""


class RecordsError(Exception):
    """The disk does not take the records: the run cannot go on. The text says why."""


class RunRecords:
    """Appends records to a run's file.

    What could be written of a record that the disk did not take is cut off again, so that the
    file always ends with a whole line.
    """

    def __init__(self, file: Path) -> None:
        """With the file, which is made where it is not there; raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(file, flags, 0o600)
        self._end = _whole(self._fd)
        os.ftruncate(self._fd, self._end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._fd)

    def append(self, record: Record) -> None:
        """Write a record.

        Raises:
            RecordsError: If the disk does not take it.
        """
        line = json.dumps(encode(record), separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            _write_all(self._fd, line)
            if isinstance(record, _SYNCED):
                os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, self._end)
            raise RecordsError(f"the run's records cannot be written: {error}") from error
        self._end += len(line)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _whole(fd: int) -> int:
    """Where the last whole line of a file ends."""
    size = os.fstat(fd).st_size
    step = 64 * 1024
    for begin in range(max(0, size - step), -step, -step):
        at = max(0, begin)
        found = os.pread(fd, min(step, size - at), at).rfind(b"\n")
        if found >= 0:
            return at + found + 1
        if at == 0:
            break
    return 0
