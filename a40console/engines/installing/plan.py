"""What is asked of an installation, what it will take, and how it came out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from a40console.engines.installing.environments import Build, EngineEnvironment
from a40console.engines.installing.resolution import Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be installed, and where."""

    build: Build
    version: str | None
    """None takes the newest."""

    engines: Path
    """Where environments are found."""

    into: Path
    """The folder that holds it, on another disk perhaps; it is linked from `engines` then."""

    plugin: Path
    """Where our plugin's folders are."""

    torch_cpu_index: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlan:
    """What an installation will bring and take."""

    build: Build
    version: str
    folder: Path
    resolution: Resolution
    download_bytes: int
    disk_bytes: int
    free_bytes: int
    cautions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How an installation came out."""

    environment: EngineEnvironment
    says: str
    """What its `vllm --version` says."""

    plugin_trouble: str | None
    """Why our plugin cannot be used in it; None where it can."""


def check_version_text(version: str) -> str | None:
    """Why a text is no version to ask for; None where it is one."""
    plain = re.fullmatch(r"[0-9][0-9A-Za-z.]*(\+[0-9A-Za-z.]+)?", version)
    return None if plain else "a version is such as 0.32.0"
