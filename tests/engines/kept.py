"""One keeper under test, and what it recorded."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from a40console.engines import keeper
from a40console.engines.tree import ProcFs, with_descendants

SCRIPT = Path(keeper.__file__)
DEADLINE_S = 20.0
T = TypeVar("T")


def until(look: Callable[[], T | None], what: str) -> T:
    """Waits for something to be there; a late machine is given time."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(0.02)


class Kept:
    """One keeper under test and what it recorded."""

    def __init__(self, run_dir: Path, pid: int) -> None:
        self.run_dir = run_dir
        self.pid = pid
        self.proc = ProcFs()

    def record(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.run_dir / name).read_bytes())
        except FileNotFoundError:
            return None
        return found

    def engine(self) -> dict[str, Any]:
        return until(lambda: self.record("engine.json"), "engine.json")

    def exit(self, *, final: bool = True) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = self.record("exit.json")
            return found if found and not (final and found["survivors"]) else None

        return until(look, "exit.json")

    def output(self) -> str:
        log = self.run_dir / "output.log"
        return log.read_text() if log.exists() else ""

    def lives(self) -> bool:
        return self.proc.read_process(self.pid) is not None

    def ended(self) -> None:
        until(lambda: not self.lives(), "the keeper's end")

    def kill_all(self) -> None:
        below = with_descendants(self.proc.read_table(), {self.pid})
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


Keep = Callable[..., Kept]
