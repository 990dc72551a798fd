"""One installation at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from a40console.errors import RefusedError


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One installation at a time in a folder; the lock ends with its holder, however that ends.

    Raises:
        RefusedError: If another one runs, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / ".installing.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise RefusedError(
            f"{folder} cannot be used",
            evidence=str(error),
            remedy="Free space or permission there, or name another folder with --into.",
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
            raise RefusedError(
                "Another installation runs here",
                evidence=f"process {holder or 'unknown'} holds {folder}",
                remedy="Wait for it, or end it; what it downloaded is kept.",
            ) from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)
