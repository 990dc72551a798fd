"""What an environment's packages say of themselves, read from their metadata and not by running."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from a40console.engines.gpu_driver import CudaVersion, parse_cuda

_PLACES = (
    "lib/python3*/site-packages",
    "lib64/python3*/site-packages",
    "lib/python3*/dist-packages",
)


def version_of(python: Path, distribution: str) -> str | None:
    """The version of a distribution in the environment of an interpreter; None if not found."""
    for name, version in _distributions(python, distribution):
        if name == distribution:
            return version
    return None


def cuda_of(python: Path) -> CudaVersion | None:
    """The CUDA that an environment's PyTorch is built for; None where nothing says so."""
    for name, version in _distributions(python, "nvidia-cuda-runtime"):
        if re.fullmatch(r"nvidia-cuda-runtime(-cu\d+)?", name):
            return parse_cuda(version)
    return None


def _distributions(python: Path, beginning: str) -> Iterator[tuple[str, str]]:
    """Names and versions of distributions whose names begin so, by their metadata folders."""
    prefix = python.parent.parent
    stem = beginning.replace("-", "_")
    for place in _PLACES:
        for folder in sorted(prefix.glob(f"{place}/{stem}*.dist-info")):
            name, _, version = folder.name.removesuffix(".dist-info").partition("-")
            yield name.replace("_", "-").lower(), version
