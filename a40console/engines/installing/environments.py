"""The environments that were installed, told by their stamps: one without a stamp is not one."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from a40console.files import read_json, write_private
from a40console.model.codec import DecodeError, decode, encode

STAMP_FILE = "a40console-engine.json"
BEGUN_FILE = "a40console-begun"
"""Our mark in an environment's folder: an installation may begin again there."""

PREFIX = "vllm-"
CPU_SUFFIX = "-cpu"
DOWNLOADS = ".downloads"
"""Beside the environments, so that complete packages are linked from there and not copied."""

Build = Literal["gpu", "cpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What an installation that was verified says of itself."""

    version: str
    build: Build
    python: str
    torch: str
    cuda: str | None
    """The CUDA that it is built for; None for the CPU."""

    packages: int
    size_bytes: int
    installed_at: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEnvironment:
    """One installed environment."""

    name: str
    folder: Path
    stamp: Stamp

    @property
    def executable(self) -> Path:
        """The environment's `vllm`."""
        return self.folder / "bin" / "vllm"


def environment_name(version: str, build: Build) -> str:
    """The folder's name: `vllm-0.33.0`, `vllm-0.32.0-cpu`."""
    return f"{PREFIX}{version}{CPU_SUFFIX if build == 'cpu' else ''}"


def installed(engines: Path) -> tuple[EngineEnvironment, ...]:
    """Every complete environment, the newest version first."""
    found = (read_environment(folder) for folder in _folders(engines))
    complete = [environment for environment in found if environment is not None]
    return tuple(sorted(complete, key=lambda each: version_key(each.stamp.version), reverse=True))


def unfinished(engines: Path) -> tuple[Path, ...]:
    """What an installation that was interrupted left, and links whose disk is not there."""
    return tuple(folder for folder in _folders(engines) if read_environment(folder) is None)


def newest(engines: Path, build: Build) -> EngineEnvironment | None:
    """The newest environment of that build; None where none is installed."""
    return next((each for each in installed(engines) if each.stamp.build == build), None)


def read_environment(folder: Path) -> EngineEnvironment | None:
    """The environment of a folder; None where it is incomplete, damaged or not there."""
    try:
        stamp = decode(Stamp, read_json(folder / STAMP_FILE))
    except (OSError, ValueError, DecodeError):
        return None
    environment = EngineEnvironment(name=folder.name, folder=folder, stamp=stamp)
    return environment if os.access(environment.executable, os.X_OK) else None


def begin(folder: Path) -> None:
    """Mark a folder as one that we make an environment in, and clear it of all else.

    The stamp goes first: an interruption leaves nothing that is taken for complete.

    Raises:
        OSError: If the disk does not take it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / BEGUN_FILE, "a40console engine install\n")
    (folder / STAMP_FILE).unlink(missing_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != BEGUN_FILE:
            entry.unlink()


def write_stamp(folder: Path, stamp: Stamp) -> None:
    """Declare an environment complete.

    Raises:
        OSError: If the disk does not take it.
    """
    write_private(folder / STAMP_FILE, json.dumps(encode(stamp)))


def remove(folder: Path) -> int:
    """Remove an environment, or what is left of one; the bytes freed.

    A link goes alone: what it leads to may be somebody's own, and stays. Otherwise the stamp goes
    first: an interrupted removal leaves nothing that is taken for complete.
    """
    if folder.is_symlink():
        folder.unlink()
        return 0
    freed = size_on_disk(folder)
    (folder / STAMP_FILE).unlink(missing_ok=True)
    if folder.is_dir():
        shutil.rmtree(folder)
    return freed


def size_on_disk(folder: Path) -> int:
    """Bytes of the disk that a folder holds, each file counted once whatever its names."""
    block_bytes = 512
    seen: set[tuple[int, int]] = set()
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                status = (Path(root) / name).lstat()
            except OSError:
                continue
            if (key := (status.st_dev, status.st_ino)) not in seen:
                seen.add(key)
                total += status.st_blocks * block_bytes
    return total


def version_key(version: str) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """An order of versions: by their numbers, release candidates before the release."""
    release = re.match(r"[\d.]+", version)
    numbers = _numbers(release[0]) if release else ()
    rest = version[len(release[0]) :] if release else version
    is_early = re.match(r"[._-]?(?:a|b|rc|dev|alpha|beta)", rest) is not None
    return numbers, 0 if is_early else 1, _numbers(rest)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", text))


def _folders(engines: Path) -> Iterator[Path]:
    try:
        entries = sorted(engines.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(PREFIX) and (entry.is_dir() or entry.is_symlink()):
            yield entry
