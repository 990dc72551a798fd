"""Small files, of which a crash or a full disk leaves the old or the new; and locks."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_PID_DIGITS = 20


def write_private(path: Path, text: str) -> None:
    """Replace a file, 0600, by way of a temporary one.

    Raises:
        OSError: If the disk does not take it; the old file is then untouched.
    """
    _replace(path, text, None)


def replace_text(path: Path, text: str) -> None:
    """Replace the text of a file that is there; mode and owner stay, the owner where we may.

    A link to it stays one.

    Raises:
        OSError: If it is not there, or the disk does not take it; the old file is then untouched.
    """
    like = path.stat()
    _replace(path.resolve(), text, like)


def _replace(path: Path, text: str, like: os.stat_result | None) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if like is not None:
                with suppress(PermissionError):
                    os.fchown(fd, like.st_uid, like.st_gid)
                os.fchmod(fd, stat.S_IMODE(like.st_mode))
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def is_locked(lock: Path) -> bool:
    """Whether a living process holds the lock of a file; nobody holds one that is not there."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def lock_holder(lock: Path) -> int | None:
    """The pid that the holder wrote into the lock, 0 where it does not say; None without one."""
    if not is_locked(lock):
        return None
    try:
        text = lock.read_bytes().decode(errors="replace").strip()
    except OSError:
        return 0
    return int(text) if text.isdecimal() and len(text) < MOST_PID_DIGITS else 0


def holder_told(lock: Path) -> str:
    """Who holds the lock, for an operator: it may be a child of who took it and is gone."""
    recorded = lock_holder(lock)
    if recorded and holds_open(recorded, lock):
        return f"process {recorded}"
    found = [pid for pid in _other_processes() if holds_open(pid, lock, locked=True)]
    if not found:
        return f"process {recorded or 'unknown'}"
    if not recorded:
        return f"process {found[0]}"
    return f"process {found[0]} (unsupervised: process {recorded} is gone)"


def holds_open(pid: int, path: Path, *, locked: bool = False) -> bool:
    """Whether that process has the file open: proof that a recorded pid is still its writer.

    Args:
        pid: The process.
        path: The file.
        locked: Whether it must have it locked, too, which the kernel tells beside the descriptor.
    """
    with suppress(OSError):
        wanted = path.stat()
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if os.path.samestat(entry.stat(), wanted):
                    info = Path(f"/proc/{pid}/fdinfo/{entry.name}")
                    return not locked or "FLOCK" in info.read_text()
    return False


def _other_processes() -> list[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        return []
    return [int(name) for name in names if name.isdecimal() and int(name) != os.getpid()]


def read_json(path: Path) -> Any:
    """The JSON value of a file.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not JSON.
    """
    return parse_json(path.read_text(encoding="utf-8"))


def parse_json(text: str | bytes) -> Any:
    """The JSON value of a text.

    Raises:
        ValueError: If it is not JSON, or nested deeper than can be read.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
