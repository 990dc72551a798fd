"""Process trees under test: how they are waited for, and what they run."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from a40console.engines.process import EngineProcess
from a40console.engines.tree import ProcessId, ProcFs

DEADLINE_S = 20.0
ENV = {"PATH": os.environ["PATH"]}
IGNORES_TERM = "trap '' TERM; while :; do sleep 0.2; done"
T = TypeVar("T")


async def until(look: Callable[[], T | None], what: str) -> T:
    """Waits for something to be there; a late machine is given time."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        await asyncio.sleep(0.02)


Start = Callable[..., Awaitable[EngineProcess]]


def gone(process: ProcessId) -> bool:
    return not ProcFs().is_alive(process)
