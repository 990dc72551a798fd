"""A model file under test, and who brings it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from random import Random

from a40console.engines.model_sources import SourceError
from a40console.model.profile import ModelFile

CONTENT = Random(7).randbytes(3_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FILE = ModelFile(
    repo="owner/name", file="m.gguf", sha256=SHA256, size_bytes=len(CONTENT), wheel="some-wheel"
)


class Brings:
    """A source that writes what it is told, in two halves."""

    def __init__(self, name: str, content: bytes, pause_s: float = 0.0) -> None:
        self.name = name
        self.content = content
        self.pause_s = pause_s
        self.calls = 0

    async def fetch(self, file: ModelFile, scratch: Path) -> Path:
        self.calls += 1
        path = scratch / f"{self.name}.part"
        path.write_bytes(self.content[: len(self.content) // 2])
        await asyncio.sleep(self.pause_s)
        path.write_bytes(self.content)
        return path


class Fails:
    """A source that has nothing."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason

    async def fetch(self, file: ModelFile, scratch: Path) -> Path:
        raise SourceError(self.reason)


def ignore(_: int, __: int) -> None:
    pass


async def until(condition: Callable[[], bool]) -> None:
    """What happens in another process sets no event of ours."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
