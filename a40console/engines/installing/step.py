"""Where an installation is, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from a40console.model.figures import Figure, Missing

Phase = Literal["uv", "resolve", "environment", "download", "install", "verify"]

NOTHING_WRITTEN = Missing("nothing is written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A moment of an installation."""

    phase: Phase
    detail: str = ""
    """The package, folder or check at hand."""

    written_bytes: int | None = None
    """Unpacked onto the disk so far; None where nothing is written."""

    total_bytes: Figure = NOTHING_WRITTEN
    """What will be unpacked, an estimate."""


Report = Callable[[Step], None]
